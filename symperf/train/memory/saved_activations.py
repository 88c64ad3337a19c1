"""Bytes that a layer, by its kind, and the ends keep of a micro-batch for its backward pass.

A frozen linear layer keeps no input, unless it has an adapter: only gradients of weights read that. All else is kept
where gradients pass, frozen or not: inputs of norms and of activation functions, operands of attention, and what scans
read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import attention as att
from ...formulas.kernels import low_precision as low
from ...formulas.language import symbols as sym
from ...formulas.language.atoms import ceil_div
from ...formulas.language.symbols import encoder_sequence, hidden_size, micro_batch, tp
from ...formulas.memory import saved_activations as saved
from ...formulas.parallel import expert_parallel as dealt
from ...models import attention_widths as widths
from ...models import layer_counts as layers
from ...models import sparse_counts as sparse
from ...models.architecture import RECURRENT, UNIFORM
from ...models.own_sizes import in_own_sizes
from ...operations.shapes import Shapes
from ...plans.gradients import gradients_of
from ..layers.adapters import adapters_kept
from .kept_results import kept_results
from .saved_recurrent import recurrent_statistics, recurrent_width

if TYPE_CHECKING:
    from ...models.architecture import Architecture, LayerKind
    from ...plans.gradients import Gradients
    from ...plans.structure import Structure

ZERO = sympy.S.Zero


@in_own_sizes
def layer_activations(structure: Structure, kind: LayerKind = UNIFORM) -> Any:
    """Bytes that one layer of a kind keeps of one micro-batch for the backward pass."""
    shapes, architecture = Shapes.of(structure, kind), structure.architecture
    tokens, stream = shapes.tokens, shapes.stream_tokens
    gradients = gradients_of(structure)
    if not gradients.flows(kind):
        return ZERO
    if structure.recompute == "full":
        if architecture.hyper_connections:
            return streams_kept(stream)
        return stream_kept(structure, stream) * (sym.num_update_streams if architecture.alternating_updates else 1)
    if "op" in structure.modules:
        return kept_results(structure, kind)
    blocks, norms = _blocks(gradients, kind)
    blocks = 0 if "layernorm" in structure.modules else blocks
    kept = norms * layer_norm_kept(structure, stream) + blocks * read_kept(structure, stream, hidden_size)
    kept += sum((_mixer_kept(structure, each, shapes) for each in kind.alone), ZERO)
    if architecture.hyper_connections:
        kept += _parts(kind) * _streams_kept(stream)
    kept += saved.input_kept_bytes(stream, _side_width(architecture))
    kept += _beside_kept(structure, kind, shapes)
    if kind.ffn in ("dense", "dense_experts") and "mlp" not in structure.modules:
        kept += _inner_kept(structure, tokens, shapes.inner, "mlp", "down")
    if kind.ffn in ("experts", "dense_experts") and "moe" not in structure.modules:
        kept += _experts_kept(structure, shapes)
    if architecture.attention_residuals:
        # A mixture keeps what has been added since the last block beside the mixed input that the norm keeps.
        kept += _parts(kind) * stream_kept(structure, stream)
    if structure.dropout:
        kept += _parts(kind) * saved.dropout_kept_bytes(stream, hidden_size)
    if kind.mixer in ("attention", "local_attention", "latent_attention", "compressed_attention"):
        kept += _core_kept(structure, shapes, shapes.length)
    if kind.cross:
        kept += _cross_kept(structure, shapes)
    return kept + adapters_kept(structure, kind) if structure.adapted else kept


def _side_width(architecture: Architecture) -> Any:
    """Features of a token that side blocks keep: what each product, norm and factor reads, once.

    Of updates all streams, the innovation, and what the two routers read; of the residual of low rank the inputs of its
    products and of its norm but for the stream's; of the layer's features the inputs of products, factors and norm.
    """
    width = (sym.num_update_streams + 3) * hidden_size if architecture.alternating_updates else ZERO
    width += sym.residual_rank + hidden_size if architecture.low_rank_residual else ZERO
    return width + (2 * hidden_size + 4 * sym.layer_input_size if architecture.layer_inputs else ZERO)


def _beside_kept(structure: Structure, kind: LayerKind, shapes: Shapes) -> Any:
    """Bytes that a use of a shared block keeps more: the embedding before and after the norm, adapters, its result."""
    if not kind.shared:
        return ZERO
    ranks = 4 if "adapted_attention" in kind.traits else 1
    kept = saved.input_kept_bytes(shapes.stream_tokens, hidden_size) + saved.input_kept_bytes(
        shapes.tokens, ranks * sym.adapter_rank
    )
    return kept + 2 * read_kept(structure, shapes.stream_tokens, hidden_size)


def stream_kept(structure: Structure, tokens: Any) -> Any:
    """Bytes kept of the residual stream."""
    if structure.wide_stream:
        return saved.wide_input_kept_bytes(tokens, hidden_size, sym.statistic_bytes)
    return saved.input_kept_bytes(tokens, hidden_size)


def norm_kept(structure: Structure, tokens: Any) -> Any:
    """Bytes kept of what a norm reads: the residual stream, or a copy of it in 32 bits."""
    if "copies" in structure.eager:
        return saved.wide_input_kept_bytes(tokens, hidden_size, sym.statistic_bytes)
    return stream_kept(structure, tokens)


def layer_norm_kept(structure: Structure, tokens: Any) -> Any:
    """Bytes kept for a norm of a layer: one that is computed again makes its copy again."""
    return (stream_kept if "layernorm" in structure.modules else norm_kept)(structure, tokens)


def streams_kept(tokens: Any) -> Any:
    """Bytes kept of several residual streams, which the connections of a part, or a whole layer, read."""
    return saved.input_kept_bytes(tokens, sym.num_streams * hidden_size)


def _streams_kept(tokens: Any) -> Any:
    """Bytes that the connections of a part keep: the streams, its result, and weights before and after their functions.

    The mixture is the input of the part's norm.
    """
    weights = saved.logits_kept_bytes(tokens, 2 * (2 + sym.num_streams) * sym.num_streams)
    return streams_kept(tokens) + saved.input_kept_bytes(tokens, hidden_size) + weights


def read_kept(structure: Structure, tokens: Any, width: Any, part: str = "", *layers: str) -> Any:
    """Bytes kept of an input that linear layers of a class alone read: in their products' format, unless frozen.

    Of frozen ones those keep it that have adapters.
    """
    if part and not gradients_of(structure).reads(part, *layers):
        return ZERO
    return (saved.input_kept_bytes if structure.products == "half" else low.product_input_kept_bytes)(tokens, width)


def _result_kept(structure: Structure, tokens: Any, width: Any, *, once: bool = True) -> Any:
    """Bytes kept of attention's result, which a flash kernel's gradient reads in 16 bits too: a cast copy is beside it.

    Where attention is frozen its output projection needs none: nor does eager attention, nor, unless `once`, is
    this another tensor than the kernel's.
    """
    if not gradients_of(structure).reads("attention", "o"):
        return saved.input_kept_bytes(tokens, width) if once and structure.attention == "flash" else ZERO
    kept = saved.input_kept_bytes(tokens, width)
    return kept if structure.products == "half" else kept + low.product_input_kept_bytes(tokens, width)


def _inner_kept(structure: Structure, tokens: Any, width: Any, part: str, last: str) -> Any:
    """Bytes kept inside an MLP of an inner width; what its last product reads only if that is trained or adapted."""
    if structure.products == "half":
        inner = saved.gated_mlp_kept_bytes if structure.architecture.gated_mlp else saved.mlp_kept_bytes
    else:
        gated = structure.architecture.gated_mlp
        inner = low.cast_gated_mlp_kept_bytes if gated else low.cast_mlp_kept_bytes
    kept = inner(tokens, width)
    relu = structure.architecture.activation == "relu"
    if not gradients_of(structure).reads(part, last) and (structure.architecture.gated_mlp or not relu):
        kept -= read_kept(structure, tokens, width)
    # The gradient of ReLU reads its output, which the next product (or the gate's) keeps anyway, unless as a cast copy.
    once = structure.products == "half" or structure.architecture.gated_mlp
    if relu and once:
        kept -= saved.input_kept_bytes(tokens, width)
    return kept


def _parts(kind: LayerKind) -> int:
    """Parts of a layer that add to the residual stream."""
    return (kind.mixer != "none") + (kind.ffn != "none") + kind.cross


def _blocks(gradients: Gradients, kind: LayerKind) -> tuple[int, int]:
    """Normalised inputs of trained linear layers that a layer keeps, and inputs of its norms.

    Mixers side by side each scale what they read (transformers, FalconH1DecoderLayer), so each keeps its own.
    """
    architecture = gradients.architecture
    adapted, experts = gradients.adapts(kind), kind.ffn == "experts" and not architecture.shared_experts
    mixed, fed = (
        bool(gradients.trained_in(kind) & classes or adapted & layers)
        for classes, layers in (
            ({"attention"}, {"q", "k", "v", "q_a", "kv_a", "in"}),
            ({"mlp", "experts", "router"}, set() if experts else {"gate", "up"}),
        )
    )
    own = (1 + len(kind.beside)) * mixed
    if kind.mixer == "none" or kind.ffn == "none":
        return own if kind.ffn == "none" else int(fed), max(architecture.block_norms // 2, 1)
    shared = architecture.parallel_block and architecture.block_norms == 1
    # The norms of a parallel block read one tensor.
    norms = 1 if architecture.parallel_block else max(architecture.block_norms, 1)
    norms -= "normalised_input" in kind.traits
    read = norms + kind.cross * max(architecture.block_norms // 2, 1)
    return (max(own, int(fed)) if shared else own + fed) + kind.cross * mixed, read


def _mixer_kept(structure: Structure, kind: LayerKind, shapes: Shapes) -> Any:
    """Bytes that a mixer keeps between its norm and its projection out, but for the core of attention."""
    architecture, tokens = structure.architecture, shapes.tokens
    index = index_kept(kind, tokens)
    if {"indexer", "reused_index"} & set(kind.traits):
        return _selected_kept(structure, shapes) + index
    if kind.mixer == "latent_attention":
        return _latent_kept(structure, shapes)
    if kind.mixer == "compressed_attention":
        return _compressed_kept(structure, kind, shapes)
    if kind.mixer in RECURRENT:
        return _recurrent_kept(structure, kind, shapes)
    if kind.mixer == "none":
        return ZERO
    width, made = shapes.heads * widths.value_width(kind), widths.made_heads(kind, shapes.key_value_heads)
    # Queries, keys and values: of equal width there is a formula; keys of an earlier layer are kept there.
    if width == shapes.attention_width and made != 0:
        kept = saved.query_key_value_kept_bytes(tokens, shapes.heads, shapes.key_value_heads, shapes.head_dim)
    else:
        kept = saved.input_kept_bytes(tokens, widths.projected(kind, shapes.heads, shapes.key_value_heads))
    if architecture.query_key_norm != "none":
        kept += saved.input_kept_bytes(tokens, shapes.head_dim * (shapes.heads + made))
    if architecture.attention_gate:
        kept += 2 * saved.input_kept_bytes(tokens, width)
    if architecture.head_gate:
        kept += saved.input_kept_bytes(tokens, width + shapes.heads)
    if "distance_bias" in kind.traits:
        kept += saved.input_kept_bytes(tokens, shapes.heads * sym.distance_extent)
    if "convolved" in kind.traits:
        # Inputs of the convolutions: of keys and values, and of what each part adds.
        kept += saved.input_kept_bytes(tokens, 2 * shapes.key_value_heads * shapes.head_dim)
        kept += saved.input_kept_bytes(shapes.stream_tokens, _parts(kind) * hidden_size)
    if "differential" in kind.traits:
        kept += 2 * saved.input_kept_bytes(tokens, width)  # the results of both maps
    if architecture.attention_gate:
        return kept + index + read_kept(structure, tokens, width, "attention", "o")
    once = not (architecture.head_gate or "differential" in kind.traits)
    return kept + index + _result_kept(structure, tokens, width, once=once)


def _core_kept(structure: Structure, shapes: Shapes, keys: Any) -> Any:
    """Bytes that the core of attention keeps beside its operands: statistics, or probabilities."""
    if structure.attention == "flash":
        return saved.flash_kept_bytes(shapes.tokens, shapes.heads)
    if "core_attn" in structure.modules:
        return ZERO
    scores = att.score_elements(micro_batch, shapes.length, shapes.heads)
    scores = scores if keys == shapes.length else scores * keys / shapes.length
    return (saved.scores_kept_bytes if structure.dropout else saved.probabilities_kept_bytes)(scores)


def _cross_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that attention to an encoder keeps: queries and the result; keys and values; and its core."""
    read = gradients_of(structure).reads("attention", "o")
    results = 2 if read or structure.attention == "flash" else 1
    own = results * saved.input_kept_bytes(shapes.tokens, shapes.attention_width)
    other = 2 * saved.input_kept_bytes(micro_batch * encoder_sequence, shapes.key_value_heads * shapes.head_dim)
    return own + other + _core_kept(structure, shapes, encoder_sequence)


