"""The mixers of one iteration: over caches and states of decoding sequences, and over chunks of prompts.

What a kind of layer attends to (all keys, a window, latents) or keeps (a state) is that of the layers of an inference.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..formulas.generation import decode as dec
from ..formulas.generation import serving as srv
from ..formulas.kernels import attention as att
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import windows
from ..formulas.language.atoms import Max, Min, less_one
from ..formulas.language.symbols import (
    activation_bytes,
    chunk_context,
    chunk_tokens,
    chunks,
    context_before,
    cp,
    decoding,
    generate,
    kv_bytes,
    kv_lora_rank,
    prefilling_ranks,
    prompt,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sliding_window,
    statistic_bytes,
    step_tokens,
    v_head_dim,
)
from ..infer import split_context
from ..infer.compressed import CompressedAttention
from ..infer.latent import LatentAttention
from ..infer.layer import Layer
from ..infer.recurrent import Recurrent
from ..infer.selected import SelectedKeys
from ..operations.groups import parts
from ..operations.schedule import Demand, Op, substitute
from ..operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..infer.attention import CachedAttention, SoftmaxAttention
    from ..infer.layer import Mixer
    from ..infer.structure import InferenceStructure
    from ..operations.schedule import Sequence

DECODED = decoding * step_tokens
"""New tokens of sequences that decode."""
PIECE = prompt / chunks
"""Tokens of a chunk."""
COUNT = chunk_tokens / PIECE
"""Chunks of one kernel."""
CONTEXT = (prompt + PIECE) / 2
"""Keys that are there for a chunk, the mean over a prompt's chunks."""


BEFORE = {prompt: prompt + context_before}
"""Prompts with cached tokens before them, as a step sees them."""
LONGER = prompt + 2 * chunk_context
CHUNKS_BEFORE = {prompt: LONGER, chunks: chunks * LONGER / prompt}
"""The same as a chunk sees them: one in the middle of a prompt that is longer by twice as much, in chunks as long."""


class IterationLayer(Layer):
    """A layer of one kind in one kind of iteration: its `phase` is "decode", "mixed" or "prefill".

    Attributes:
        differing: whether prompts differ, and have cached tokens before them.
    """

    differing = False

    @property
    def mean_tokens(self) -> Any:
        """New tokens of the mean replica of those that pass the same experts, of which some prefill."""
        return new_tokens(self.structure, self.phase, chunk_tokens * prefilling_ranks)

    @property
    def copied_tokens(self) -> Any:
        """Those of sequences that decode, where several devices share a sequence's cache."""
        return DECODED if self.structure.context != "none" and self.phase != "prefill" else 0

    def own_tokens(self, tokens: Any) -> Any:
        """Of a device's new tokens its share of those that decode, and its part of chunks."""
        return tokens.xreplace({decoding: decoding / cp}) if self.copied_tokens else tokens

    @property
    def sequences(self) -> Any:
        """Sequences that decode, and those of which there is a chunk."""
        decoded = decoding if self.phase != "prefill" else 0
        return decoded + (COUNT if self.phase != "decode" else 0)

    def tree(self) -> Sequence:
        """The layer around its mixers."""
        return self.layer(self.core)

    def core(self, mixer: Mixer) -> list[Op | None]:
        """A mixer over the new tokens of an iteration."""
        found: list[Op | None] = []
        if self.phase != "prefill":
            found += self._behind(self.decoded(mixer), BEFORE)
        if self.phase != "decode":
            found += self._behind(self.chunked(mixer), CHUNKS_BEFORE)
        return found

    def _behind(self, ops: list[Op | None], forms: Mapping[Any, Any]) -> list[Op | None]:
        """Operations of prompts that have cached tokens before them, where some do."""
        if not self.differing:
            return ops
        return [None if op is None else substitute(op, forms) for op in ops]  # type: ignore[misc]

    def decoded(self, of: Mixer) -> list[Op | None]:
        """A mixer over the new tokens of decoding sequences."""
        match of:
            case Recurrent() as mixer:
                return mixer.step(decoding, step_tokens)
            case CompressedAttention() as mixer:
                return mean_steps(mixer)
            case SelectedKeys() as mixer:
                chosen = mean_step(mixer.indexer) if mixer.indexer else None
                return [chosen, *mixer.around(DECODED, mean_step(mixer))]
            case LatentAttention() as mixer:
                return mixer.absorbed(DECODED, mean_step(mixer))
            case mixer:
                return split_context.joined(mixer, DECODED, mean_step(mixer))

    def chunked(self, of: Mixer) -> list[Op | None]:
        """A mixer over the chunks of prompts."""
        match of:
            case Recurrent() as mixer:
                return resume_scan(mixer)
            case CompressedAttention() as mixer:
                return mixer.chunks(COUNT, PIECE, prompt, CONTEXT)
            case SelectedKeys() as mixer:
                every, left = mixer.pairs(prompt)
                return mixer.attended(COUNT, PIECE, (every / chunks, left / chunks), CONTEXT, "chunk_")
            case LatentAttention() as mixer:
                return latent_chunk(mixer)
            case mixer if self.fusion.fused_prefill:
                return among_parts(mixer, chunk_attention(mixer))
            case mixer:
                return list(stored_chunk(mixer))


