"""Parameters, products and states of what sees near tokens beside attention: convolutions, biases by distance.

Keys, values and what each part of a layer adds pass a causal convolution of their own. Every head of a token weighs a
bank of profiles, each a bias for every distance up to an extent, into the biases of its scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import convolution as conv
from ..formulas.kernels import matmul
from ..formulas.language import symbols as sym
from ..formulas.memory import parameters as par
from .sparse_counts import parts

if TYPE_CHECKING:
    from .architecture import LayerKind

ZERO = sympy.S.Zero
PROFILES, EXTENT = sym.distance_profiles, sym.distance_extent


def channels(kind: LayerKind, key_value_heads: Any = sym.num_key_value_heads) -> Any:
    """Channels of a layer's convolutions: of keys and values, and of the stream behind each part."""
    if "convolved" not in kind.traits:
        return ZERO
    return 2 * key_value_heads * sym.head_dim + parts(kind) * sym.hidden_size


def weights(kind: LayerKind) -> Any:
    """Weights of the projection to the weights of profiles."""
    if "distance_bias" not in kind.traits:
        return ZERO
    return par.linear_parameters(sym.hidden_size, sym.num_attention_heads * PROFILES)


def vectors(kind: LayerKind, key_value_heads: Any = sym.num_key_value_heads) -> Any:
    """Parameters of the bank of profiles and of the convolutions."""
    bank = par.linear_parameters(PROFILES, EXTENT) if "distance_bias" in kind.traits else ZERO
    return bank + conv.convolution_parameters(channels(kind, key_value_heads), sym.conv_kernel)


def flops(kind: LayerKind, queries: Any, stepwise: bool) -> dict[str, Any]:
    """FLOPs of both, as torch counts them: padded by k - 1 inputs on both sides, but for a step."""
    tokens = sym.batch * queries
    found = {}
    if "distance_bias" in kind.traits:
        found["distance_biases"] = matmul.matmul_flops(tokens * sym.num_attention_heads, EXTENT, PROFILES, 1)
    if "convolved" in kind.traits:
        results = tokens if stepwise else sym.batch * (queries + sym.conv_kernel - 1)
        found["convolutions"] = conv.convolution_flops(results, channels(kind), sym.conv_kernel)
    return found


def state_bytes(kind: LayerKind, key_value_heads: Any = sym.num_key_value_heads) -> Any:
    """Bytes that the convolutions keep of one sequence, in the format of states."""
    return conv.convolution_state_bytes(1, channels(kind, key_value_heads), sym.conv_kernel, sym.state_bytes)
