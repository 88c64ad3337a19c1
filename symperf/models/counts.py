"""Parameters and forward FLOPs of a whole model, and parameters per device, as closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import attention as att
from ..formulas.kernels import attention_residuals as residuals
from ..formulas.kernels import hyper_connections as hyper
from ..formulas.kernels import latent_attention as mla
from ..formulas.kernels import matmul
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import Max, above_one, ceil_div, complement
from ..formulas.language.symbols import (
    SYMBOLS,
    batch,
    head_dim,
    hidden_size,
    num_attention_heads,
    num_key_value_heads,
    num_layers,
    position_rows,
    pp,
    sequence,
    tp,
    vocab_size,
)
from ..formulas.memory import parameters as par
from . import layer_counts as layers
from . import shared_blocks as block
from . import side_counts as side
from . import sparse_counts as sparse
from .architecture import UNIFORM

if TYPE_CHECKING:
    from .architecture import Architecture, LayerKind

ZERO = sympy.S.Zero
CLASSES = ("attention_scores", "projections", "mlp", "lm_head")
"""Classes of products that every model's answer has, if only as 0."""


def _norm(architecture: Architecture, width: Any) -> Any:
    return layers.norm(architecture, width)


def count_of(kind: LayerKind) -> Any:
    """The symbol that counts the layers of a kind."""
    return SYMBOLS[kind.count].symbol


def kinds_with_counts(architecture: Architecture) -> list[tuple[Any, LayerKind]]:
    """The kinds of layers, each with the symbol that counts them; a uniform dense model has one kind."""
    if architecture.uniform_dense:
        return [(num_layers, UNIFORM)]
    return [(count_of(kind), kind) for kind in architecture.kinds]


SPECTRA = ((2, 3 * sym.mel_bins), (1, 3 * hidden_size))
"""Convolutions that make an encoder's tokens of spectra: rows for each token, and values that each row reads.

Both have three taps, and the second steps over every other row (Radford et al. 2022, Whisper, section 2.2).
"""


def _position_rows(architecture: Architecture) -> Any:
    """Rows of the tables of positions, of which an encoder has its own."""
    encoder = sym.encoder_position_rows if architecture.spectra else position_rows
    return position_rows + (architecture.stacks - 1) * encoder


def embedding_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of the first stage's end: token and position tables, and the norm after them if there is one."""
    stacks = architecture.stacks
    if architecture.patches:
        vectors = int(architecture.patch_bias) + int(architecture.class_token) + int(architecture.mask_token)
        total = par.linear_parameters(sym.patch_features, hidden_size) + (position_rows + vectors) * hidden_size
    else:
        total = par.embedding_parameters(ceil_div(vocab_size, shards), _position_rows(architecture), hidden_size)
    if architecture.encoder_table:
        total += par.linear_parameters(ceil_div(vocab_size, shards), hidden_size)
    if architecture.spectra:
        total += sum(par.linear_parameters(inputs, hidden_size) + hidden_size for _, inputs in SPECTRA)
    if architecture.token_types:
        total += sym.token_type_rows * hidden_size
    total += side.table_parameters(architecture, shards) + side.input_parameters(architecture)
    if architecture.positions == "relative":
        total += stacks * sym.relative_rows * num_attention_heads
    if architecture.positions == "disentangled":
        total += sym.relative_rows * hidden_size + _norm(architecture, hidden_size)
    return total + (stacks * _norm(architecture, hidden_size) if architecture.embedding_norm else ZERO)


