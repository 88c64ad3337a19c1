"""Parameters and products of what layers have beside a mixer and an MLP (Gemma-3n), by layer and at the model's ends.

A low-rank residual of the normalised stream, features of a token for each layer alone, and streams that a layer does
not compute but updates; each is there where the model has its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import alternating_updates as alt
from ..formulas.kernels import matmul
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import ceil_div
from ..formulas.memory import parameters as par

if TYPE_CHECKING:
    from .architecture import Architecture

ZERO = sympy.S.Zero
h = sym.hidden_size


def low_rank_weights(architecture: Architecture) -> Any:
    """Weights of the residual of low rank: down and up."""
    return 2 * par.linear_parameters(h, sym.residual_rank) if architecture.low_rank_residual else ZERO


def layer_input_weights(architecture: Architecture) -> Any:
    """Weights of a layer's gate of its own features, and of their projection to the stream."""
    return 2 * par.linear_parameters(h, sym.layer_input_size) if architecture.layer_inputs else ZERO


def parameters(architecture: Architecture) -> Any:
    """Parameters of a layer's side blocks, with a norm behind each product that is added to the stream."""
    norms = architecture.low_rank_residual + architecture.layer_inputs
    total = low_rank_weights(architecture) + layer_input_weights(architecture) + norms * par.norm_parameters(h)
    return total + (alt.update_parameters(h, sym.num_update_streams) if architecture.alternating_updates else ZERO)


def flops(architecture: Architecture, tokens: Any) -> Any:
    """FLOPs of a layer's side blocks."""
    weights = low_rank_weights(architecture) + layer_input_weights(architecture)
    total = matmul.matmul_flops(tokens, 1, weights, 1)
    return total + (alt.update_flops(tokens, h, sym.num_update_streams) if architecture.alternating_updates else 0)


def features(architecture: Architecture) -> Any:
    """Features of a token that the layers have for themselves, of all layers together."""
    return sym.num_layers * sym.layer_input_size if architecture.layer_inputs else ZERO


def table_parameters(architecture: Architecture, shards: Any = 1) -> Any:
    """Parameters of the table of features of the layers."""
    return ceil_div(sym.layer_input_rows, shards) * features(architecture) if architecture.layer_inputs else ZERO


def input_parameters(architecture: Architecture) -> Any:
    """Parameters behind the embedding: the features' projection and norm, and the projections to further streams."""
    total = ZERO
    if architecture.layer_inputs:
        total += par.linear_parameters(h, features(architecture)) + par.norm_parameters(sym.layer_input_size)
    return total + output_parameters(architecture)


def output_parameters(architecture: Architecture) -> Any:
    """Parameters that join the streams before the head."""
    streams = architecture.alternating_updates
    return alt.stream_projection_parameters(h, sym.num_update_streams) if streams else ZERO


def end_flops(architecture: Architecture, tokens: Any) -> Any:
    """FLOPs of the projections at both ends of the model, of all tokens."""
    weights = h * features(architecture) + 2 * output_parameters(architecture)
    return matmul.matmul_flops(tokens, 1, weights, 1)
