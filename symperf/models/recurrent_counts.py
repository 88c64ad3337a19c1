"""Parameters, products and states of one recurrent mixer, by its kind, as closed forms; nothing here is sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.kernels import channel_decay as decay
from ..formulas.kernels import convolution as conv
from ..formulas.kernels import gated_lru as lru
from ..formulas.kernels import lightning_attention as lightning
from ..formulas.kernels import linear_attention as lin
from ..formulas.kernels import matrix_memory as memory
from ..formulas.kernels import ssm, wkv
from ..formulas.language import symbols as sym
from ..formulas.memory import parameters as par

if TYPE_CHECKING:
    from .architecture import Architecture, LayerKind

ZERO = sympy.S.Zero
h = sym.hidden_size
SSM_WIDTH = sym.ssm_num_heads * sym.ssm_head_dim
SSM_CHANNELS = SSM_WIDTH + 2 * sym.ssm_groups * sym.ssm_state_size
LINEAR_HEADS = sym.linear_num_value_heads
LINEAR_WIDTHS = sym.linear_key_head_dim, sym.linear_value_head_dim
LINEAR_KEYS = sym.linear_num_key_heads * sym.linear_key_head_dim
LINEAR_VALUES = LINEAR_HEADS * sym.linear_value_head_dim
LINEAR_CHANNELS = 2 * LINEAR_KEYS + LINEAR_VALUES
LIGHTNING = LINEAR_HEADS, sym.linear_value_head_dim
"""Heads and their width; keys are as wide as values."""

CHANNELS = {
    "ssm": SSM_CHANNELS,
    "ssm1": sym.ssm_inner_size,
    "linear_attention": LINEAR_CHANNELS,
    "short_convolution": h,
    "gated_lru": sym.lru_width,
    "lightning_attention": ZERO,
}
"""Channels that the convolution of a mixer runs over."""


def weights(kind: LayerKind) -> Any:
    """Weights of the mixer's linear layers."""
    match kind.mixer:
        case "ssm":
            return ssm.mamba2_parameters(h, sym.ssm_num_heads, sym.ssm_head_dim, sym.ssm_groups, sym.ssm_state_size)
        case "ssm1":
            return ssm.mamba1_parameters(h, sym.ssm_inner_size, sym.ssm_state_size, sym.ssm_time_step_rank)
        case "linear_attention":
            return _linear_attention_weights(kind)
        case "gated_lru":
            return lru.gated_lru_parameters(h, sym.lru_width, sym.num_attention_heads)
        case "lightning_attention":
            return lightning.lightning_parameters(h, *LIGHTNING)
        case "wkv":
            narrow = (wkv.narrow_parameters(h, rank, width) for rank, width in narrow_widths(kind))
            return wkv.wkv_parameters(h, LINEAR_HEADS, *LINEAR_WIDTHS) + sum(narrow)
        case "matrix_memory":
            # Queries, keys, values, gate and two gates a head in; and out: those of a gated delta rule.
            return lin.delta_rule_parameters(h, LINEAR_HEADS, LINEAR_HEADS, *LINEAR_WIDTHS)
    # Two gates and a value in; and out (Amini et al. 2025, LFM2, arXiv:2511.23404).
    return par.linear_parameters(h, 3 * h) + par.linear_parameters(h, h)


def narrow_widths(kind: LayerKind) -> list[tuple[Any, Any]]:
    """Narrow widths of a time mixing, each with the features that it becomes."""
    found = [(sym.decay_rank, LINEAR_KEYS), (sym.rate_rank, LINEAR_KEYS), (sym.gate_rank, LINEAR_VALUES)]
    return found if "first_values" in kind.traits else [*found, (sym.value_rank, LINEAR_VALUES)]


def _linear_attention_weights(kind: LayerKind) -> Any:
    keys, values = LINEAR_WIDTHS
    total = lin.delta_rule_parameters(h, sym.linear_num_key_heads, LINEAR_HEADS, keys, values)
    if "channel_decay" in kind.traits:
        total += decay.channel_decay_parameters(h, LINEAR_HEADS, keys) - par.linear_parameters(h, LINEAR_HEADS)
    if "narrow_gate" in kind.traits:
        total += decay.narrow_gate_parameters(h, LINEAR_HEADS, values) - par.linear_parameters(h, LINEAR_VALUES)
    return total


def vectors(architecture: Architecture, kind: LayerKind) -> Any:
    """Convolution, biases, inner norms and other vectors of a mixer."""
    if kind.mixer == "wkv":
        # Mixtures of a token and the one before: six here and one before the MLP; three vectors of keys' width for keys
        # and a bonus, biases of decays, rates and what is taken of values; a norm of each head.
        biases = (2 if "first_values" in kind.traits else 3) * LINEAR_VALUES
        return 7 * h + 3 * LINEAR_KEYS + biases + 2 * par.norm_parameters(LINEAR_VALUES)
    if kind.mixer == "matrix_memory":
        # A bias for both gates of a head, and a norm of each head with a scale for every channel.
        return 2 * LINEAR_HEADS + par.norm_parameters(LINEAR_VALUES)
    channels = CHANNELS[kind.mixer]
    total = conv.convolution_parameters(channels, sym.conv_kernel)
    total += channels if architecture.ssm_convolution_bias else ZERO
    match kind.mixer:
        case "linear_attention":
            # The decay's rate of every head, and its bias of every decay.
            biases = LINEAR_HEADS * sym.linear_key_head_dim if "channel_decay" in kind.traits else LINEAR_HEADS
            return total + LINEAR_HEADS + biases + par.norm_parameters(sym.linear_value_head_dim)
        case "short_convolution":
            # One key gives a bias to the convolution and to both projections.
            return total + (4 * h if architecture.ssm_projection_bias else ZERO)
        case "lightning_attention":
            return par.norm_parameters(LINEAR_VALUES)
        case "gated_lru":
            # Decays, biases of both gates, and of the projections in and out.
            return total + 3 * channels + (2 * channels + h if architecture.ssm_projection_bias else ZERO)
        case "ssm":
            total += 3 * sym.ssm_num_heads
            total += par.norm_parameters(SSM_WIDTH) if architecture.ssm_gated_norm else ZERO
            biases = SSM_WIDTH + SSM_CHANNELS + sym.ssm_num_heads
        case _:
            inner, state, rank = sym.ssm_inner_size, sym.ssm_state_size, sym.ssm_time_step_rank
            total += inner * (state + 2) + (rank + 2 * state if architecture.ssm_norms else ZERO)
            biases = 2 * inner
    return total + (biases + h if architecture.ssm_projection_bias else ZERO)