def head_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of an untied head; a tied one has none of its own."""
    if architecture.head == "labels":
        return par.linear_parameters(hidden_size, sym.num_labels) + sym.num_labels
    if architecture.head == "none":
        return ZERO
    if architecture.head == "pooled":
        attention = 4 * (par.linear_parameters(hidden_size, hidden_size) + hidden_size)
        mlp = par.mlp_parameters(hidden_size, sym.intermediate_size) + sym.intermediate_size + hidden_size
        return hidden_size + attention + mlp + _norm(architecture, hidden_size)
    columns = ceil_div(vocab_size, shards)
    weights = ZERO if architecture.tied_embeddings else par.linear_parameters(hidden_size, columns)
    if architecture.head == "transformed":
        weights += par.linear_parameters(hidden_size, hidden_size) + _norm(architecture, hidden_size)
        weights += hidden_size if architecture.head_transform_bias else ZERO
    return weights + (columns if architecture.head_bias else ZERO)


def final_norm_parameters(architecture: Architecture) -> Any:
    """Parameters of the norm before the head, of the encoder's end if there are two stacks, and of joining streams."""
    total = architecture.stacks * _norm(architecture, hidden_size) if architecture.final_norm else ZERO
    total += side.output_parameters(architecture)
    total += residuals.attention_residual_parameters(hidden_size) if architecture.attention_residuals else ZERO
    streams = architecture.hyper_connections and architecture.stream_head
    return total + (hyper.stream_head_parameters(hidden_size, sym.num_streams) if streams else ZERO)


def total_parameters(architecture: Architecture) -> Any:
    """Parameters of the model."""
    return (
        _all_layers(architecture)
        + embedding_parameters(architecture)
        + head_parameters(architecture)
        + final_norm_parameters(architecture)
    )


def _all_layers(architecture: Architecture) -> Any:
    each = (
        (count, layers.layer_parameters(architecture, kind), kind) for count, kind in kinds_with_counts(architecture)
    )
    return sum(block.of_all_layers(n, one, block.own_weights(architecture, kind), kind) for n, one, kind in each)


def active_parameters(architecture: Architecture) -> Any:
    """Parameters that one token meets: all but the routed experts that it does not pass."""
    inactive = sum(count_of(kind) * layers.inactive_parameters(architecture, kind) for kind in architecture.kinds)
    return total_parameters(architecture) - inactive


def table_parameters(architecture: Architecture) -> Any:
    """Parameters of the tables of tokens, positions and token types, and of an untied head's weights."""
    if architecture.patches:
        return position_rows * hidden_size
    tables = par.embedding_parameters(vocab_size, _position_rows(architecture), hidden_size)
    if architecture.encoder_table:
        tables += par.linear_parameters(vocab_size, hidden_size)
    if architecture.token_types:
        tables += sym.token_type_rows * hidden_size
    tables += side.table_parameters(architecture)
    untied = not architecture.tied_embeddings and architecture.head in ("vocabulary", "transformed")
    return tables + (par.linear_parameters(hidden_size, vocab_size) if untied else ZERO)


def multi_token_parameters(architecture: Architecture) -> Any:
    """Parameters of the layers for multi-token prediction, which no other count contains.

    Each has the model's last kind of layer, two norms, and a projection of two hidden states to one; tables are
    shared (DeepSeek-AI 2024, V3, section 2.2). It joins several streams by weights of its own.
    """
    if not architecture.multi_token_head:
        return ZERO
    layer = layers.layer_parameters(architecture, architecture.module_kind)
    ends = 3 * _norm(architecture, hidden_size) + par.linear_parameters(2 * hidden_size, hidden_size)
    if architecture.hyper_connections:
        ends += hyper.stream_head_parameters(hidden_size, sym.num_streams)
    return sym.num_multi_token_layers * (layer + ends)


def stage_end_parameters(
    architecture: Architecture, copied: Any = ZERO, head_weight: Any = 1, table_weight: Any = 1
) -> Any:
    """Parameters of the larger end on one device: the tables, or norm and head; both on a single stage.

    With a pipeline the last stage holds a copy of a tied table.

    Args:
        architecture: of the model.
        copied: what else a last stage of several has copies of.
        head_weight: what a parameter of the head counts for, which may be stored in fewer bits.
        table_weight: the same of a parameter of the tables.
    """
    first = table_weight * embedding_parameters(architecture, tp)
    norm, head = final_norm_parameters(architecture), head_weight * head_parameters(architecture, tp)
    tied = architecture.tied_embeddings
    copy = table_weight * par.linear_parameters(hidden_size, ceil_div(vocab_size, tp)) if tied else ZERO
    return Max(first + complement(above_one(pp)) * (norm + head), above_one(pp) * (norm + head + copy + copied))


