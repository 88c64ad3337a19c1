"""Saved activations: bytes on a device that the forward pass keeps for the backward pass.

They are those of one layer and one micro-batch of T = b s tokens on one device, as PyTorch saves them; statistics of
the norms (a few bytes a token) are left out, as in the literature.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..language.symbols import activation_bytes, mask_bytes, statistic_bytes
from ..sources import DAO, KORTHIKANTI, MAMBA, SHAZEER


@formula(
    glyph="A_{in}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes tokens width",
    curvature="affine",
)
def input_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept of the input of a norm, a linear layer or a recomputed layer: w_x a feature of a token.

    Assumes: the input is in the activation format.

    Source: Korthikanti et al. 2022 section 4.1: 2 s b h for each such input.

    >>> from sympy import symbols
    >>> input_kept_bytes(*symbols("T w"))
    T*activation_bytes*w
    """
    return tokens * width * activation_bytes


@formula(
    glyph="A_{inw}",
    dimension=BYTE,
    source=MAMBA,
    increasing="stream_bytes tokens width",
    curvature="affine",
)
def wide_input_kept_bytes(tokens: Any, width: Any, stream_bytes: Any) -> Any:
    """Bytes kept of an input from a wide residual stream, T h' w_res.

    Assumes: as `input_kept_bytes`; the stream has w_res bytes an element.

    Source: counted from mamba_ssm (residual_in_fp32), which keeps the stream of Gu and Dao 2023 in FP32.

    >>> from sympy import symbols
    >>> wide_input_kept_bytes(*symbols("T w w_res"))
    T*w*w_res
    """
    return tokens * width * stream_bytes


@formula(
    glyph="A_{mask}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="mask_bytes tokens width",
    curvature="affine",
)
def dropout_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept of a dropout on the residual stream: its mask, w_m a feature of a token.

    Assumes: one byte an element by default.

    Source: Korthikanti et al. 2022 section 4.1: s b h for each mask.

    >>> from sympy import symbols
    >>> dropout_kept_bytes(*symbols("T w"))
    T*mask_bytes*w
    """
    return tokens * width * mask_bytes


@formula(
    glyph="A_{qkv}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes head_dim heads key_value_heads tokens",
    curvature="convex",
)
def query_key_value_kept_bytes(tokens: Any, heads: Any, key_value_heads: Any, head_dim: Any) -> Any:
    """Bytes kept of queries, keys and values, w_x d_h (a' + 2 a'_kv) a token.

    Assumes: each once, in the activation format; a rotation is undone without keeping its input.

    Source: Korthikanti et al. 2022 section 4.1: 4 s b h for queries and keys and 2 s b h for values.

    >>> from sympy import symbols
    >>> query_key_value_kept_bytes(*symbols("T a k d"))
    T*activation_bytes*d*(a + 2*k)
    """
    return tokens * head_dim * (heads + 2 * key_value_heads) * activation_bytes


@formula(
    glyph="A_{score}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements mask_bytes",
    curvature="convex",
)
def scores_kept_bytes(elements: Any) -> Any:
    """Bytes kept of eager attention's scores with dropout: probabilities, their mask and what is left, 2 w_x + w_m.

    Assumes: N scores; softmax output, dropout mask, dropout output.

    Source: Korthikanti et al. 2022 section 4.1: 5 a s^2 b.

    >>> from sympy import symbols
    >>> scores_kept_bytes(symbols("N"))
    N*(2*activation_bytes + mask_bytes)
    """
    return elements * (2 * activation_bytes + mask_bytes)


@formula(
    glyph="A_{prob}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes elements",
    curvature="affine",
)
def probabilities_kept_bytes(elements: Any) -> Any:
    """Bytes kept of eager attention's scores without dropout: the probabilities, w_x.

    Assumes: N scores; the softmax output serves both its own gradient and the product with the values.

    Source: Korthikanti et al. 2022 section 4.1, without the dropout terms.

    >>> from sympy import symbols
    >>> probabilities_kept_bytes(symbols("N"))
    N*activation_bytes
    """
    return elements * activation_bytes


@formula(
    glyph="A_{flash}",
    dimension=BYTE,
    source=DAO,
    increasing="heads statistic_bytes tokens",
    curvature="affine",
)
def flash_kept_bytes(tokens: Any, heads: Any) -> Any:
    """Bytes kept of flash attention beside its inputs and output: one log-sum-exp per query and head.

    Assumes: statistics in FP32.

    Source: Dao et al. 2022 algorithm 1; Dao 2023 keeps only the log-sum-exp.

    >>> from sympy import symbols
    >>> flash_kept_bytes(*symbols("T a"))
    T*a*statistic_bytes
    """
    return tokens * heads * statistic_bytes


@formula(
    glyph="A_{mlp}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes tokens width",
    curvature="affine",
)
def mlp_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept inside a plain MLP of inner width f: input and output of the activation function, 2 w_x f a token.

    Assumes: `width` is the inner width on the device.

    Source: Korthikanti et al. 2022 section 4.1: 8 s b h for each of the two, with f = 4 h.

    >>> from sympy import symbols
    >>> mlp_kept_bytes(*symbols("T f"))
    2*T*activation_bytes*f
    """
    return 2 * tokens * width * activation_bytes


