"""One iteration of continuous batching as a schedule tree: new tokens of decoding sequences, and chunks of prompts.

Linear layers see all new tokens of a group in one product; attention to the caches of decoding sequences and that of
the chunks are kernels of their own. With p pipeline stages, up to p groups of sequences are in flight, and an
iteration is one pass of every group through every stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas import attention as att
from ..formulas import decode as dec
from ..formulas import serving as srv
from ..formulas.atoms import Max, less_one
from ..formulas.symbols import (
    activation_bytes,
    chunk_tokens,
    chunks,
    decoding,
    generate,
    groups_in_flight,
    head_dim,
    kv_bytes,
    num_layers,
    pp,
    prompt,
    statistic_bytes,
    step_tokens,
    tp,
)
from ..generation.ends import ModelEnds
from ..kernels import pipeline_group
from ..schedule import Demand, Ends, Node, Op, Repeat, sequence
from ..shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..generation.structure import InferenceStructure

KINDS = ("decode", "mixed", "prefill")
"""Iterations that only decode, that do both, and that only prefill."""
NEW_TOKENS = {"decode": decoding * step_tokens, "prefill": chunk_tokens}
NEW_TOKENS["mixed"] = NEW_TOKENS["decode"] + NEW_TOKENS["prefill"]


class Iteration(ModelEnds):
    """The operations of one kind of iteration.

    Args:
        structure: what gives them their form.
        kind: one of `KINDS`, and the first part of every path.
    """

    def __init__(self, structure: InferenceStructure, kind: str) -> None:
        super().__init__(structure, kind, NEW_TOKENS[kind])
        self.decodes, self.prefills = kind != "prefill", kind != "decode"

    def tree(self) -> Node:
        """The schedule tree: every stage for one group, repeated, and the ends of the model for each group."""
        core = [self.append()]
        core += self.cache_attention() if self.decodes else []
        core += self.chunk_attention() if self.prefills else []
        send = self.kernels.send(self.path("pipeline/send"), self.stream_message / tp, pipeline_group())
        stage = sequence(Repeat(self.layer(*core), num_layers / pp), send)
        ends = Ends(self.embedding(), self.head(self.logit_rows()), groups_in_flight, pp)
        return sequence(Repeat(stage, pp), ends)

    def logit_rows(self) -> Any:
        """Tokens that need logits: those of decoding sequences, and the last one of each prompt that ends."""
        rows = decoding * step_tokens if self.decodes else 0
        return rows + (chunk_tokens / prompt if self.prefills else 0)

    def cache_attention(self) -> list[Op | None]:
        """Attention of decoding sequences, whose contexts are spread evenly over a generation's."""
        work, own, each = (each * step_tokens for each in self.decode_demand(decoding))
        each /= step_tokens  # a step of several tokens reads the cache once
        steps = Max(1, less_one(generate))
        total = dec.generation_attention_time(steps, prompt + 1, work, own, each)
        mean = prompt + 1 + (steps - 1) / 2
        path = self.path("layer/attention/flash")
        return [Op(path, total / steps, Demand(mean * work, own + mean * each)), self.combine_steps()]

    def combine_steps(self) -> Op | None:
        """The kernel that adds the parts of split contexts, for every token of a step."""
        if not self.splits:
            return None
        shapes = self.shapes
        parts = dec.partial_bytes(decoding, shapes.heads, shapes.key_value_heads, head_dim) * step_tokens
        elements = decoding * step_tokens * shapes.attention_width
        path = self.path("layer/attention/combine")
        return self.kernels.stream(path, parts + elements * activation_bytes, elements, 2)

    def chunk_attention(self) -> list[Op | None]:
        """Causal attention of the chunks, the mean over a prompt's."""
        shapes, piece = self.shapes, prompt / chunks
        count = chunk_tokens / piece
        context = (prompt + piece) / 2
        if not self.fusion.fused_prefill:
            return list(self.stored_chunk(count, piece, context))
        time = srv.chunked_attention_time(
            count, prompt, chunks, shapes.heads, shapes.key_value_heads, head_dim, activation_bytes, kv_bytes
        )
        work = att.attention_flops(count, piece, (prompt + 1) / 2, shapes.heads, head_dim)
        traffic = dec.chunk_attention_bytes(
            count, piece, context, shapes.heads, shapes.key_value_heads, head_dim, activation_bytes, kv_bytes
        )
        statistics = count * piece * shapes.heads * statistic_bytes
        return [Op(self.path("layer/attention/chunk"), time, Demand(work, traffic + statistics))]

    def stored_chunk(self, count: Any, piece: Any, context: Any) -> list[Op]:
        """The same as two products with a softmax between them, over the mean context of a chunk."""
        groups, path = count * self.shapes.heads, self.path("layer/attention/core")
        scores = groups * piece * context
        kinds = {"left": activation_bytes, "right": activation_bytes}
        return [
            self.kernels.matmul(f"{path}/scores", piece, context, head_dim, groups, **kinds),
            self.kernels.stream(f"{path}/softmax", 2 * scores * activation_bytes, scores, FLOPS_PER_ELEMENT["softmax"]),
            self.kernels.matmul(f"{path}/context", piece, head_dim, context, groups, **kinds),
        ]


def trees(structure: InferenceStructure) -> dict[str, Node]:
    """The schedule tree of each kind of iteration."""
    return {kind: Iteration(structure, kind).tree() for kind in KINDS}