def mean_step(mixer: CachedAttention) -> Op:
    """Attention of a step over contexts that are spread evenly over a generation's.

    A step of several tokens does the work of each, and reads the cache once.
    """
    steps = Max(1, less_one(generate))
    op = mixer.growing((steps, prompt + 1), decoding, step_tokens)
    return dataclasses.replace(op, time=op.time / steps, summed=False)


def mean_steps(mixer: CompressedAttention) -> list[Op | None]:
    """The same of attention to compressed entries, whose indexer has operations of its own."""
    steps = Max(1, less_one(generate))
    ops = mixer.steps((steps, prompt + 1), decoding, step_tokens)
    return [dataclasses.replace(op, time=op.time / steps, summed=False) for op in ops if op is not None]


def resume_scan(mixer: Recurrent) -> list[Op | None]:
    """The scan of the chunks, which starts from the states that earlier chunks have left."""
    read = mixer.kept(COUNT)
    *before, scan = mixer.scan(COUNT, PIECE)
    assert scan is not None
    return [*before, mixer.kernels.stream(mixer.path("state_read"), read, read, 0), scan]


def chunk_attention(mixer: SoftmaxAttention) -> Op:
    """Causal attention of the chunks, the mean over a prompt's."""
    heads, kv_heads, width = mixer.heads, mixer.units, mixer.core_width
    piece = PIECE / parts(mixer.layer.structure)
    work = att.attention_flops(COUNT, piece, (prompt + 1) / 2, heads, width)
    keys = CONTEXT
    if mixer.windowed:
        pairs = mixer.visible_pairs(prompt) / chunks
        work = windows.masked_attention_flops(COUNT, pairs, heads, width)
        keys = Min(CONTEXT, PIECE + sliding_window)
    traffic = dec.chunk_attention_bytes(COUNT, piece, keys, heads, kv_heads, width, activation_bytes, kv_bytes)
    traffic += COUNT * piece * heads * statistic_bytes
    longest, mean = CONTEXT, (prompt + 1) / 2
    if mixer.windowed:
        longest, mean = Min(CONTEXT, sliding_window), pairs / PIECE
    blocks = mixer.new_blocks(COUNT, piece, mean, longest, written=not mixer.reuses)
    op = mixer.layer.kernels.flash(mixer.path("chunk"), work, traffic, blocks)
    if mixer.windowed or mixer.families_known[0] or mixer.layer.structure.context != "none":
        return op
    time = srv.chunked_attention_time(COUNT, prompt, chunks, heads, kv_heads, width, activation_bytes, kv_bytes)
    return Op(op.path, time, Demand(work, traffic))


def stored_chunk(mixer: SoftmaxAttention) -> list[Op]:
    """The same as two products with a softmax between them, over the mean context of a chunk."""
    groups, path, kernels = COUNT * mixer.heads, mixer.path("core"), mixer.layer.kernels
    scores = groups * PIECE * CONTEXT
    kinds = {"left": activation_bytes, "right": activation_bytes}
    return [
        kernels.matmul(f"{path}/scores", PIECE, CONTEXT, mixer.key_width, groups, **kinds),
        kernels.stream(f"{path}/softmax", 2 * scores * activation_bytes, scores, FLOPS_PER_ELEMENT["softmax"]),
        kernels.matmul(f"{path}/context", PIECE, mixer.value_width, CONTEXT, groups, **kinds),
    ]


def latent_chunk(latent: LatentAttention) -> list[Op | None]:
    """Expanded attention of the chunks; keys and values of earlier chunks are expanded again for each."""
    widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim
    piece = PIECE / parts(latent.layer.structure)
    work = mla.expanded_attention_flops(COUNT, piece, (prompt + 1) / 2, latent.heads, *widths)
    traffic = mla.expanded_attention_bytes(COUNT, piece, CONTEXT, latent.heads, *widths, activation_bytes)
    expanded = latent.heads * (qk_nope_head_dim + v_head_dim)
    kernels = latent.layer.kernels
    blocks = latent.new_blocks(COUNT, piece, (prompt + 1) / 2, CONTEXT)
    return [
        kernels.matmul(latent.path("latent_up"), COUNT * CONTEXT, expanded, kv_lora_rank),
        *among_parts(latent, kernels.flash(latent.path("chunk"), work, traffic, blocks)),
    ]


def among_parts(mixer: CachedAttention, attend: Op) -> list[Any]:
    """Attention of chunks with what brings it the keys of other parts: of the cache, and of the chunks themselves."""
    cached = split_context.gathered_cache(mixer, COUNT, CONTEXT - PIECE)
    return [cached, *split_context.passed(mixer, COUNT * CONTEXT, attend, "chunk_")]


def new_tokens(structure: InferenceStructure, kind: str, prefilled: Any = chunk_tokens) -> Any:
    """New tokens of a kind of iteration on one device: all of those that decode, and its part of chunks."""
    own = prefilled / parts(structure)
    return {"decode": DECODED, "prefill": own, "mixed": DECODED + own}[kind]
