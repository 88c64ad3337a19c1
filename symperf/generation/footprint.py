"""Bytes on the fullest device of an inference, as named terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import counts
from .. import device_counts as device
from ..formulas import decode as dec
from ..formulas import latent_attention as mla
from ..formulas import memory as mem
from ..formulas.atoms import Max, Min, ceil_div
from ..formulas.symbols import (
    activation_bytes,
    batch,
    dp,
    expert_intermediate_size,
    expert_tp,
    generate,
    head_dim,
    hidden_size,
    intermediate_size,
    kv_block,
    kv_bytes,
    kv_lora_rank,
    micro_batch,
    num_attention_heads,
    num_experts_per_token,
    num_key_value_heads,
    num_layers,
    pp,
    prompt,
    qk_rope_head_dim,
    sliding_window,
    statistic_bytes,
    table_bytes,
    tp,
    vocab_size,
    weight_bytes,
    workspace_bytes,
)

if TYPE_CHECKING:
    from ..architecture import LayerKind
    from .structure import InferenceStructure


def sequence_cache(structure: InferenceStructure, tokens: Any = None) -> Any:
    """Bytes of the cache of one sequence on one device; by default when all of its tokens are generated.

    The last generated token is never read, but its slot is held.
    """
    slots = dec.paged_tokens(prompt + generate if tokens is None else tokens, kv_block)
    kinds = structure.architecture.kinds
    return sum(
        (num_layers if len(kinds) == 1 else counts.count_of(kind)) / pp * _layer_cache(kind, slots) for kind in kinds
    )


def _layer_cache(kind: LayerKind, slots: Any) -> Any:
    if kind.mixer == "latent_attention":
        return slots * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes
    held = Min(slots, sliding_window) if kind.mixer == "local_attention" else slots
    return mem.kv_cache_bytes(held, 1, ceil_div(num_key_value_heads, tp), head_dim, kv_bytes)


def activations(structure: InferenceStructure) -> Any:
    """Bytes of the largest set of activations alive at once: residual stream, and one block's inner tensors."""
    architecture = structure.architecture
    heads, kv_heads = num_attention_heads / tp, ceil_div(num_key_value_heads, tp)
    attention = head_dim * (2 * heads + 2 * kv_heads)
    matrices = 3 if architecture.gated_mlp else 2
    mlp = matrices * intermediate_size / tp
    if architecture.routed:
        experts = num_experts_per_token * (matrices * expert_intermediate_size / expert_tp + 2 * hidden_size)
        mlp = Max(mlp, experts / tp if structure.experts_dealt else experts)
    tokens = micro_batch * prompt
    scores = 0 if structure.fusion.fused_prefill else micro_batch * heads * prompt**2 * activation_bytes
    logits = micro_batch * vocab_size * statistic_bytes
    return tokens * activation_bytes * (2 * hidden_size + Max(attention, mlp)) + scores + logits


def footprint(structure: InferenceStructure) -> dict[str, Any]:
    """Named terms of the memory; a total is their sum."""
    architecture = structure.architecture
    return {
        "weights/layers": mem.weights_memory(sum(device.stage_parameters(architecture)), weight_bytes),
        "weights/ends": mem.weights_memory(counts.stage_end_parameters(architecture), table_bytes),
        "kv_cache": batch / dp * sequence_cache(structure),
        "activations": activations(structure),
        "workspace": workspace_bytes,
    }
