"""Parameters of a layer on one device, by its kind: dense ones, and those of its routed experts.

Tensor parallelism splits the matrices of a layer over t devices, expert parallelism its experts over e, of which each
may be split over t_e. Norms, routers, the compressing projections of latent attention and the biases of row-split
layers are whole on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import attention as att
from ...formulas.kernels import attention_residuals as residuals
from ...formulas.kernels import compressed_attention as comp
from ...formulas.kernels import latent_attention as mla
from ...formulas.language import symbols as sym
from ...formulas.language.atoms import Max, ceil_div
from ...formulas.language.symbols import ep, expert_tp, hidden_size, intermediate_size, num_attention_heads, tp
from ...formulas.memory import parameters as par
from ...models import attention_widths as widths
from ...models import counts
from ...models import layer_counts as layers
from ...models import near_counts as near
from ...models import shared_blocks as block
from ...models import side_counts as side
from ...models import sparse_counts as sparse
from ...models.architecture import RECURRENT
from ...models.own_sizes import in_own_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from ...models.architecture import Architecture, LayerKind

ZERO = sympy.S.Zero


DEALT = {
    size: size / tp
    for size in (
        sym.ssm_num_heads,
        sym.ssm_inner_size,
        sym.lru_width,
        num_attention_heads,
        sym.linear_num_key_heads,
        sym.linear_num_value_heads,
    )
} | {sym.ssm_groups: ceil_div(sym.ssm_groups, tp)}
"""Sizes of recurrent mixers of which every device has its share, heads as the blocks of gates among them; of groups of
B and C at least one (training refuses more devices than groups, inference copies them)."""
INDEXED = {sym.index_num_heads: ceil_div(sym.index_num_heads, tp)}
"""Heads of an indexer beside grouped heads: it has one for each key-value head, and is dealt as these."""


def dense_parameters(architecture: Architecture, kind: LayerKind, frozen: Container[str] = ()) -> Any:
    """Parameters of a layer on one device without its routed experts, and without those of frozen classes."""
    return sum((form for name, form in dense_parts(architecture, kind).items() if name not in frozen), ZERO)


@in_own_sizes
def dense_parts(architecture: Architecture, kind: LayerKind) -> dict[str, Any]:
    """The same by class of parameters (`plans.freezing.LAYERS`)."""
    streams = sparse.connection_weights(architecture, kind) + side.parameters(architecture)
    if architecture.attention_residuals:
        streams += sparse.parts(kind) * residuals.attention_residual_parameters(hidden_size)
    found = {
        "attention": _mixers(architecture, kind) + _cross(architecture, kind) + _beside(kind),
        "layer_norms": layers.norms(architecture, kind),
        "streams": streams,
    }
    if kind.ffn in ("dense", "dense_experts"):
        inner = intermediate_size / tp
        total = (par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters)(hidden_size, inner)
        total += _mlp_adapter(architecture, kind)
        total += architecture.activation_parameters
        if architecture.mlp_bias:
            total += (2 if architecture.gated_mlp else 1) * inner + hidden_size
        found["mlp"] = total
    if kind.ffn in ("experts", "dense_experts"):
        total = layers.latent_weights(architecture) + layers.shared_weights(architecture) / tp
        total += par.norm_parameters(sym.moe_latent_size) if architecture.latent_expert_norm else ZERO
        total += hidden_size if architecture.shared_expert_gate else ZERO
        found |= {"experts": total, "router": layers.router_parameters(architecture)}
    return found


@in_own_sizes
def expert_parameters(architecture: Architecture, kind: LayerKind) -> Any:
    """Parameters of the routed experts of a layer on one device."""
    if kind.ffn not in ("experts", "dense_experts"):
        return ZERO
    weights = layers.expert_weights(architecture, sym.expert_intermediate_size)
    biases = layers.expert_parameters(architecture) - weights
    return sym.num_experts / ep * (weights / expert_tp + biases)


@in_own_sizes
def class_parameters(architecture: Architecture, kind: LayerKind, classes: Container[str]) -> list[Any]:
    """Parameters of a layer on one device in some classes of modules: attention, mlp, experts, shared, and rest.

    The rest, norms and routers, is what no checkpoint quantizes.
    """
    mlp = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    dense = mlp(hidden_size, intermediate_size / tp) if kind.ffn in ("dense", "dense_experts") else ZERO
    dense += _mlp_adapter(architecture, kind)
    routed = kind.ffn in ("experts", "dense_experts")
    found = {
        "attention": _mixers(architecture, kind) + _cross(architecture, kind),
        "mlp": dense,
        "experts": expert_parameters(architecture, kind),
        "shared": layers.shared_weights(architecture) / tp if routed else ZERO,
    }
    found["rest"] = dense_parameters(architecture, kind) - found["attention"] - dense - found["shared"]
    return [form for name, form in found.items() if name in classes]


def _mixers(architecture: Architecture, kind: LayerKind) -> Any:
    return sum((_mixer(architecture, each) for each in kind.alone), ZERO)


def _mixer(architecture: Architecture, kind: LayerKind) -> Any:
    if kind.mixer == "latent_attention":
        return _latent(architecture) + sparse.indexer_weights(kind) + sparse.vectors(kind)
    if kind.mixer == "compressed_attention":
        dealt = num_attention_heads / tp, sym.head_dim, sym.q_lora_rank, sym.output_groups / tp, sym.output_lora_rank
        return comp.shared_key_parameters(hidden_size, *dealt)
    if kind.mixer == "short_convolution":
        # Channels are dealt; the bias of the projection out is added once, on every device.
        vectors = layers.mixer_vectors(architecture, kind)
        whole = hidden_size if architecture.ssm_projection_bias else ZERO
        return (layers.projection_weights(architecture, kind) + vectors - whole) / tp + whole
    if kind.mixer in RECURRENT:
        whole = layers.projection_weights(architecture, kind) + layers.mixer_vectors(architecture, kind)
        return sympy.sympify(whole, strict=True).xreplace(DEALT)
    heads = num_attention_heads / tp
    kv_heads, width = ceil_div(sym.num_key_value_heads, tp), sym.head_dim
    # Shared, keys are values too: queries, keys and the output are left.
    shared = architecture.shared_key_value and kind.mixer == "attention"
    made = widths.made_heads(kind, kv_heads / 2 if shared else kv_heads)
    total = par.attention_parameters(hidden_size, heads, made, widths.stored_width(kind))
    total += hidden_size * heads if architecture.head_gate else ZERO
    total += sympy.sympify(sparse.indexer_weights(kind), strict=True).xreplace(INDEXED) + sparse.vectors(kind)
    total += _wider(kind) + _attention_adapters(kind) + block.joining_weights(kind)
    total += near.weights(kind) / tp + near.vectors(kind, kv_heads)
    if architecture.attention_gate:
        total += hidden_size * heads * width
    if architecture.query_key_norm == "per_head":
        total += widths.head_norms(kind) * par.norm_parameters(width) * (2 if architecture.query_key_norm_bias else 1)
    elif architecture.query_key_norm == "full_width":
        total += par.norm_parameters(width * (heads + widths.made_heads(kind, kv_heads)))
    if architecture.qkv_bias:
        total += widths.projected(kind, heads, kv_heads)
        total -= ZERO if architecture.key_bias else kv_heads * width
    if architecture.attention_output_bias:
        total += hidden_size
    if "differential" in kind.traits:
        total += 4 * par.norm_parameters(width)
    return total + (heads if architecture.attention_sinks or "sinks" in kind.traits else ZERO)


def _beside(kind: LayerKind) -> Any:
    """Compressors and indexers, whole on every device and never quantized, with norms, and sinks of its heads.

    Indexers are whole in vLLM, deepseek_v4/attention.py: their scores are sums over all of their heads.
    """
    if kind.mixer != "compressed_attention":
        return ZERO
    vectors = sparse.vectors(kind).xreplace({num_attention_heads: num_attention_heads / tp})
    return sparse.compressor_weights(kind) + sparse.indexer_weights(kind) + vectors


def _projected() -> Any:
    """Features of queries, keys and values on a device."""
    return att.query_key_value_width(num_attention_heads / tp, ceil_div(sym.num_key_value_heads, tp), sym.head_dim)


def _wider(kind: LayerKind) -> Any:
    return hidden_size * _projected() if kind.reads_embedding else ZERO


def _attention_adapters(kind: LayerKind) -> Any:
    """Adapters on a device: whole up to their rank, and split from there."""
    if "adapted_attention" not in kind.traits:
        return ZERO
    return 3 * par.linear_parameters(2 * hidden_size, sym.adapter_rank) + sym.adapter_rank * _projected()


def _mlp_adapter(architecture: Architecture, kind: LayerKind) -> Any:
    if not kind.shared:
        return ZERO
    ups = 2 if architecture.gated_mlp else 1
    return sym.adapter_rank * (hidden_size + ups * intermediate_size / tp)


def _own(architecture: Architecture, kind: LayerKind, frozen: Container[str]) -> Any:
    """What every use of a shared block has for itself, without frozen classes."""
    attention = ZERO if "attention" in frozen else _attention_adapters(kind) + block.joining_weights(kind)
    return attention + (ZERO if "mlp" in frozen else _mlp_adapter(architecture, kind))


def _cross(architecture: Architecture, kind: LayerKind) -> Any:
    """Attention to an encoder: as plain attention, whose keys and values read the encoder's output."""
    if not kind.cross:
        return ZERO
    heads, kv_heads, width = num_attention_heads / tp, ceil_div(sym.num_key_value_heads, tp), sym.head_dim
    total = par.attention_parameters(hidden_size, heads, kv_heads, width)
    if architecture.qkv_bias:
        total += att.query_key_value_width(heads, kv_heads, width)
        total -= ZERO if architecture.key_bias else kv_heads * width
    return total + (hidden_size if architecture.attention_output_bias else ZERO)


