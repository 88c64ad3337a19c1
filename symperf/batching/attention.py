"""Attention of one iteration: of decoding sequences to their caches, and of chunks of prompts to what is before them.

What a kind of layer attends to (all keys, a window, latents) is that of the layers of an inference.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..formulas import attention as att
from ..formulas import decode as dec
from ..formulas import latent_attention as mla
from ..formulas import serving as srv
from ..formulas import windows
from ..formulas.atoms import Max, Min, less_one
from ..formulas.symbols import (
    activation_bytes,
    chunk_tokens,
    chunks,
    decoding,
    generate,
    head_dim,
    kv_bytes,
    kv_lora_rank,
    prompt,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sliding_window,
    statistic_bytes,
    step_tokens,
    v_head_dim,
)
from ..generation.layer import Layer
from ..shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..generation.latent import LatentAttention
    from ..schedule import Op, Sequence

NEW_TOKENS = {"decode": decoding * step_tokens, "prefill": chunk_tokens}
NEW_TOKENS["mixed"] = NEW_TOKENS["decode"] + NEW_TOKENS["prefill"]
"""New tokens of each kind of iteration."""
PIECE = prompt / chunks
"""Tokens of a chunk."""
COUNT = chunk_tokens / PIECE
"""Chunks of one kernel."""
CONTEXT = (prompt + PIECE) / 2
"""Keys that are there for a chunk, the mean over a prompt's chunks."""


class IterationLayer(Layer):
    """A layer of one kind in one kind of iteration: its `phase` is "decode", "mixed" or "prefill"."""

    def tree(self) -> Sequence:
        """The layer around its attention."""
        core: list[Op | None] = [] if self.latent else [self.append()]
        if self.phase != "prefill":
            core += self.latent_cache(self.latent) if self.latent else self.cache_attention()
        if self.phase != "decode":
            core += self.latent_chunk(self.latent) if self.latent else self.chunk_attention()
        return self.layer(*core)

    # --- decoding sequences

    def cache_attention(self) -> list[Op | None]:
        """Attention over keys and values, and the kernel that adds the parts of split contexts."""
        core = self.mean_step(*self.decode_demand(decoding), window=sliding_window if self.windowed else None)
        return [core, self.combine_steps()]

    def mean_step(self, work: Any, own: Any, each: Any, window: Any = None) -> Op:
        """Attention of a step over contexts that are spread evenly over a generation's.

        A step of several tokens does the work of each, and reads the cache once.

        Args:
            work: FLOPs of a token for each key.
            own: bytes of a token that do not depend on the context.
            each: bytes for each key.
            window: keys that are attended to at most.
        """
        steps = Max(1, less_one(generate))
        path = self.path(f"{self.root}/attention/flash")
        op = self.kernels.generation(
            path, (steps, prompt + 1), work * step_tokens, own * step_tokens, each, window=window
        )
        return dataclasses.replace(op, time=op.time / steps, summed=False)

    def combine_steps(self) -> Op | None:
        """The kernel that adds the parts of split contexts, for every token of a step."""
        if not self.splits:
            return None
        shapes = self.shapes
        parts = dec.partial_bytes(decoding, shapes.heads, shapes.key_value_heads, head_dim) * step_tokens
        elements = decoding * step_tokens * shapes.attention_width
        path = self.path(f"{self.root}/attention/combine")
        return self.kernels.stream(path, parts + elements * activation_bytes, elements, 2)

    def latent_cache(self, latent: LatentAttention) -> list[Op | None]:
        """Absorbed attention over latents."""
        rows = NEW_TOKENS["decode"]
        return [
            self.kernels.matmul(
                self.path(latent.name("absorb_key")), rows, kv_lora_rank, qk_nope_head_dim, latent.heads
            ),
            self.mean_step(*latent.demand(decoding)),
            self.kernels.matmul(self.path(latent.name("absorb_value")), rows, v_head_dim, kv_lora_rank, latent.heads),
        ]

    # --- chunks

    def chunk_attention(self) -> list[Op | None]:
        """Causal attention of the chunks, the mean over a prompt's."""
        if not self.fusion.fused_prefill:
            return list(self.stored_chunk())
        heads, kv_heads = self.shapes.heads, self.shapes.key_value_heads
        path = self.path(f"{self.root}/attention/chunk")
        work = att.attention_flops(COUNT, PIECE, (prompt + 1) / 2, heads, head_dim)
        keys = CONTEXT
        if self.windowed:
            pairs = windows.window_pairs(prompt, sliding_window) / chunks
            work = windows.masked_attention_flops(COUNT, pairs, heads, head_dim)
            keys = Min(CONTEXT, PIECE + sliding_window)
        traffic = dec.chunk_attention_bytes(COUNT, PIECE, keys, heads, kv_heads, head_dim, activation_bytes, kv_bytes)
        traffic += COUNT * PIECE * heads * statistic_bytes
        op = self.kernels.flash(path, work, traffic)
        if self.windowed:
            return [op]
        time = srv.chunked_attention_time(COUNT, prompt, chunks, heads, kv_heads, head_dim, activation_bytes, kv_bytes)
        return [dataclasses.replace(op, time=time)]

    def stored_chunk(self) -> list[Op]:
        """The same as two products with a softmax between them, over the mean context of a chunk."""
        groups, path = COUNT * self.shapes.heads, self.path(f"{self.root}/attention/core")
        scores = groups * PIECE * CONTEXT
        kinds = {"left": activation_bytes, "right": activation_bytes}
        return [
            self.kernels.matmul(f"{path}/scores", PIECE, CONTEXT, head_dim, groups, **kinds),
            self.kernels.stream(f"{path}/softmax", 2 * scores * activation_bytes, scores, FLOPS_PER_ELEMENT["softmax"]),
            self.kernels.matmul(f"{path}/context", PIECE, head_dim, CONTEXT, groups, **kinds),
        ]

    def latent_chunk(self, latent: LatentAttention) -> list[Op | None]:
        """Expanded attention of the chunks; keys and values of earlier chunks are expanded again for each."""
        widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
        work = mla.expanded_attention_flops(COUNT, PIECE, (prompt + 1) / 2, latent.heads, *widths)
        traffic = mla.expanded_attention_bytes(COUNT, PIECE, CONTEXT, latent.heads, *widths, activation_bytes)
        expanded = latent.heads * (qk_nope_head_dim + v_head_dim)
        return [
            self.kernels.matmul(self.path(latent.name("latent_up")), COUNT * CONTEXT, expanded, kv_lora_rank),
            self.kernels.flash(self.path(latent.name("chunk")), work, traffic),
        ]
