"""Tables of products, of experts and of casts."""

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


STAGES: Final = tuple(f"experts/{name}" for name in ("permute", "up", "activation", "down", "unpermute"))
GATED: Final = Form("experts", "mixtral-8x7b", ffn="experts", phase="decode", paths=STAGES)
PLAIN: Final = Form("experts", "nemotron-3-nano-30b-a3b", "none", ffn="experts", phase="decode", paths=STAGES)
"""Experts of three matrices and of two."""


def _moe(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype = texts["moe_dtype"]
    form = PLAIN if texts["kernel_source"].endswith("nongated") else GATED
    return Sort(texts["distribution"], dtype, form, Setting(system, software, precision_of(dtype, system)))


def _moe_sizes(rows: Arrays) -> Arrays:
    """Tokens of the whole group of devices: each has its part of them, and its part of the experts."""
    return {
        "micro_batch": rows["num_tokens"] / rows["moe_ep_size"],
        "ep": rows["moe_ep_size"],
        "expert_tp": rows["moe_tp_size"],
        "hidden_size": rows["hidden_size"],
        "expert_intermediate_size": rows["inter_size"],
        "num_experts": rows["num_experts"],
        "num_experts_per_token": rows["topk"],
    }


def _cast(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype = texts["quant_dtype"]
    return Sort("", dtype, Form("cast"), Setting(system, software), {"width": width_of(dtype)})


def _cast_sizes(rows: Arrays) -> Arrays:
    return {"row/elements": rows["m"] * rows["k"], "row/width": rows["width"]}


EXPERT_SHAPE: Final = ("hidden_size", "inter_size", "topk", "num_experts")
ROUTED: Final = ("num_tokens", *EXPERT_SHAPE, "moe_tp_size", "moe_ep_size")
OPERATIONS: Final = {
    "gemm": Operation(("gemm_dtype",), ("m", "n", "k"), ("n", "k"), _gemm, _product_sizes),
    "moe": Operation(("moe_dtype", "distribution"), ROUTED, EXPERT_SHAPE, _moe, _moe_sizes),
    "wideep_moe": Operation(("moe_dtype", "distribution"), ROUTED, EXPERT_SHAPE, _moe, _moe_sizes),
    "scale_matrix": Operation(("quant_dtype",), ("m", "k"), ("k",), _cast, _cast_sizes),
}
"""By the name of the table."""
