"""Adapters that are trained beside frozen weights: LoRA, its weights decomposed (DoRA), and weights stored in 4 bits.

A linear layer of k inputs and n outputs has a matrix into the rank r and one out of it; x W is left as it is, and
s (x A) B is added to it. A product over m rows reads weights of 16 bits, into which stored ones are widened before it.
"""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE, ONE
from ..language.formula import formula
from ..language.symbols import (
    activation_bytes,
    adapter_passes,
    base_block,
    base_element_bytes,
    base_scale_bytes,
    lora_rank,
    statistic_bytes,
    weight_bytes,
)
from ..sources import DORA, LORA, PEFT, QLORA


@formula(
    glyph="N_{ad}",
    dimension=ONE,
    source=LORA,
    increasing="columns inner lora_rank",
    curvature="convex",
)
def adapter_parameters(inner: Any, columns: Any) -> Any:
    """Parameters of the adapter of a linear layer: r (k + n).

    Assumes: no biases; k and n are what a device has of them.

    Source: Hu et al. 2021 section 4.1: B of d x r and A of r x k for a matrix of d x k.

    >>> from sympy import symbols
    >>> adapter_parameters(*symbols("k n"))
    lora_rank*(k + n)
    """
    return lora_rank * (inner + columns)


@formula(
    glyph="Q_{ad}",
    dimension=BYTE,
    source=PEFT,
    increasing="activation_bytes adapter_passes elements",
    curvature="affine",
)
def adapter_sum_bytes(elements: Any) -> Any:
    """Bytes to scale what an adapter gives and to add it to the layer's result: n_{ad} N w_x.

    Assumes: n_ad = 5 where one kernel scales (in, out) and one adds (two in, one out); 1 where the product out of the
    rank does both as it writes, and reads the result before.

    Source: PEFT, tuners/lora/layer.py: `result = result + lora_B(lora_A(dropout(x))) * scaling`.

    >>> from sympy import symbols
    >>> adapter_sum_bytes(symbols("N"))
    N*activation_bytes*adapter_passes
    """
    return adapter_passes * elements * activation_bytes


@formula(
    glyph="Q_{ad}'",
    dimension=BYTE,
    source=PEFT,
    increasing="activation_bytes adapter_passes columns inner rows",
    curvature="convex",
)
def adapter_sum_backward_bytes(rows: Any, inner: Any, columns: Any) -> Any:
    """Bytes to scale an adapter's gradient and to sum both gradients of the input: n_{ad} m w_x (2 n + 3 k) / 5.

    Assumes: the m n elements of the result's gradient in and out, two gradients of the m k elements of the input in and
    their sum out, where nothing is fused; as much less where the forward pass has less.

    Source: PEFT, tuners/lora/layer.py, by the rules of automatic differentiation.

    >>> from sympy import symbols
    >>> adapter_sum_backward_bytes(*symbols("m k n"))
    activation_bytes*adapter_passes*m*(3*k + 2*n)/5
    """
    return adapter_passes * activation_bytes * rows * (2 * columns + 3 * inner) / 5


@formula(
    glyph="Q_{mag}",
    dimension=BYTE,
    source=DORA,
    increasing="activation_bytes elements",
    curvature="affine",
)
def merged_norm_bytes(elements: Any) -> Any:
    """Bytes of the norms of the columns of W + s B A, for the product B A that is made before: 6 N w_x.

    Assumes: kernels of their own scale the product (in, out), add the weight (two in, one out) and take the norm (in).

    Source: PEFT, tuners/lora/dora.py, `get_weight_norm`; Liu et al. 2024 equation 5.

    >>> from sympy import symbols
    >>> merged_norm_bytes(symbols("N"))
    6*N*activation_bytes
    """
    return 6 * elements * activation_bytes


