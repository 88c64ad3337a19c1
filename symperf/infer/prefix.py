"""Prompts whose first tokens are in the cache: they are attended to, and not prefilled again.

The new tokens of a prompt pass the layers; attention reads the keys of all. A recurrent layer starts from the state
that the prefix has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..formulas.generation import decode as dec
from ..formulas.kernels import attention as att
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import windows
from ..formulas.language.atoms import Min
from ..formulas.language.symbols import (
    activation_bytes,
    cached_tokens,
    fresh_tokens,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    prompt,
    qk_nope_head_dim,
    qk_rope_head_dim,
    sliding_window,
    statistic_bytes,
    v_head_dim,
)
from ..operations.shapes import FLOPS_PER_ELEMENT
from . import split_context
from .compressed import CompressedAttention
from .latent import LatentAttention
from .recurrent import Recurrent
from .selected import SelectedKeys

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .attention import SoftmaxAttention
    from .layer import Mixer
    from .structure import InferenceStructure

MEAN = cached_tokens + (fresh_tokens + 1) / 2
"""Keys that a new token sees, the mean."""


def new_tokens(structure: InferenceStructure) -> Any:
    """Tokens of a prompt that are prefilled."""
    return fresh_tokens if structure.prefixed else prompt


def behind_prefix(of: Mixer) -> list[Op | None]:
    """A mixer over the new tokens of prompts."""
    match of:
        case Recurrent() as mixer:
            read = mixer.kept(micro_batch)
            return [
                mixer.kernels.stream(mixer.path("state_read"), read, read, 0),
                *mixer.scan(micro_batch, fresh_tokens),
            ]
        case CompressedAttention() as mixer:
            raise InputError(f"prefix: a cache of compressed entries is not modelled behind one: {mixer.layer.kind}")
        case SelectedKeys() as mixer:
            return mixer.attended(micro_batch, fresh_tokens, mixer.pairs(fresh_tokens, cached_tokens), prompt)
        case LatentAttention() as mixer:
            return _latents(mixer)
        case mixer if mixer.layer.fusion.fused_prefill:
            return [split_context.gathered_cache(mixer, micro_batch, cached_tokens), _keys(mixer)]
        case mixer:
            return list(_stored(mixer))


def _keys(mixer: SoftmaxAttention) -> Op:
    heads, width, mean, longest = mixer.heads, mixer.core_width, MEAN, prompt
    work = att.attention_flops(micro_batch, fresh_tokens, mean, heads, width)
    if mixer.windowed:
        pairs = mixer.visible_pairs(prompt) - mixer.visible_pairs(cached_tokens)
        work = windows.masked_attention_flops(micro_batch, pairs, heads, width)
        mean, longest = pairs / fresh_tokens, Min(prompt, fresh_tokens + sliding_window)
    shape = micro_batch, fresh_tokens, longest, heads, mixer.units, width
    traffic = dec.chunk_attention_bytes(*shape, activation_bytes, kv_bytes)
    traffic += micro_batch * fresh_tokens * heads * statistic_bytes
    blocks = mixer.new_blocks(micro_batch, fresh_tokens, mean, longest, written=not mixer.reuses)
    return mixer.layer.kernels.flash(mixer.path("flash"), work, traffic, blocks)


def _stored(mixer: SoftmaxAttention) -> list[Op]:
    groups, path, kernels = micro_batch * mixer.heads, mixer.path("core"), mixer.layer.kernels
    scores = groups * fresh_tokens * prompt
    kinds = {"left": activation_bytes, "right": activation_bytes}
    traffic = att.softmax_bytes(scores, activation_bytes)
    return [
        kernels.matmul(f"{path}/scores", fresh_tokens, prompt, mixer.key_width, groups, **kinds),
        kernels.stream(f"{path}/softmax", traffic, scores, FLOPS_PER_ELEMENT["softmax"]),
        kernels.matmul(f"{path}/context", fresh_tokens, mixer.value_width, prompt, groups, **kinds),
    ]


def _latents(latent: LatentAttention) -> list[Op | None]:
    """Keys and values of the prefix are expanded from its latents again."""
    widths, kernels = (qk_nope_head_dim, qk_rope_head_dim, v_head_dim), latent.layer.kernels
    work = mla.expanded_attention_flops(micro_batch, fresh_tokens, MEAN, latent.heads, *widths)
    shape = micro_batch, fresh_tokens, prompt, latent.heads
    traffic = mla.expanded_attention_bytes(*shape, *widths, activation_bytes)
    expanded = latent.heads * (qk_nope_head_dim + v_head_dim)
    return [
        split_context.gathered_cache(latent, micro_batch, cached_tokens),
        kernels.matmul(latent.path("latent_up"), micro_batch * prompt, expanded, kv_lora_rank),
        kernels.flash(latent.path("flash"), work, traffic, latent.new_blocks(micro_batch, fresh_tokens, MEAN, prompt)),
    ]
