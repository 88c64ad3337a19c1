"""Bytes on the fullest device of an inference, as named terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import counts
from ..formulas import decode as dec
from ..formulas import memory as mem
from ..formulas.atoms import Max, ceil_div
from ..formulas.symbols import (
    activation_bytes,
    batch,
    dp,
    generate,
    head_dim,
    hidden_size,
    intermediate_size,
    kv_block,
    kv_bytes,
    micro_batch,
    num_attention_heads,
    num_key_value_heads,
    num_layers,
    pp,
    prompt,
    statistic_bytes,
    table_bytes,
    tp,
    vocab_size,
    weight_bytes,
    workspace_bytes,
)

if TYPE_CHECKING:
    from .structure import InferenceStructure


def sequence_cache(tokens: Any = None) -> Any:
    """Bytes of the cache of one sequence on one device; by default when all of its tokens are generated.

    The last generated token is never read, but its slot is held.
    """
    slots = dec.paged_tokens(prompt + generate if tokens is None else tokens, kv_block)
    return mem.kv_cache_bytes(slots, num_layers / pp, ceil_div(num_key_value_heads, tp), head_dim, kv_bytes)


def activations(structure: InferenceStructure) -> Any:
    """Bytes of the largest set of activations alive at once: residual stream, and one block's inner tensors."""
    architecture = structure.architecture
    heads, kv_heads = num_attention_heads / tp, ceil_div(num_key_value_heads, tp)
    attention = head_dim * (2 * heads + 2 * kv_heads)
    mlp = (3 if architecture.gated_mlp else 2) * intermediate_size / tp
    tokens = micro_batch * prompt
    logits = micro_batch * vocab_size * statistic_bytes
    return tokens * activation_bytes * (2 * hidden_size + Max(attention, mlp)) + logits


def footprint(structure: InferenceStructure) -> dict[str, Any]:
    """Named terms of the memory; a total is their sum."""
    architecture = structure.architecture
    return {
        "weights/layers": mem.weights_memory(counts.stage_layer_parameters(architecture), weight_bytes),
        "weights/ends": mem.weights_memory(counts.stage_end_parameters(architecture), table_bytes),
        "kv_cache": batch / dp * sequence_cache(),
        "activations": activations(structure),
        "workspace": workspace_bytes,
    }
