"""Low-rank adapters of many requests at once: two grouped products beside a linear layer, and what they keep."""

from __future__ import annotations

from typing import Any

from ..language.dimension import BYTE
from ..language.formula import formula
from ..language.symbols import activation_bytes, lora_adapters, lora_rank, statistic_bytes
from ..sources import PUNICA, S_LORA


@formula(
    glyph="Q_{shr}",
    dimension=BYTE,
    source=PUNICA,
    increasing="activation_bytes columns groups inner rows statistic_bytes",
    curvature="convex",
)
def adapter_shrink_bytes(rows: Any, inner: Any, columns: Any, groups: Any) -> Any:
    """Bytes of the product into the rank of every row's adapter: m k w + g k n w + m n w_s.

    The m rows are read once, the k x n matrices of g adapters once each, and sums are written in FP32.

    Assumes: n is the rank times the layers that are packed into one; rows of one adapter lie together.

    Source: Chen et al. 2023, SGMV: each segment of rows reads the weights of its adapter once; sums as vLLM keeps them
    (vllm/lora/punica_wrapper/punica_gpu.py @010c9386, add_lora_linear: its buffer is torch.float32).

    >>> from sympy import symbols
    >>> adapter_shrink_bytes(*symbols("m k n g"))
    activation_bytes*(g*k*n + k*m) + m*n*statistic_bytes
    """
    return (rows * inner + groups * inner * columns) * activation_bytes + rows * columns * statistic_bytes


@formula(
    glyph="Q_{exp}",
    dimension=BYTE,
    source=PUNICA,
    increasing="activation_bytes columns groups inner lora_rank rows statistic_bytes",
    curvature="convex",
)
def adapter_expand_bytes(rows: Any, inner: Any, columns: Any, groups: Any) -> Any:
    """Bytes of the product out of the rank, added to the layer's result: m k w_s + g r n w + 2 m n w.

    Assumes: k is the rank times the packed layers, of which each has its part of the n columns; the result is read and
    written.

    Source: Chen et al. 2023, SGMV; added in place as by lora_expand of vLLM.

    >>> from sympy import symbols
    >>> adapter_expand_bytes(*symbols("m k n g"))
    activation_bytes*(g*lora_rank*n + 2*m*n) + k*m*statistic_bytes
    """
    weights = groups * lora_rank * columns + 2 * rows * columns
    return weights * activation_bytes + rows * inner * statistic_bytes


@formula(
    glyph="M_{ad}",
    dimension=BYTE,
    source=S_LORA,
    increasing="activation_bytes columns inner lora_adapters lora_rank",
    curvature="convex",
)
def adapter_memory(inner: Any, columns: Any) -> Any:
    """Bytes of the adapters of a linear layer on a device: N r (k + n) w.

    Assumes: k counts the input of every packed layer, n the outputs of all; slots of the largest rank are kept for N
    adapters whether they are used or not (vllm/lora/layers/column_parallel_linear.py @0163de2b, create_lora_weights).

    Source: Sheng et al. 2023: W' = W + A B, two matrices of rank r for each adapted one.

    >>> from sympy import symbols
    >>> adapter_memory(*symbols("k n"))
    activation_bytes*lora_adapters*lora_rank*(k + n)
    """
    return lora_adapters * lora_rank * (inner + columns) * activation_bytes
