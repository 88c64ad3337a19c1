"""What recurrent mixers keep of a token for the backward pass, as the kernels do that train them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language import symbols as sym
from ...formulas.language.symbols import hidden_size, tp
from ...models import recurrent_counts

if TYPE_CHECKING:
    from ...models.architecture import LayerKind

ZERO = sympy.S.Zero


def recurrent_width(kind: LayerKind) -> tuple[Any, Any]:
    """Features of a token that a recurrent mixer keeps, as its fused kernels do, and those that its end alone reads.

    Mamba-2 keeps the projection in, the scan's result and the normalised one (mamba_ssm, ssd_combined.py); Mamba-1 the
    projection in, the narrow one and the scan's result (selective_scan_interface.py), of which it makes the gated one
    again (in low precision its cast copy is kept); the delta rule what the convolutions read, queries and keys in unit
    length, values, results, gates, and the inverse of each chunk (flash-linear-attention 0.6, which repeats no keys for
    the value heads that share them); with channelwise decays also these, both score matrices and what is narrow
    (kda/chunk.py). A short convolution keeps the projection in, what it reads and gives, and the gated
    result (transformers, Lfm2ShortConv). A gated linear recurrent unit keeps both branches, the convolution's result,
    two gates, decays, states and the gated result. Lightning attention keeps queries, keys and values before and after
    their activation, the scan's result, the normalised one, the gate and the gated result; and states of chunks. A
    matrix memory keeps the projection in, and the results before and after their norm, and after their gate
    (mlstm_kernels, and xLSTMLayer of transformers).
    """
    if kind.mixer == "ssm":
        inner = sym.ssm_num_heads * sym.ssm_head_dim
        return (3 * inner + 2 * sym.ssm_groups * sym.ssm_state_size + sym.ssm_num_heads) / tp, inner / tp
    if kind.mixer == "ssm1":
        return 3 * sym.ssm_inner_size / tp + sym.ssm_time_step_rank + 2 * sym.ssm_state_size, ZERO
    if kind.mixer == "short_convolution":
        return 5 * sym.hidden_size / tp, sym.hidden_size / tp
    if kind.mixer == "gated_lru":
        return 7 * sym.lru_width / tp, sym.lru_width / tp
    keys = sym.linear_num_key_heads * sym.linear_key_head_dim
    heads, values = sym.linear_num_value_heads, sym.linear_num_value_heads * sym.linear_value_head_dim
    if kind.mixer == "lightning_attention":
        return 9 * values / tp, values / tp
    if kind.mixer == "wkv":
        # Differences of neighbours, six mixtures of the input, and one before the MLP; receptance, keys, decays and
        # rates before and after what makes the rule's operands of them, and values, gates and results likewise;
        # narrow widths whole (RWKV7Attention of flash-linear-attention 0.6).
        narrow = sum(rank for rank, _ in recurrent_counts.narrow_widths(kind))
        first = "first_values" in kind.traits
        return 8 * hidden_size + (9 * keys + (5 if first else 7) * values) / tp + narrow, ZERO
    if kind.mixer == "matrix_memory":
        # Two gates by tokens and by heads, and the normalizer and the largest exponent of each result.
        return (2 * heads * sym.linear_key_head_dim + 4 * values + 6 * heads) / tp, values / tp
    if "channel_decay" in kind.traits:
        narrow = sym.linear_key_head_dim + (sym.linear_value_head_dim if "narrow_gate" in kind.traits else 0)
        decays = heads * sym.linear_key_head_dim
        features = 4 * keys + decays + 4 * values + heads * (1 + 2 * sym.ssm_chunk_size)
        return features / tp + narrow, values / tp
    return (4 * keys + 4 * values + heads * (2 + sym.ssm_chunk_size)) / tp, values / tp


def recurrent_statistics(kind: LayerKind) -> Any:
    """FP32 numbers of a token that a recurrent mixer keeps beside its features.

    Of the delta rule lengths of queries and keys, and of each value head the norm's statistic, the rate of writing and,
    where a head has one decay, its sum; of time mixing lengths of keys and both statistics of the norm; of a matrix
    memory both statistics of the norm of its results. Mamba-2's few are
    left out.
    """
    heads = sym.linear_num_value_heads
    match kind.mixer:
        case "linear_attention":
            return ((2 if "channel_decay" in kind.traits else 3) * heads + 2 * sym.linear_num_key_heads) / tp
        case "wkv":
            return 3 * heads / tp
        case "matrix_memory":
            return 2 * heads / tp
    return ZERO