def _recurrent_kept(structure: Structure, kind: LayerKind, shapes: Shapes) -> Any:
    """Bytes that a recurrent mixer keeps; what the projection out alone reads is in the format of its products."""
    width, result = recurrent_width(kind)
    kept = (
        saved.input_kept_bytes(shapes.tokens, width) + shapes.tokens * recurrent_statistics(kind) * sym.statistic_bytes
    )
    if kind.mixer == "lightning_attention":
        states = ceil_div(shapes.length, sym.ssm_chunk_size) * result * sym.linear_value_head_dim
        kept += micro_batch * states * sym.state_bytes
    if kind.mixer == "ssm1" and structure.products != "half":
        kept += low.product_input_kept_bytes(shapes.tokens, sym.ssm_inner_size / tp)
    return kept + read_kept(structure, shapes.tokens, result, "attention", "out")


def _latent_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that latent attention keeps: narrow projections before and after their norms, heads, and the result."""
    architecture, tokens, heads = structure.architecture, shapes.tokens, shapes.heads
    ranks = sym.kv_lora_rank + (sym.q_lora_rank if architecture.query_compression else 0)
    reads = gradients_of(structure).reads
    each = 2 * sym.qk_nope_head_dim + 2 * sym.qk_rope_head_dim + sym.v_head_dim
    expanded = 0 if "mla_up_proj" in structure.modules else heads * each
    kept = saved.input_kept_bytes(tokens, ranks + sym.qk_rope_head_dim + expanded)
    gates = 2 if reads("attention", "o") else 1
    kept += gates * saved.input_kept_bytes(tokens, heads * sym.v_head_dim) if architecture.attention_gate else ZERO
    kept += read_kept(structure, tokens, sym.kv_lora_rank, "attention", "kv_b")
    if architecture.query_compression:
        kept += read_kept(structure, tokens, sym.q_lora_rank, "attention", "q_b")
    return kept + _result_kept(structure, tokens, heads * sym.v_head_dim)


def _compressed_kept(structure: Structure, kind: LayerKind, shapes: Shapes) -> Any:
    """Bytes that compressed attention keeps between its norm and its projection out.

    Queries and the key before and after their norms, and what query products read; results before and after their
    positions are taken out, and those of each group; values and gates with entries before and after their norm; of an
    indexer also queries, weights of heads, and which entries it chose.
    """
    tokens, width, d = shapes.tokens, shapes.heads * sym.head_dim, sym.head_dim
    narrow, groups = sym.q_lora_rank + d, sym.output_groups / tp * sym.output_lora_rank
    kept = saved.input_kept_bytes(tokens, narrow + d + 3 * width)
    for read in (sym.q_lora_rank, width, groups):
        kept += read_kept(structure, tokens, read, "attention")
    series = sparse.compressor_series(kind)
    if series:
        kept += saved.input_kept_bytes(tokens, 2 * series * d + 2 * d / sym.compress_ratio)
    if "selected_entries" in kind.traits:
        d, heads = sym.index_head_dim, sym.index_num_heads
        kept += _index_kept(tokens, 2 * series * d + 2 * d / sym.compress_ratio + heads * (d + 1), sym.index_top_keys)
    return kept


def _selected_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that latent attention to selected keys keeps, which is absorbed: no keys and values of heads.

    Narrow projections before and after their norms; of each head the query before and after it is carried into the
    latents' width, and the result before and after it is carried out of it.
    """
    tokens, heads = shapes.tokens, shapes.heads
    ranks, rope = sym.kv_lora_rank + sym.q_lora_rank, sym.qk_rope_head_dim
    each = sym.qk_nope_head_dim + 2 * sym.kv_lora_rank + rope
    each -= sym.qk_nope_head_dim if "attention" in structure.frozen else 0
    kept = saved.input_kept_bytes(tokens, ranks + sym.kv_lora_rank + rope + heads * each)
    kept += read_kept(structure, tokens, sym.q_lora_rank, "attention", "q_b")
    return kept + _result_kept(structure, tokens, heads * sym.v_head_dim, once=False)


