"""Tables of products and of casts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .formats import LeftOutError, precision_of, width_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from ...systems.system import System
    from .operation import Arrays

PRODUCT: Final = Form("product")


HOST: Final = "Fp8BlockScaledMMKernel"
"""Part of the names of vLLM's kernels of fp8 in blocks, which its collector did not record in graphs."""


def _gemm(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype = texts["gemm_dtype"]
    if HOST in texts["kernel_source"]:
        raise LeftOutError("times of the host, which launches each kernel by itself: none is under 55 us")
    return Sort("", dtype, PRODUCT, Setting(system, software, precision_of(dtype, system)))


def _product_sizes(rows: Arrays) -> Arrays:
    return {f"row/{name}": rows[name] for name in "mnk"}


def _cast(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype = texts["quant_dtype"]
    return Sort("", dtype, Form("cast"), Setting(system, software), {"width": width_of(dtype)})


def _cast_sizes(rows: Arrays) -> Arrays:
    return {"row/elements": rows["m"] * rows["k"], "row/width": rows["width"]}


OPERATIONS: Final = {
    "gemm": Operation(("gemm_dtype",), ("m", "n", "k"), ("n", "k"), _gemm, _product_sizes),
    "scale_matrix": Operation(("quant_dtype",), ("m", "k"), ("k",), _cast, _cast_sizes),
}
"""By the name of the table."""
