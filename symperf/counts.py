"""Parameters and forward FLOPs of a whole model, and parameters per device, as closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .formulas import attention as att
from .formulas import matmul
from .formulas import parameters as par
from .formulas.atoms import Max, ceil_div, complement, present
from .formulas.symbols import (
    batch,
    head_dim,
    hidden_size,
    intermediate_size,
    num_attention_heads,
    num_key_value_heads,
    num_layers,
    position_rows,
    pp,
    sequence,
    tp,
    vocab_size,
)

if TYPE_CHECKING:
    from .configs import Architecture

ZERO = sympy.S.Zero


def _norm(architecture: Architecture, width: Any) -> Any:
    return par.norm_parameters(width) * (2 if architecture.norm_bias else 1)


def _query_key_norm(architecture: Architecture, shards: Any) -> Any:
    if architecture.query_key_norm == "per_head":
        return 2 * par.norm_parameters(head_dim)
    if architecture.query_key_norm == "full_width":
        width = head_dim * (num_attention_heads / shards + ceil_div(num_key_value_heads, shards))
        return par.norm_parameters(width)
    return ZERO


def layer_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of a layer; with `shards`, those that one of a tensor-parallel group holds.

    Norms and the biases of row-split layers are whole on every device.
    """
    heads, kv_heads = num_attention_heads / shards, ceil_div(num_key_value_heads, shards)
    inner = intermediate_size / shards
    mlp = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    total = par.attention_parameters(hidden_size, heads, kv_heads, head_dim) + mlp(hidden_size, inner)
    total += architecture.block_norms * _norm(architecture, hidden_size) + _query_key_norm(architecture, shards)
    if architecture.qkv_bias:
        total += att.query_key_value_width(heads, kv_heads, head_dim)
    if architecture.attention_output_bias:
        total += hidden_size
    if architecture.mlp_bias:
        total += (2 if architecture.gated_mlp else 1) * inner + hidden_size
    return total


def embedding_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of the first stage's end: token and position tables, and the norm after them if there is one."""
    total = par.embedding_parameters(ceil_div(vocab_size, shards), position_rows, hidden_size)
    return total + (_norm(architecture, hidden_size) if architecture.embedding_norm else ZERO)


def head_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of an untied head; a tied one has none of its own."""
    columns = ceil_div(vocab_size, shards)
    weights = ZERO if architecture.tied_embeddings else par.linear_parameters(hidden_size, columns)
    return weights + (columns if architecture.head_bias else ZERO)


def final_norm_parameters(architecture: Architecture) -> Any:
    """Parameters of the norm before the head."""
    return _norm(architecture, hidden_size) if architecture.final_norm else ZERO


def total_parameters(architecture: Architecture) -> Any:
    """Parameters of the model."""
    return (
        num_layers * layer_parameters(architecture)
        + embedding_parameters(architecture)
        + head_parameters(architecture)
        + final_norm_parameters(architecture)
    )


def table_parameters(architecture: Architecture) -> Any:
    """Parameters of token and position tables and of an untied head's weights."""
    tables = par.embedding_parameters(vocab_size, position_rows, hidden_size)
    return tables + (ZERO if architecture.tied_embeddings else par.linear_parameters(hidden_size, vocab_size))


def stage_layer_parameters(architecture: Architecture) -> Any:
    """Parameters of a stage's layers on one device."""
    return num_layers / pp * layer_parameters(architecture, tp)


def stage_end_parameters(architecture: Architecture) -> Any:
    """Parameters of the larger end on one device: the tables, or norm and head; both on a single stage.

    With a pipeline the last stage holds a copy of a tied table.
    """
    first = embedding_parameters(architecture, tp)
    norm, head = final_norm_parameters(architecture), head_parameters(architecture, tp)
    tied = architecture.tied_embeddings
    copy = par.linear_parameters(hidden_size, ceil_div(vocab_size, tp)) if tied else ZERO
    return Max(first + complement(present(pp)) * (norm + head), present(pp) * (norm + head + copy))


def forward_flops(architecture: Architecture) -> dict[str, Any]:
    """FLOPs of a forward pass over B sequences of s tokens, by class; attention counted in full."""
    tokens = batch * sequence
    width = att.query_key_value_width(num_attention_heads, num_key_value_heads, head_dim)
    mlp = par.gated_mlp_parameters if architecture.gated_mlp else par.mlp_parameters
    attention_width = num_attention_heads * head_dim
    return {
        "attention_scores": num_layers * att.attention_flops(batch, sequence, sequence, num_attention_heads, head_dim),
        "projections": num_layers
        * (
            matmul.matmul_flops(tokens, width, hidden_size, 1)
            + matmul.matmul_flops(tokens, hidden_size, attention_width, 1)
        ),
        "mlp": num_layers * matmul.matmul_flops(tokens, 1, mlp(hidden_size, intermediate_size), 1),
        "lm_head": matmul.matmul_flops(tokens, vocab_size, hidden_size, 1),
    }


def recomputed_flops(architecture: Architecture, recompute: str) -> Any:
    """FLOPs that recomputation adds to a step over B sequences of s tokens."""
    forward = forward_flops(architecture)
    if recompute == "none":
        return ZERO
    if recompute == "selective":
        return forward["attention_scores"]
    return forward["attention_scores"] + forward["projections"] + forward["mlp"]
