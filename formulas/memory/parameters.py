"""Parameter counts, of a whole model; and the FLOPs of a step in the literature's closed forms."""

from __future__ import annotations

from typing import Any

from ..language.atoms import ceil_div
from ..language.dimension import FLOP, ONE
from ..language.formula import formula
from ..language.symbols import flop
from ..sources import BA, CHOWDHERY, KORTHIKANTI, NARAYANAN, RADFORD, SHAZEER, SHOEYBI, VASWANI


@formula(
    glyph="N_{lin}",
    dimension=ONE,
    source=VASWANI,
    increasing="in_features out_features",
    curvature="affine",
)
def linear_parameters(in_features: Any, out_features: Any) -> Any:
    """Weights of a linear layer: inputs times outputs.

    Assumes: no bias; a bias adds one parameter per output.

    Source: Vaswani et al. 2017 section 3.2.

    >>> from sympy import symbols
    >>> linear_parameters(*symbols("n_i n_o"))
    n_i*n_o
    """
    return in_features * out_features


@formula(
    glyph="V_{pad}",
    dimension=ONE,
    source=SHOEYBI,
    increasing="vocab_size",
    decreasing="tp",
)
def padded_vocabulary_share(vocab_size: Any, vocab_multiple: Any, tp: Any) -> Any:
    """Rows of a vocabulary on each of t devices, padded to a multiple of k_V: k_V ceil(V / (k_V t)).

    Assumes: the vocabulary is padded to the next multiple of k_V t.

    Source: Megatron-LM (Shoeybi et al. 2019), `_vocab_size_with_padding`: the multiple is
    `--make-vocab-size-divisible-by`, 128 by default, times the tensor-parallel size.

    >>> 8 * padded_vocabulary_share(50257, 128, 8), padded_vocabulary_share(50257, 64, 1)
    (51200, 50304)
    """
    return vocab_multiple * ceil_div(vocab_size, vocab_multiple * tp)


@formula(
    glyph="N_{att}",
    dimension=ONE,
    source=VASWANI,
    increasing="head_dim hidden_size num_attention_heads num_key_value_heads",
    curvature="convex",
)
def attention_parameters(hidden_size: Any, num_attention_heads: Any, num_key_value_heads: Any, head_dim: Any) -> Any:
    """Weights of an attention block: queries, keys, values and output, 2 h d_h (a + a_kv).

    Assumes: keys and values of equal width, no biases.

    Source: Vaswani et al. 2017 section 3.2.2, with a_kv key-value heads.

    >>> from sympy import symbols
    >>> attention_parameters(*symbols("h a k d"))
    2*d*h*(a + k)
    """
    return 2 * hidden_size * head_dim * (num_attention_heads + num_key_value_heads)


@formula(
    glyph="N_{mlp}",
    dimension=ONE,
    source=VASWANI,
    increasing="hidden_size intermediate_size",
    curvature="affine",
)
def mlp_parameters(hidden_size: Any, intermediate_size: Any) -> Any:
    """Weights of a plain MLP: 2 h f.

    Assumes: two products, no biases.

    Source: Vaswani et al. 2017 section 3.3.

    >>> from sympy import symbols
    >>> mlp_parameters(*symbols("h f"))
    2*f*h
    """
    return 2 * hidden_size * intermediate_size


@formula(
    glyph="N_{glu}",
    dimension=ONE,
    source=SHAZEER,
    increasing="hidden_size intermediate_size",
    curvature="affine",
)
def gated_mlp_parameters(hidden_size: Any, intermediate_size: Any) -> Any:
    """Weights of a gated MLP: gate, up and down, 3 h f.

    Assumes: three products, no biases.

    Source: Shazeer 2020 section 2.

    >>> from sympy import symbols
    >>> gated_mlp_parameters(*symbols("h f"))
    3*f*h
    """
    return 3 * hidden_size * intermediate_size


@formula(
    glyph="N_{norm}",
    dimension=ONE,
    source=BA,
    increasing="width",
    curvature="affine",
)
def norm_parameters(width: Any) -> Any:
    """Gains of a norm over `width` features; a bias doubles them.

    Assumes: one gain per feature.

    Source: Ba et al. 2016 section 3.

    >>> from sympy import symbols
    >>> norm_parameters(symbols("w"))
    w
    """
    return width