@formula(
    glyph="A_{glu}",
    dimension=BYTE,
    source=SHAZEER,
    increasing="activation_bytes tokens width",
    curvature="affine",
)
def gated_mlp_kept_bytes(tokens: Any, width: Any) -> Any:
    """Bytes kept inside a gated MLP of inner width f: gate, activated gate, up and their product, 4 w_x f a token.

    Assumes: `width` is the inner width on the device; the activated gate is kept, as PyTorch does.

    Source: operands of the product in Shazeer 2020 section 2; PyTorch saves each for the backward pass.

    >>> from sympy import symbols
    >>> gated_mlp_kept_bytes(*symbols("T f"))
    4*T*activation_bytes*f
    """
    return 4 * tokens * width * activation_bytes


@formula(
    glyph="A_{logit}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="columns statistic_bytes tokens",
    curvature="affine",
)
def logits_kept_bytes(tokens: Any, columns: Any) -> Any:
    """Bytes kept of the logits for the loss, w_s each.

    Assumes: N tokens, n columns of the vocabulary on the device, in FP32.

    Source: Korthikanti et al. 2022 section 4.3: 4 s b v.

    >>> from sympy import symbols
    >>> logits_kept_bytes(*symbols("T n"))
    T*n*statistic_bytes
    """
    return tokens * columns * statistic_bytes


@formula(
    glyph="A",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="in_flight layer_bytes num_layers",
    decreasing="pp",
    curvature="affine",
)
def stage_activation_bytes(layer_bytes: Any, num_layers: Any, pp: Any, in_flight: Any) -> Any:
    """Activation bytes of a stage's layers: L / p layers for every micro-batch in flight, A_l (L / p) m_f.

    Assumes: equal stages.

    Source: Korthikanti et al. 2022 section 4.2.3: with p in flight the first stage holds A_l L.

    >>> from sympy import symbols
    >>> stage_activation_bytes(*symbols("A L p m"))
    A*L*m/p
    """
    return layer_bytes * num_layers / pp * in_flight


@formula(
    glyph="A_{gpt}",
    dimension=BYTE,
    source=KORTHIKANTI,
    increasing="activation_bytes hidden_size mask_bytes micro_batch num_attention_heads sequence",
    decreasing="tp",
    curvature="convex",
)
def gpt_layer_bytes(micro_batch: Any, sequence: Any, hidden_size: Any, num_attention_heads: Any, tp: Any) -> Any:
    """Activation bytes of a GPT layer under tensor parallelism, s b h (10 + 24/t + 5 a s/(h t)) at 2-byte activations.

    From element sizes: s b h (4 w_x + 2 w_m + 12 w_x / t) + (2 w_x + w_m) a s^2 b / t.

    Assumes: f = 4 h, a d_h = h, eager attention with dropout, no sequence parallelism, no recomputation.

    Source: Korthikanti et al. 2022 equation (2).

    >>> from sympy import symbols
    >>> gpt_layer_bytes(*symbols("b s h a t")).subs({activation_bytes: 2, mask_bytes: 1})
    5*a*b*s**2/t + b*h*s*(10 + 24/t)
    """
    b, s, h = micro_batch, sequence, hidden_size
    return (
        s * b * h * (4 * activation_bytes + 2 * mask_bytes + 12 * activation_bytes / tp)
        + (2 * activation_bytes + mask_bytes) * num_attention_heads * s**2 * b / tp
    )