def index_kept(kind: LayerKind, tokens: Any) -> Any:
    """Bytes that an indexer keeps: queries, its key before and after its norm, weights of heads, and the selection.

    What is selected is kept as integers of 32 bits; a layer that reuses a selection keeps none of its own.
    """
    if "block_index" in kind.traits:
        heads = ceil_div(sym.index_num_heads, tp)
        return _index_kept(tokens, 2 * sym.index_head_dim * (heads + 1), heads * sym.index_top_blocks)
    if "indexer" not in kind.traits:
        return ZERO
    heads, width = sym.index_num_heads, sym.index_head_dim
    return _index_kept(tokens, width * (heads + 2) + heads, sym.index_top_keys)


def _index_kept(tokens: Any, width: Any, selected: Any) -> Any:
    return saved.input_kept_bytes(tokens, width) + tokens * selected * sym.statistic_bytes


def _experts_kept(structure: Structure, shapes: Shapes) -> Any:
    """Bytes that experts keep: scores of the router, rows in and out, inner tensors; and those of shared experts."""
    architecture, own = structure.architecture, shapes.stream_tokens
    arriving = dealt.arriving_tokens(own, sym.num_experts_per_token, sym.token_imbalance) * sym.expert_tp
    hidden = layers.expert_hidden(architecture)
    kept = saved.logits_kept_bytes(own, sym.num_experts) + saved.input_kept_bytes(arriving, hidden)
    kept += read_kept(structure, arriving, hidden, "experts", "experts")
    kept += read_kept(structure, own, hidden, "experts") if architecture.latent_experts else ZERO
    kept += saved.input_kept_bytes(own, hidden) if architecture.latent_expert_norm else ZERO
    inner = sym.expert_intermediate_size / sym.expert_tp
    kept += _inner_kept(structure, arriving, inner, "experts", "experts")
    if structure.separate_experts and architecture.limited_gate and "moe_act" not in structure.modules:
        # Limits keep what they read, and the fused activation what they wrote.
        kept += sym.separate_expert_kernels * saved.input_kept_bytes(arriving, 2 * inner)
    if "moe_act" in structure.modules and gradients_of(structure).reads("experts", "experts"):
        kept -= read_kept(structure, arriving, inner, "experts", "experts")
    if architecture.shared_experts and "shared_experts" not in structure.modules:
        kept += _inner_kept(structure, shapes.tokens, sym.shared_expert_intermediate_size / sym.tp, "experts", "down")
    return kept


@in_own_sizes
def unneeded_below(structure: Structure, kind: LayerKind) -> Any:
    """Bytes of `layer_activations` that the lowest layer does not keep where gradients end in it.

    Norms that are trained end them at the input of the layer; a trained mixer at its norm; else the MLP at its own.
    """
    if structure.recompute == "full" or "layer_norms" in gradients_of(structure).trained_in(kind):
        return ZERO
    stream = layer_norm_kept(structure, Shapes.of(structure, kind).stream_tokens)
    if "attention" not in structure.frozen or kind.ffn == "none":
        return stream if structure.architecture.block_norms else ZERO
    fed = replace(kind, mixer="none", cross=False, beside=())
    norm = stream if structure.architecture.block_norms > 1 else ZERO
    return layer_activations(structure, kind) - layer_activations(structure, fed) + norm
