"""Tables of routed experts.

Each device is given the tokens of all devices. Rows are of experts with equal loads, or with loads by a power law,
where the device that was measured is the fullest. Kernels that a software takes only when it is told to, and those of
its older versions, are scored apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .formats import precision_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from ...systems.system import System
    from .operation import Arrays

STAGES: Final = tuple(f"experts/{name}" for name in ("permute", "up", "activation", "down", "unpermute", "routed"))
GATED: Final = Form("experts", "mixtral-8x7b", ffn="experts", phase="decode", paths=STAGES)
PLAIN: Final = Form("experts", "nemotron-3-nano-30b-a3b", "none", ffn="experts", phase="decode", paths=STAGES)
"""Experts of three matrices and of two."""
POWER_LAW: Final = "power_law_"
OTHER: Final = "other kernel"
"""What is added to the name of an operation where a software runs another kernel by default."""
CHOSEN: Final = (
    "min_latency",
    "situ_as_silu",
    "cutedsl",
    "modular",
    "sglang_flashinfer_cutlass",
    "sglang_flashinfer_mxfp4",
    "w4a4mxfp4moe_marlin",
    "nvfp4moe_flashinfer_cutlass",
    "bf16moe_flashinfer_cutlass",
    "vllm_marlin_moe",
    "vllm_marlin_int4_moe",
    "vllm_mxfp4_moe",
    "vllm_flashinfer_trtllm_moe_fp4",
)
"""Kernels that run on request, or did in versions before those that are named for it: parts of their names."""
OLDER_WITH_FP8: Final = ("vllm_fused_moe", "moe_torch_flow")
"""Whole names of kernels of older versions, whose rows stand for newer ones where none of them was measured."""
CHOSEN_WITH_FP4: Final = (
    "sglang_fused_moe_triton",
    "fp8moe_flashinfer_cutlass",
    "unquantizedfusedmoe_flashinfer_cutlass",
)
"""The same on devices that have products in 4 bits, where kernels of trtllm-gen come first."""


CHOSEN_IN: Final = {"int4_wo": ("sglang_flashinfer_trtllm",)}
"""The same for one format of weights."""


def by_default(kernel: str, dtype: str, system: System) -> bool:
    """Whether a software takes this kernel for a format on a device where nobody asks for another.

    vLLM: the order of the backends in vllm/model_executor/layers/fused_moe/oracle; SGLang: moe_runner_backend in
    python/sglang/srt/server_args.py; TensorRT-LLM: CUTLASS, DeepGEMM for blocks of FP8 on Blackwell.
    """
    if kernel in OLDER_WITH_FP8 and "fp8" in system.matrix_rates and dtype != "w4a16_mxfp4":
        return False
    on_request = (*CHOSEN, *CHOSEN_IN.get(dtype, ()), *(CHOSEN_WITH_FP4 if "fp4" in system.matrix_rates else ()))
    return not any(name in kernel for name in on_request)


PRECISIONS: Final = {"fp8_block": "fp8-block", "w4a16_mxfp4": "mxfp4-weight"}
"""Formats of which the kernels of experts are not those of other products of as many bits."""


def _moe(texts: dict[str, str], software: str, system: System) -> Sort:
    dtype, loads, kernel = texts["moe_dtype"], texts["distribution"], texts["kernel_source"]
    form = PLAIN if kernel.endswith("nongated") else GATED
    values = {}
    if loads.startswith(POWER_LAW) and not loads.endswith("eplb"):
        form = replace(form, skewed=True)
        values["routing_skew"] = float(loads.removeprefix(POWER_LAW)) - 1
    elif loads != "uniform":
        form = replace(form, name="even_experts")
    label = loads if by_default(kernel, dtype, system) else f"{loads}/{OTHER}"
    precision = precision_of(dtype, system)
    return Sort(label, dtype, form, Setting(system, software, PRECISIONS.get(dtype, precision)), values)


def _moe_sizes(rows: Arrays) -> Arrays:
    """Tokens of the whole group of devices: each has its part of them, and its part of the experts."""
    skew = {"routing_skew": rows["routing_skew"]} if "routing_skew" in rows else {}
    return skew | {
        "micro_batch": rows["num_tokens"] / rows["moe_ep_size"],
        "ep": rows["moe_ep_size"],
        "expert_tp": rows["moe_tp_size"],
        "hidden_size": rows["hidden_size"],
        "expert_intermediate_size": rows["inter_size"],
        "num_experts": rows["num_experts"],
        "num_experts_per_token": rows["topk"],
    }


EXPERT_SHAPE: Final = ("hidden_size", "inter_size", "topk", "num_experts")
ROUTED: Final = ("num_tokens", *EXPERT_SHAPE, "moe_tp_size", "moe_ep_size")
OPERATIONS: Final = {
    name: Operation(("moe_dtype", "distribution"), ROUTED, EXPERT_SHAPE, _moe, _moe_sizes)
    for name in ("moe", "wideep_moe")
}
"""By the name of the table."""