def forward_flops(
    architecture: Architecture, queries: Any = sequence, keys: Any = sequence, *, stepwise: bool = False
) -> dict[str, Any]:
    """FLOPs of a forward pass over B sequences, by class; attention counted in full.

    Args:
        architecture: of the model.
        queries: new tokens of a sequence.
        keys: tokens that they attend to, cached ones included.
        stepwise: of generation: recurrent layers step token by token, windows are as full as they get, and the
            encoder is done. Latent attention caches expanded heads; `absorbed_flops` tells the other form.
    """
    found: dict[str, Any] = dict.fromkeys(CLASSES, ZERO)
    for count, _, classes in layer_flops(architecture, queries, keys, stepwise=stepwise):
        for name, flops in classes.items():
            found[name] = found.get(name, ZERO) + count * flops
    for name, flops in end_flops(architecture, queries, stepwise=stepwise).items():
        found[name] = found.get(name, ZERO) + flops
    return found


def layer_flops(
    architecture: Architecture, queries: Any = sequence, keys: Any = sequence, *, stepwise: bool = False
) -> list[tuple[Any, LayerKind, dict[str, Any]]]:
    """The same of one layer of each kind, with how many there are."""
    found = []
    for kind in architecture.kinds:
        count = num_layers if architecture.uniform_dense and not stepwise else count_of(kind)
        if kind.encoder and stepwise and architecture.stacks == 2:
            continue
        encoder = kind.encoder and architecture.stacks == 2
        own = (sym.encoder_sequence, sym.encoder_sequence) if encoder else (queries, keys)
        if stepwise and not encoder:
            # Compressed attention has entries of the whole context beside its window.
            entries = kind.mixer == "compressed_attention"
            own = (queries, keys if entries else layers.cached_tokens(kind, keys))
        found.append((count, kind, layers.layer_flops(architecture, kind, *own, stepwise=stepwise)))
        if architecture.uniform_dense and not stepwise:
            break
    return found


def end_flops(architecture: Architecture, queries: Any = sequence, *, stepwise: bool = False) -> dict[str, Any]:
    """The same of what precedes and follows the layers."""
    ends = _end_flops(architecture, batch * queries)
    if architecture.spectra and not stepwise:
        rows = batch * (sym.encoder_sequence if architecture.stacks == 2 else queries)
        ends["spectrum_embedding"] = sum(matmul.matmul_flops(n * rows, hidden_size, k, 1) for n, k in SPECTRA)
    return ends


def _end_flops(architecture: Architecture, tokens: Any) -> dict[str, Any]:
    found = {}
    if architecture.attention_residuals:
        sources = residuals.residual_sources(num_layers, sym.residual_block)
        found["attention_residuals"] = residuals.attention_residual_flops(tokens, hidden_size, sources)
    if architecture.hyper_connections and architecture.stream_head:
        found["hyper_connections"] = hyper.stream_head_flops(tokens, hidden_size, sym.num_streams)
    if architecture.side_blocks:
        found["side_projections"] = side.end_flops(architecture, tokens)
    if architecture.patches:
        found["patch_embedding"] = matmul.matmul_flops(batch * sym.num_patches, hidden_size, sym.patch_features, 1)
    if architecture.head == "labels":
        return found | {"lm_head": matmul.matmul_flops(batch, sym.num_labels, hidden_size, 1)}
    if architecture.head == "none":
        return found
    if architecture.head == "pooled":
        # One query sees all positions of an image.
        keys, positions = par.linear_parameters(hidden_size, 2 * hidden_size), tokens / batch
        once = 2 * par.linear_parameters(hidden_size, hidden_size)
        once += par.mlp_parameters(hidden_size, sym.intermediate_size)
        pool = matmul.matmul_flops(tokens, 1, keys, 1) + matmul.matmul_flops(batch, 1, once, 1)
        pool += att.attention_flops(batch, 1, positions, num_attention_heads, head_dim)
        return found | {"head_transform": pool, "lm_head": ZERO}
    if architecture.head == "transformed":
        found["head_transform"] = matmul.matmul_flops(tokens, hidden_size, hidden_size, 1)
    return found | {"lm_head": matmul.matmul_flops(tokens, vocab_size, hidden_size, 1)}


