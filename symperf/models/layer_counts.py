"""Parameters, products and cached bytes of one layer, by its kind, as closed forms; nothing here is sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import attention as att
from ..formulas.kernels import attention_residuals as residuals
from ..formulas.kernels import compressed_attention as comp
from ..formulas.kernels import disentangled_attention as dis
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import matmul, moe, windows
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import Min
from ..formulas.memory import parameters as par
from . import attention_widths as widths
from . import near_counts as near
from . import recurrent_counts as recurrent
from . import shared_blocks as block
from . import side_counts as side
from . import sparse_counts as sparse
from .architecture import RECURRENT
from .own_sizes import in_own_sizes

if TYPE_CHECKING:
    from .architecture import Architecture, LayerKind

ZERO = sympy.S.Zero
h, f = sym.hidden_size, sym.intermediate_size


def norm(architecture: Architecture, width: Any) -> Any:
    """Parameters of a norm of the model's kind."""
    return par.norm_parameters(width) * (2 if architecture.norm_bias else 1) if architecture.norm_parameters else ZERO


# Products: weights that every token meets once ---------------------------------------------------------------


@in_own_sizes
def projection_weights(architecture: Architecture, kind: LayerKind) -> Any:
    """Weights of the linear layers of a layer's mixer, the first of several."""
    a = sym.num_attention_heads
    if kind.mixer in ("attention", "local_attention"):
        kv_heads, width = sym.num_key_value_heads, sym.head_dim
        total = par.attention_parameters(h, a, widths.made_heads(kind, kv_heads), widths.stored_width(kind))
        if architecture.shared_key_value and kind.mixer == "attention":
            total -= h * kv_heads * width
        total += near.weights(kind) + (h * a if architecture.head_gate else ZERO)
        total += block.wider_weights(kind) + block.attention_adapter_weights(kind) + block.joining_weights(kind)
        return total + (h * a * width if architecture.attention_gate else ZERO)
    if kind.mixer == "latent_attention":
        nope, rope = sym.qk_nope_head_dim, sym.qk_rope_head_dim
        own = mla.latent_attention_parameters(h, a, sym.kv_lora_rank, nope, rope, sym.v_head_dim)
        own += h * a * sym.v_head_dim if architecture.attention_gate else ZERO
        if architecture.query_compression:
            return own + mla.compressed_query_parameters(h, a, sym.q_lora_rank, nope, rope)
        return own + mla.latent_query_parameters(h, a, nope, rope)
    if kind.mixer == "compressed_attention":
        output = sym.output_groups, sym.output_lora_rank
        return comp.shared_key_parameters(h, a, sym.head_dim, sym.q_lora_rank, *output)
    return ZERO if kind.mixer == "none" else recurrent.weights(kind)


@in_own_sizes
def cross_weights(kind: LayerKind) -> tuple[Any, Any]:
    """Weights of cross-attention that decoder tokens meet, and those that encoder tokens meet."""
    if not kind.cross:
        return ZERO, ZERO
    query = h * sym.num_attention_heads * sym.head_dim
    return 2 * query, 2 * h * sym.num_key_value_heads * sym.head_dim


@in_own_sizes
def mlp_weights(architecture: Architecture, kind: LayerKind) -> Any:
    """Weights of the dense MLP's matrices."""
    count = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    return count(h, f) + block.adapter_weights(architecture, kind) if kind.ffn in ("dense", "dense_experts") else ZERO


def expert_hidden(architecture: Architecture) -> Any:
    """Width of what a routed expert reads and gives."""
    return sym.moe_latent_size if architecture.latent_experts else h


def expert_weights(architecture: Architecture, width: Any) -> Any:
    """Weights of a routed expert's matrices."""
    count = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    return count(expert_hidden(architecture), width)


def latent_weights(architecture: Architecture) -> Any:
    """Weights of a layer's projections into the width of its routed experts, and back."""
    return 2 * par.linear_parameters(h, sym.moe_latent_size) if architecture.latent_experts else ZERO