def flops(kind: LayerKind, queries: Any, stepwise: bool) -> dict[str, Any]:
    """FLOPs of the mixer's convolution and scan over B sequences, by class."""
    return {
        "ssm_convolution": _convolution_flops(kind, queries, stepwise),
        "ssm_scan": _step_flops(kind, queries) if stepwise else _scan_flops(kind, queries),
    }


def _convolution_flops(kind: LayerKind, queries: Any, stepwise: bool) -> Any:
    """As torch's convolution counts: padded by k - 1 on both sides, so s + k - 1 results, of which s are used."""
    if kind.mixer in ("matrix_memory", "wkv"):
        return ZERO
    results = sym.batch * (queries if stepwise else queries + sym.conv_kernel - 1)
    return conv.convolution_flops(results, CHANNELS[kind.mixer], sym.conv_kernel)


def _step_flops(kind: LayerKind, queries: Any) -> Any:
    """Products of the recurrence, token by token: of the state with C, or with query and key."""
    tokens = sym.batch * queries
    match kind.mixer:
        case "short_convolution" | "gated_lru":
            return ZERO
        case "linear_attention":
            return 3 * ssm.state_output_flops(tokens, LINEAR_VALUES, sym.linear_key_head_dim)
        case "lightning_attention":
            return 2 * ssm.state_output_flops(tokens, LINEAR_VALUES, sym.linear_value_head_dim)
        case "wkv":
            return 4 * ssm.state_output_flops(tokens, LINEAR_VALUES, sym.linear_key_head_dim)
        case "matrix_memory":
            # The outer product of key and value, and the query's with the state and with the sum of keys.
            normalizer = ssm.state_output_flops(tokens, LINEAR_HEADS, sym.linear_key_head_dim)
            return 2 * ssm.state_output_flops(tokens, LINEAR_VALUES, sym.linear_key_head_dim) + normalizer
    width = SSM_WIDTH if kind.mixer == "ssm" else sym.ssm_inner_size
    return ssm.state_output_flops(tokens, width, sym.ssm_state_size)


def _scan_flops(kind: LayerKind, queries: Any) -> Any:
    batch, chunk = sym.batch, sym.ssm_chunk_size
    match kind.mixer:
        case "short_convolution" | "gated_lru":
            return ZERO
        case "ssm1":
            return ssm.state_output_flops(batch * queries, sym.ssm_inner_size, sym.ssm_state_size)
        case "ssm":
            shape = sym.ssm_num_heads, sym.ssm_head_dim, sym.ssm_state_size
            # B and C are repeated for every head first, as in the paper's listing; fused kernels keep them by group.
            inside = ssm.ssd_flops(batch, queries, chunk, sym.ssm_num_heads, *shape)
            return inside + ssm.state_passing_flops(batch, queries, chunk, *shape)
        case "lightning_attention":
            return lightning.lightning_flops(batch, queries, chunk, *LIGHTNING)
    products = {"matrix_memory": memory.matrix_memory_flops, "wkv": wkv.wkv_flops}
    return products.get(kind.mixer, lin.delta_rule_flops)(batch, queries, chunk, LINEAR_HEADS, *LINEAR_WIDTHS)


STATES = {
    "ssm": (SSM_WIDTH, sym.ssm_state_size),
    "ssm1": (sym.ssm_inner_size, sym.ssm_state_size),
    "linear_attention": (LINEAR_VALUES, sym.linear_key_head_dim),
    "short_convolution": (ZERO, ZERO),
    "gated_lru": (sym.lru_width, sympy.S.One),
    "lightning_attention": (LINEAR_VALUES, sym.linear_value_head_dim),
}
"""Channels of a mixer, and the state of each."""


def state_bytes(kind: LayerKind) -> Any:
    """Bytes that a mixer keeps of a sequence, however long it is: its state, and the window of its convolution."""
    if kind.mixer == "matrix_memory":
        # Kept in the format of activations (transformers, xLSTMCache), with the sum of keys and the largest exponent.
        beside = LINEAR_HEADS * (sym.linear_key_head_dim + 1) * sym.element_bytes
        return beside + ssm.recurrent_state_bytes(1, LINEAR_VALUES, sym.linear_key_head_dim, sym.element_bytes)
    if kind.mixer == "wkv":
        # The last token that each part of the layer has read.
        shifted = 2 * h * sym.element_bytes
        return shifted + ssm.recurrent_state_bytes(1, LINEAR_VALUES, sym.linear_key_head_dim, sym.state_bytes)
    window = conv.convolution_state_bytes(1, CHANNELS[kind.mixer], sym.conv_kernel, sym.element_bytes)
    return window + ssm.recurrent_state_bytes(1, *STATES[kind.mixer], sym.state_bytes)