def _latent(architecture: Architecture) -> Any:
    heads, nope, rope = num_attention_heads / tp, sym.qk_nope_head_dim, sym.qk_rope_head_dim
    total = mla.latent_attention_parameters(hidden_size, heads, sym.kv_lora_rank, nope, rope, sym.v_head_dim)
    total += hidden_size * heads * sym.v_head_dim if architecture.attention_gate else ZERO
    total += par.norm_parameters(sym.kv_lora_rank)
    if architecture.query_compression:
        total += mla.compressed_query_parameters(hidden_size, heads, sym.q_lora_rank, nope, rope)
        return total + par.norm_parameters(sym.q_lora_rank)
    return total + mla.latent_query_parameters(hidden_size, heads, nope, rope)


def dealt_parameters(
    architecture: Architecture, layers_of: Callable[[Any], Any], frozen: Container[str] = ()
) -> tuple[Any, Any]:
    """Parameters of a device's layers: dense ones, and those of routed experts.

    Args:
        architecture: of the model.
        layers_of: how many layers the device has of which the model has a count.
        frozen: classes of parameters that are not counted.
    """
    kinds = [(layers_of(count), kind) for count, kind in counts.kinds_with_counts(architecture)]
    each = ((count, dense_parameters(architecture, kind, frozen), kind) for count, kind in kinds)
    dense = sympy.Add(*(block.of_all_layers(n, one, _own(architecture, kind, frozen), kind) for n, one, kind in each))
    if "experts" in frozen:
        return dense, ZERO
    return dense, sympy.Add(*(count * expert_parameters(architecture, kind) for count, kind in kinds))


def largest_layer_parameters(architecture: Architecture) -> Any:
    """Parameters on one device of the kind of layer that has most."""
    kinds = [kind for _, kind in counts.kinds_with_counts(architecture)]
    return Max(*(dense_parameters(architecture, kind) + expert_parameters(architecture, kind) for kind in kinds))
