"""Tables of exchanges of tokens between experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .exchanges import networked
from .experts import OTHER
from .formats import LeftOutError
from .forms import Form, Setting
from .operation import Measure, Operation, Sort

if TYPE_CHECKING:
    from ...systems.system import System
    from .operation import Arrays

DIRECT: Final = Form("exchange", "mixtral-8x7b", ffn="experts", phase="decode")
BULK: Final = Form("exchange", "mixtral-8x7b", ffn="experts", phase="prefill")
"""Exchanges of a few tokens each, and of many."""
NODE: Final = {"gb200-nvl72": 4.0}
"""Devices of a node where they are not those of a scale-up domain: a tray of an NVL72 has four."""
FP8_BLOCKS: Final = 1 + 4 / 128
"""Bytes of an element in fp8 with a scale in fp32 for each 128 (DeepEP, README: dispatch in fp8, combine in bf16)."""


def _low_latency(texts: dict[str, str], software: str, system: System) -> Sort:
    del texts
    return _deepep(DIRECT, software, system)


def _normal(texts: dict[str, str], software: str, system: System) -> Sort:
    del texts
    return _deepep(BULK, software, system)


def _deepep(form: Form, software: str, system: System) -> Sort:
    devices = {"devices": NODE.get(system.name, 8.0)}
    return Sort("", "fp8 there, bf16 back", form, Setting(networked(system), software), devices)


def _deepep_sizes(rows: Arrays) -> Arrays:
    return {
        "micro_batch": rows["num_token"],
        "ep": rows["node_num"] * rows["devices"],
        "hidden_size": rows["hidden_size"],
        "num_experts_per_token": rows["num_topk"],
        "num_experts": rows["num_experts"],
        "row/width": rows["width"],
    }


def _normal_sizes(rows: Arrays) -> Arrays:
    return _deepep_sizes(rows) | {"exchange_units": rows["dispatch_sms"]}


TWO_SIDED: Final = "NVLinkTwoSided"
"""Kernels that TensorRT-LLM took before those in which each device writes what it sends (alltoall_method_type)."""
SENT: Final = {"bfloat16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}
RETURNED: Final = {"alltoall_combine": 2.0, "alltoall_combine_low_precision": 1.0}


def _trtllm_alltoall(texts: dict[str, str], software: str, system: System) -> Sort:
    name, dtype = texts["op_name"], texts["moe_dtype"]
    if name != "alltoall_dispatch" and name not in RETURNED:
        raise LeftOutError(f"{name}: a kernel that sends no token")
    width = RETURNED.get(name, SENT.get(dtype))
    if width is None:
        raise LeftOutError(f"tokens sent in {dtype}: the bytes of an element are not known")
    setting = Setting(networked(system), software)
    label = name.removeprefix("alltoall_") + (f"/{OTHER}" if texts["kernel_source"] == TWO_SIDED else "")
    return Sort(label, dtype, BULK, setting, {"width": width})


def _trtllm_sizes(rows: Arrays) -> Arrays:
    return {
        "micro_batch": rows["num_tokens"],
        "ep": rows["moe_ep_size"],
        "hidden_size": rows["hidden_size"],
        "num_experts_per_token": rows["topk"],
        "num_experts": rows["num_experts"],
        "row/width": rows["width"],
    }


OPERATIONS: Final = {
    "wideep_deepep_ll": Operation(
        (),
        ("node_num", "hidden_size", "num_token", "num_topk", "num_experts"),
        ("hidden_size", "num_topk", "num_experts"),
        _low_latency,
        _deepep_sizes,
        measures=(
            Measure(("dispatch_avg_t_us",), 1e-6, "dispatch", {"width": FP8_BLOCKS}),
            Measure(("combine_avg_t_us",), 1e-6, "combine", {"width": 2.0}),
        ),
    ),
    "wideep_deepep_normal": Operation(
        (),
        ("node_num", "hidden_size", "num_token", "num_topk", "num_experts", "dispatch_sms"),
        ("hidden_size", "num_topk", "num_experts"),
        _normal,
        _normal_sizes,
        measures=(
            Measure(("dispatch_transmit_us", "dispatch_notify_us"), 1e-6, "dispatch", {"width": FP8_BLOCKS}),
            Measure(("combine_transmit_us", "combine_notify_us"), 1e-6, "combine", {"width": 2.0}),
        ),
    ),
    "trtllm_alltoall": Operation(
        ("op_name", "moe_dtype"),
        ("num_tokens", "hidden_size", "topk", "num_experts", "moe_ep_size"),
        ("num_tokens",),
        _trtllm_alltoall,
        _trtllm_sizes,
    ),
}
"""By the name of the table."""