def shared_weights(architecture: Architecture) -> Any:
    """Weights of the matrices of a layer's shared experts."""
    if not architecture.shared_experts:
        return ZERO
    count = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    return count(h, sym.shared_expert_intermediate_size)


# Parameters ---------------------------------------------------------------------------------------------------


def expert_parameters(architecture: Architecture) -> Any:
    """Parameters of one routed expert."""
    width = sym.expert_intermediate_size
    biases = (
        (2 if architecture.gated_mlp else 1) * width + expert_hidden(architecture) if architecture.expert_bias else ZERO
    )
    return expert_weights(architecture, width) + biases


@in_own_sizes
def layer_parameters(architecture: Architecture, kind: LayerKind) -> Any:
    """Parameters of a layer of a kind."""
    mixers = (projection_weights(architecture, each) + mixer_vectors(architecture, each) for each in kind.alone)
    total = sum(mixers, sum(cross_weights(kind)) + mlp_weights(architecture, kind) + norms(architecture, kind))
    total += sparse.indexer_weights(kind) + sparse.compressor_weights(kind) + sparse.vectors(kind)
    total += sparse.connection_weights(architecture, kind) + side.parameters(architecture)
    if architecture.attention_residuals:
        total += sparse.parts(kind) * residuals.attention_residual_parameters(h)
    if kind.ffn in ("dense", "dense_experts") and architecture.mlp_bias:
        total += (2 if architecture.gated_mlp else 1) * f + h
    if kind.ffn in ("dense", "dense_experts"):
        total += architecture.activation_parameters
    if kind.ffn in ("experts", "dense_experts"):
        total += sym.num_experts * expert_parameters(architecture) + router_parameters(architecture)
        total += latent_weights(architecture)
        total += par.norm_parameters(sym.moe_latent_size) if architecture.latent_expert_norm else ZERO
        total += shared_weights(architecture) + (h if architecture.shared_expert_gate else ZERO)
    return total


@in_own_sizes
def inactive_parameters(architecture: Architecture, kind: LayerKind) -> Any:
    """Parameters of the experts of a layer that a token does not pass."""
    if kind.ffn not in ("experts", "dense_experts"):
        return ZERO
    return (sym.num_experts - sym.num_experts_per_token) * expert_parameters(architecture)


def router_rows(architecture: Architecture) -> Any:
    """Experts that the router scores: shared ones too where it weighs them."""
    return sym.num_experts + (sym.num_scored_experts if architecture.scored_shared_experts else 0)


def router_parameters(architecture: Architecture) -> Any:
    """Parameters of a layer's router."""
    total = moe.router_parameters(h, router_rows(architecture)) + int(architecture.scored_shared_experts)
    total += sym.num_experts if architecture.router_bias else ZERO
    return total + (h + sym.num_experts if architecture.router_scale else ZERO)