@formula(
    glyph="N_{emb}",
    dimension=ONE,
    source=RADFORD,
    increasing="hidden_size position_rows vocab_size",
    curvature="convex",
)
def embedding_parameters(vocab_size: Any, position_rows: Any, hidden_size: Any) -> Any:
    """Parameters of the token table and the learned position table: (V + P_pos) h.

    Assumes: P_pos = 0 without learned positions; an untied head is a `linear_parameters` of its own.

    Source: Radford et al. 2019 section 2.3 (GPT-2).

    >>> from sympy import symbols
    >>> embedding_parameters(*symbols("V P h"))
    h*(P + V)
    """
    return (vocab_size + position_rows) * hidden_size


@formula(
    glyph="N_{gpt}",
    dimension=ONE,
    source=NARAYANAN,
    increasing="hidden_size num_layers sequence vocab_size",
    curvature="convex",
)
def gpt_parameters(num_layers: Any, hidden_size: Any, vocab_size: Any, sequence: Any) -> Any:
    """Parameters of a GPT in the literature's closed form, 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)).

    Assumes: f = 4 h, a d_h = h, biases everywhere, tied embedding, s learned positions; the final norm is left out.

    Source: Narayanan et al. 2021 equation (2).

    >>> from sympy import symbols
    >>> gpt_parameters(*symbols("L h V s"))
    12*L*h**2 + 13*L*h + h*(V + s)
    """
    h, layers = hidden_size, num_layers
    return 12 * layers * h**2 + 13 * layers * h + (vocab_size + sequence) * h


@formula(
    glyph="M_{gpt}",
    dimension=FLOP,
    source=KORTHIKANTI,
    increasing="batch flop hidden_size num_layers sequence vocab_size",
    curvature="convex",
)
def gpt_model_flops(batch: Any, sequence: Any, hidden_size: Any, num_layers: Any, vocab_size: Any) -> Any:
    """FLOPs of a GPT's training step without recomputation, 72 B L s h^2 (1 + s/(6 h) + V/(12 h L)).

    Assumes: f = 4 h, a d_h = h, attention counted in full, backward twice the forward.

    Source: Korthikanti et al. 2022 equation (7).

    >>> from sympy import symbols
    >>> gpt_model_flops(*symbols("B s h L V"))
    flop*(72*B*L*h**2*s + 12*B*L*h*s**2 + 6*B*V*h*s)
    """
    b, s, h, layers = batch, sequence, hidden_size, num_layers
    return (72 * b * layers * s * h**2 + 12 * b * layers * s**2 * h + 6 * b * s * h * vocab_size) * flop


@formula(
    glyph="H_{gpt}",
    dimension=FLOP,
    source=NARAYANAN,
    increasing="batch flop hidden_size num_layers sequence vocab_size",
    curvature="convex",
)
def gpt_hardware_flops(batch: Any, sequence: Any, hidden_size: Any, num_layers: Any, vocab_size: Any) -> Any:
    """FLOPs of a GPT's training step with full recomputation, 96 B L s h^2 (1 + s/(6 h) + V/(16 L h)).

    Assumes: as `gpt_model_flops`, with one more forward pass through every layer but not the head.

    Source: Narayanan et al. 2021 equation (3).

    >>> from sympy import symbols
    >>> gpt_hardware_flops(*symbols("B s h L V"))
    flop*(96*B*L*h**2*s + 16*B*L*h*s**2 + 6*B*V*h*s)
    """
    b, s, h, layers = batch, sequence, hidden_size, num_layers
    return (96 * b * layers * s * h**2 + 16 * b * layers * s**2 * h + 6 * b * s * h * vocab_size) * flop


@formula(
    glyph="MFU",
    dimension=ONE,
    source=CHOWDHERY,
    increasing="model_flops",
    decreasing="devices rate step_time",
    curvature="affine",
)
def flops_utilization(model_flops: Any, step_time: Any, devices: Any, rate: Any) -> Any:
    """Part of the peak that a step's FLOPs make up: MFU of model FLOPs, HFU of executed ones.

    Assumes: `rate` is the dense peak of one device in the precision of the products.

    Source: Chowdhery et al. 2022 section 4.1 and appendix B.

    >>> from sympy import symbols
    >>> flops_utilization(*symbols("M T D F"))
    M/(D*F*T)
    """
    return model_flops / (step_time * devices * rate)