@formula(
    glyph="Q_{dora}",
    dimension=BYTE,
    source=DORA,
    increasing="activation_bytes elements",
    curvature="affine",
)
def magnitude_bytes(elements: Any) -> Any:
    """Bytes to weigh a result and its adapter's by the learned magnitudes over the norms: 12 N w_x.

    Assumes: the result weighed (2 N), the adapter's weighed (2 N) and scaled (2 N), both added (3 N), and added to the
    result (3 N), each in a kernel of its own.

    Source: PEFT, tuners/lora/dora.py, `forward`; Liu et al. 2024 equation 5.

    >>> from sympy import symbols
    >>> magnitude_bytes(symbols("N"))
    12*N*activation_bytes
    """
    return 12 * elements * activation_bytes


@formula(
    glyph="Q_{dora}'",
    dimension=BYTE,
    source=DORA,
    increasing="activation_bytes elements",
    curvature="affine",
)
def magnitude_backward_bytes(elements: Any) -> Any:
    """Bytes of the gradients of `magnitude_bytes`: 17 N w_x.

    Assumes: gradients of both results (2 N each) and of what scales the adapter's (2 N), products with both for the
    magnitudes and their sums over tokens (4 N each), and the sum of the result's two gradients (3 N); norms have none.

    Source: PEFT, tuners/lora/dora.py; Liu et al. 2024 section 4.3: the norm is a constant to the gradient.

    >>> from sympy import symbols
    >>> magnitude_backward_bytes(symbols("N"))
    17*N*activation_bytes
    """
    return 17 * elements * activation_bytes


@formula(
    glyph="M_{b}",
    dimension=BYTE,
    source=QLORA,
    increasing="base_element_bytes base_scale_bytes parameters",
    decreasing="base_block",
    curvature="convex",
)
def stored_weights_memory(parameters: Any) -> Any:
    """Bytes of frozen weights that are stored in few bits, with their scales: N (w_nf + w_qs / B_nf).

    Assumes: a scale for each B_nf = 64 values; quantised again, a scale has 8 bits and a share of 32 for each 256 of
    them, so that a value has 4.127 bits.

    Source: Dettmers et al. 2023 section 3: 8/64 + 32/(64 256) = 0.127 bits a parameter.

    >>> from sympy import symbols
    >>> stored_weights_memory(symbols("N"))
    N*(base_element_bytes + base_scale_bytes/base_block)
    """
    return parameters * (base_element_bytes + base_scale_bytes / base_block)


@formula(
    glyph="Q_{dq}",
    dimension=BYTE,
    source=QLORA,
    increasing="base_element_bytes parameters statistic_bytes weight_bytes",
    decreasing="base_block",
    curvature="convex",
)
def widened_weights_bytes(parameters: Any) -> Any:
    """Bytes to widen stored weights before a product: N (w_nf + w_s / B_nf + w_w).

    Assumes: one kernel reads values and scales in FP32 and writes weights in the format of products, which the product
    then reads, in the forward pass and again in the backward pass.

    Source: Dettmers et al. 2023 section 3, doubleDequant; bitsandbytes, autograd/_functions.py, `MatMul4Bit`: the
    weight is dequantized for the product forward and for the gradient of its input.

    >>> from sympy import symbols
    >>> widened_weights_bytes(symbols("N"))
    N*(base_element_bytes + weight_bytes + statistic_bytes/base_block)
    """
    return parameters * (base_element_bytes + statistic_bytes / base_block + weight_bytes)


@formula(
    glyph="Q_{ds}",
    dimension=BYTE,
    source=QLORA,
    increasing="base_scale_bytes parameters statistic_bytes",
    decreasing="base_block",
    curvature="convex",
)
def widened_scales_bytes(parameters: Any) -> Any:
    """Bytes to widen the scales of stored weights: (N / B_nf)(w_qs + 3 w_s).

    Assumes: scales are widened into FP32 and written; then their mean is added to what is read and written again.

    Source: Dettmers et al. 2023 section 3, double quantization; bitsandbytes, functional.py, `dequantize_4bit`.

    >>> from sympy import symbols
    >>> widened_scales_bytes(symbols("N"))
    N*(base_scale_bytes + 3*statistic_bytes)/base_block
    """
    return parameters / base_block * (base_scale_bytes + 3 * statistic_bytes)