@in_own_sizes
def norms(architecture: Architecture, kind: LayerKind) -> Any:
    """Parameters of a layer's norms of hidden width: half for one part, one more for attention to an encoder."""
    whole = kind.mixer != "none" and kind.ffn != "none"
    count = architecture.block_norms if whole else sympy.Rational(architecture.block_norms, 2)
    count -= "normalised_input" in kind.traits
    scales = ((kind.mixer != "none") + (kind.ffn != "none")) * h if architecture.layer_scale else ZERO
    cross = max(architecture.block_norms // 2, 1) if kind.cross else 0
    return (count + cross + kind.shared) * norm(architecture, h) + scales


@in_own_sizes
def mixer_vectors(architecture: Architecture, kind: LayerKind) -> Any:
    """Biases, inner norms and other vectors of a layer's mixer, the first of several."""
    if kind.mixer in ("attention", "local_attention"):
        return _attention_vectors(architecture, kind)
    if kind.mixer == "latent_attention":
        total = par.norm_parameters(sym.kv_lora_rank)
        total += par.norm_parameters(sym.q_lora_rank) if architecture.query_compression else ZERO
        if architecture.qkv_bias:
            total += sym.kv_lora_rank + sym.qk_rope_head_dim
            total += sym.q_lora_rank if architecture.query_compression else ZERO
        return total + (h if architecture.attention_output_bias else ZERO)
    if kind.mixer in ("compressed_attention", "none"):
        return ZERO
    return recurrent.vectors(architecture, kind)


def _attention_vectors(architecture: Architecture, kind: LayerKind) -> Any:
    a = sym.num_attention_heads
    kv_heads, width = sym.num_key_value_heads, sym.head_dim
    blocks = 2 if kind.cross else 1
    total = ZERO
    if architecture.qkv_bias:
        total += blocks * widths.projected(kind, a, kv_heads)
        total -= ZERO if architecture.key_bias else blocks * kv_heads * width
    if architecture.attention_output_bias:
        total += blocks * h
    if architecture.query_key_norm == "per_head":
        total += widths.head_norms(kind) * par.norm_parameters(width) * (2 if architecture.query_key_norm_bias else 1)
    elif architecture.query_key_norm == "full_width":
        total += par.norm_parameters(width * (a + widths.made_heads(kind, kv_heads)))
    if "differential" in kind.traits:
        total += 4 * par.norm_parameters(width)  # of which two products weigh the subtracted map
    total += near.vectors(kind)
    return total + (a if architecture.attention_sinks or "sinks" in kind.traits else ZERO)


# Forward FLOPs --------------------------------------------------------------------------------------------------


@in_own_sizes
def layer_flops(
    architecture: Architecture, kind: LayerKind, queries: Any, keys: Any, *, stepwise: bool = False
) -> dict[str, Any]:
    """FLOPs of a forward pass of B sequences through a layer, by class.

    Args:
        architecture: of the model.
        kind: of the layer.
        queries: new tokens of a sequence.
        keys: tokens that they attend to, all pairs counted; `queries` where nothing is cached.
        stepwise: recurrent layers take token by token, as generation does, and not chunks; the encoder is done, and
            its keys and values are cached.
    """
    batch = sym.batch
    tokens = batch * queries

    def product(weights: Any, rows: Any = tokens) -> Any:
        return matmul.matmul_flops(rows, 1, weights, 1)

    found = {"mlp": product(mlp_weights(architecture, kind))}
    projections = product(projection_weights(architecture, kind))
    if kind.mixer in ("attention", "local_attention"):
        found["attention_scores"] = att.attention_flops(
            batch, queries, keys, sym.num_attention_heads, widths.core_width(kind)
        )
        found["projections"] = projections
        if architecture.positions == "disentangled":
            # Queries and keys of relative positions are those of no sequence.
            found["attention_scores"] += dis.relative_scores_flops(
                batch, queries, sym.relative_rows, sym.num_attention_heads, sym.head_dim
            )
            found["projections"] += product(2 * h * sym.num_attention_heads * sym.head_dim, sym.relative_rows)
    elif kind.mixer == "latent_attention":
        latent = sym.qk_nope_head_dim, sym.qk_rope_head_dim, sym.v_head_dim
        found["attention_scores"] = mla.expanded_attention_flops(batch, queries, keys, sym.num_attention_heads, *latent)
        found["projections"] = projections
    elif kind.mixer == "compressed_attention":
        seen = sparse.dense_keys(kind, queries, keys, stepwise)
        found["attention_scores"] = att.attention_flops(batch, queries, seen, sym.num_attention_heads, sym.head_dim)
        found["projections"] = projections
    for each in (each for each in kind.alone if each.mixer in RECURRENT):
        own = {"ssm_projections": product(projection_weights(architecture, each))}
        own |= recurrent.flops(each, queries, stepwise)
        found |= {name: found.get(name, ZERO) + flops for name, flops in own.items()}
    found |= sparse.flops(architecture, kind, queries, keys)
    found |= near.flops(kind, queries, stepwise)
    found["side_blocks"] = side.flops(architecture, tokens)
    if architecture.attention_residuals:
        sources = residuals.residual_sources(sym.num_layers, sym.residual_block)
        mixture = residuals.attention_residual_flops(tokens, h, sources)
        found["attention_residuals"] = sparse.parts(kind) * mixture
    if kind.cross:
        own, other = cross_weights(kind)
        encoder = batch * sym.encoder_sequence
        found["cross_projections"] = product(own) + (ZERO if stepwise else product(other, encoder))
        found["cross_attention_scores"] = att.attention_flops(
            batch, queries, sym.encoder_sequence, sym.num_attention_heads, sym.head_dim
        )
    if kind.ffn in ("experts", "dense_experts"):
        found["router"] = moe.router_flops(tokens, h, router_rows(architecture))
        count = moe.gated_expert_flops if architecture.gated_mlp else moe.plain_expert_flops
        hidden, inner = expert_hidden(architecture), sym.expert_intermediate_size
        found["experts"] = count(tokens, sym.num_experts_per_token, hidden, inner)
        found["expert_projections"] = product(latent_weights(architecture))
        if architecture.shared_experts:
            found["shared_experts"] = product(shared_weights(architecture))
            # The gate is a product with one column.
            found["router"] += product(h) if architecture.shared_expert_gate else ZERO
    return {name: flops for name, flops in found.items() if flops != 0}


@in_own_sizes
def visible_scores(architecture: Architecture, kind: LayerKind, scores: Any) -> Any:
    """The part of a layer's score FLOPs over s queries and s keys that its mask leaves."""
    s, window = sym.sequence, sym.sliding_window
    if kind.encoder:
        if kind.mixer == "local_attention":
            whole = s * Min(s, window) if architecture.chunked_attention else windows.two_sided_pairs(s, window)
            return scores * whole / s**2
        return scores
    selected = sparse.prefill_pairs(kind, s)
    if selected is not None:
        every = s * sparse.dense_keys(kind, s, s, False) if kind.mixer == "compressed_attention" else s**2
        return scores * selected / every
    if kind.mixer == "local_attention":
        pairs = windows.chunk_pairs(s, window) if architecture.chunked_attention else windows.window_pairs(s, window)
    else:
        pairs = windows.causal_pairs(s)
    return scores * pairs / s**2


# Caches ---------------------------------------------------------------------------------------------------------


@in_own_sizes
def cached_elements(kind: LayerKind) -> Any:
    """Elements that a layer of a decoder caches for every token while no window is full, without compressed entries."""
    if kind.encoder:
        return ZERO
    if kind.mixer == "latent_attention":
        return mla.latent_cache_elements(sym.kv_lora_rank, sym.qk_rope_head_dim) + sparse.index_elements(kind)
    if kind.mixer == "compressed_attention":
        return sym.head_dim
    if kind.mixer in ("attention", "local_attention"):
        kv_heads = widths.made_heads(kind, sym.num_key_value_heads)
        return 2 * kv_heads * widths.stored_width(kind) + sparse.index_elements(kind)
    return ZERO


@in_own_sizes
def cached_tokens(kind: LayerKind, context: Any) -> Any:
    """Tokens of a context that a layer's cache holds."""
    return Min(context, sym.sliding_window) if windowed(kind) else context


def windowed(kind: LayerKind) -> bool:
    """Whether a layer's cache of tokens is a window."""
    return kind.mixer in ("local_attention", "compressed_attention")


@in_own_sizes
def entry_elements(kind: LayerKind, context: Any, *, whole: bool = True) -> Any:
    """Elements of the compressed entries of a context; not rounded down, their mean growth a token."""
    if (elements := sparse.entry_elements(kind)) == 0:
        return ZERO
    ratio = sym.compress_ratio
    return elements * (comp.compressed_entries(context, ratio) if whole else context / ratio)


@in_own_sizes
def state_bytes(kind: LayerKind) -> Any:
    """Bytes that a layer keeps of a sequence, however long it is: recurrent states, and what compressors keep."""
    kept = (recurrent.state_bytes(each) for each in kind.alone if each.mixer in RECURRENT)
    return sum(kept, sparse.state_bytes(kind) + near.state_bytes(kind))