def visible_score_flops(architecture: Architecture) -> Any:
    """FLOPs of the score products of a forward pass that the masks leave: causal, windows and chunks."""
    total = ZERO
    for kind in architecture.kinds:
        encoder = kind.encoder and architecture.stacks == 2
        own = (sym.encoder_sequence,) * 2 if encoder else (sequence,) * 2
        scores = layers.layer_flops(architecture, kind, *own).get("attention_scores", ZERO)
        count = num_layers if len(architecture.kinds) == 1 else count_of(kind)
        total += count * layers.visible_scores(architecture, kind, scores)
    return total


def absorbed_flops(architecture: Architecture, queries: Any, keys: Any) -> dict[str, Any]:
    """`forward_flops` of generation with latent attention absorbed: latents are cached, and never expanded."""
    found = forward_flops(architecture, queries, keys, stepwise=True)
    heads, rank = num_attention_heads, sym.kv_lora_rank
    widths = sym.qk_nope_head_dim, sym.v_head_dim
    for kind in architecture.kinds:
        if kind.mixer != "latent_attention":
            continue
        tokens = batch * queries
        expanded = layers.layer_flops(architecture, kind, queries, keys, stepwise=True)["attention_scores"]
        seen = sparse.selected_keys(kind, keys)
        scores = mla.absorbed_attention_flops(batch, queries, seen, heads, rank, sym.qk_rope_head_dim)
        scores += mla.absorption_flops(tokens, heads, rank, *widths)
        count = count_of(kind)
        found["attention_scores"] += count * (scores - expanded)
        found["projections"] -= count * mla.latent_expansion_flops(tokens, heads, rank, *widths)
    return found


def cache_bytes(architecture: Architecture, context: Any, *, windows: bool | None = None, whole: bool = True) -> Any:
    """Bytes that B = 1 sequence of a context caches in layers whose cache grows, at `element_bytes` an element.

    Args:
        architecture: of the model.
        context: tokens.
        windows: only what a window limits (True), only what grows (False), or all (None).
        whole: compressed entries are whole ones; else as many as there are in the mean.
    """
    total = ZERO
    for kind in architecture.kinds:
        elements = ZERO
        if windows is None or windows == layers.windowed(kind):
            elements += layers.cached_elements(kind) * layers.cached_tokens(kind, context)
        if not windows:
            elements += layers.entry_elements(kind, context, whole=whole)
        total += count_of(kind) * elements * sym.element_bytes
    return total


def state_bytes(architecture: Architecture) -> Any:
    """Bytes of the recurrent states of one sequence, however long it is."""
    return sum((count_of(kind) * layers.state_bytes(kind) for kind in architecture.kinds), ZERO)


def cross_cache_bytes(architecture: Architecture) -> Any:
    """Bytes that cross-attention caches of one token of the encoder."""
    width = 2 * num_key_value_heads * head_dim * sym.element_bytes
    return sum((count_of(kind) * width for kind in architecture.kinds if kind.cross), ZERO)


ENDS = ("lm_head", "head_transform", "patch_embedding", "spectrum_embedding", "side_projections")
"""Classes of products outside of the layers, which recomputation of layers does not repeat."""


def recomputed_flops(architecture: Architecture, recompute: str, keys: Any = sequence) -> Any:
    """FLOPs that recomputation adds to a step over B sequences of s tokens; `keys` as of `forward_flops`."""
    return ZERO if recompute == "none" else recomputed_of(forward_flops(architecture, keys=keys), recompute)


def recomputed_of(flops: dict[str, Any], recompute: str) -> Any:
    """Of FLOPs by class, those that recomputation repeats."""
    if recompute == "none":
        return ZERO
    if recompute == "selective":
        return flops.get("attention_scores", ZERO) + flops.get("cross_attention_scores", ZERO)
    return sum((each for name, each in flops.items() if name not in ENDS), ZERO)
