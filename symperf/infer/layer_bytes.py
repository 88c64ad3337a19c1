"""Bytes of one layer of an inference on one device: its cache, and its weights by class of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.kernels import latent_attention as mla
from ..formulas.language.atoms import Min, ceil_div
from ..formulas.language.symbols import (
    index_key_bytes,
    kv_bytes,
    kv_lora_rank,
    num_experts,
    num_key_value_heads,
    qk_rope_head_dim,
    redundant_experts,
    sliding_window,
    table_bytes,
    tp,
    weight_bytes,
)
from ..formulas.memory import model_state
from ..formulas.parallel.expert_copies import expert_slots
from ..models import attention_widths as widths
from ..models import sparse_counts as sparse
from ..models.architecture import RECURRENT
from ..models.own_sizes import in_own_sizes
from ..train.memory import device_counts as device
from .compressed import compressed_cache_bytes
from .kernels import numbered_symbols

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from .structure import InferenceStructure


@in_own_sizes
def layer_cache(kind: LayerKind, slots: Any) -> Any:
    """Bytes of a layer's keys and values, latents or entries of so many slots of a sequence on one device."""
    index = slots * sparse.index_elements(kind) * index_key_bytes
    if kind.mixer == "latent_attention":
        return slots * mla.latent_cache_elements(kv_lora_rank, qk_rope_head_dim) * kv_bytes + index
    if kind.mixer == "compressed_attention":
        return compressed_cache_bytes(kind, slots)
    held = Min(slots, sliding_window) if kind.mixer == "local_attention" else slots
    heads = widths.made_heads(kind, ceil_div(num_key_value_heads, tp))
    return index + model_state.kv_cache_bytes(held, 1, heads, widths.stored_width(kind), kv_bytes)


def growing_cache(kind: LayerKind, tokens: Any) -> Any:
    """Bytes of a layer's cache of so many tokens on one device; 0 of a kind that keeps a state, or nothing."""
    return 0 if kind.encoder or kind.mixer == "none" or kind.mixer in RECURRENT else layer_cache(kind, tokens)


def weight_bytes_of(structure: InferenceStructure, name: str) -> Any:
    """Bytes of a weight of a class of modules, or of the rest of a layer."""
    if name in (*structure.kept, "rest"):
        return table_bytes
    number = structure.of_class(name).format
    return weight_bytes if number == 1 else numbered_symbols(number)[weight_bytes]


def class_bytes(structure: InferenceStructure, kind: LayerKind, name: str) -> Any:
    """Bytes of the weights of a layer on one device in a class of modules, or in none of them ("rest")."""
    held = sum(device.class_parameters(structure.architecture, kind, (name,)))
    held *= copied_share(structure) if name == "experts" else 1
    if name == "rest":
        return held * (table_bytes if structure.kept or structure.others else weight_bytes)
    return held * weight_bytes_of(structure, name)


def copied_share(structure: InferenceStructure) -> Any:
    """Weights of routed experts over those of each once."""
    return expert_slots(num_experts, redundant_experts) / num_experts if structure.copied else 1
