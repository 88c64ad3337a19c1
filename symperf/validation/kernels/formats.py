"""What collectors call devices, software and number formats, in the names of the catalogue."""

from __future__ import annotations

from functools import cache
from typing import Final

from ...common.errors import InputError
from ...systems.system import System, catalogue_names
from ...systems.widening import product_format


class LeftOutError(Exception):
    """Rows that no formula predicts, with the reason: a sentence that names no row."""


DEVICES: Final = {
    "a100_sxm": "a100-80gb-sxm",
    "b60": "arc-pro-b60",
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
    "l40s": "l40s-shared-root",
    "rtx_pro_6000_server": "rtx-pro-6000",
}
"""Devices whose name in the tables is not that of the catalogue with hyphens."""
SOFTWARE: Final = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang", "nccl": "NCCL"}
STACKS: Final = {"TensorRT-LLM": "tensorrt-llm-1.3", "vLLM": "vllm-0.24", "SGLang": "sglang-0.5"}
"""The profile that says which kernels a software joins; vLLM's for one without."""
PRECISIONS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8": "fp8",
    "fp8_static": "fp8",
    "fp8_block": "fp8-block",
    "nvfp4": "fp4",
    "sq": "int8",
    "int8_wo": "int8-weight",
    "int4_wo": "int4-weight",
    "w4a16_mxfp4": "mxfp4-weight",
    "w4afp8": "int4-fp8",
    "w4a8_mxfp4_mxfp8": "mxfp4-mxfp8",
}
"""Formats of products: the precision of a plan that predicts them."""
CACHES: Final = {"bfloat16": "bf16", "float16": "fp16", "fp8": "fp8", "fp8_e4m3": "fp8", "int8": "int8"}
WIDTHS: Final = {"half": 2.0, "bfloat16": 2.0, "float16": 2.0, "float": 4.0, "int8": 1.0, "fp8": 1.0}
"""Bytes of an element of a message."""


def software_of(name: str) -> str:
    """The software by its usual name; one that is not known keeps the name of its table.

    >>> software_of("VLLM")
    'vLLM'
    """
    return SOFTWARE.get(name.casefold(), name)


@cache
def system_of(device: str) -> System:
    """The system of a device.

    Raises:
        LeftOutError: the catalogue has none.
    """
    name = DEVICES.get(device, device.replace("_", "-"))
    if name not in catalogue_names():
        raise LeftOutError("the catalogue has no system of this device")
    return System.load(name)


def precision_of(name: str, system: System) -> str:
    """The precision of a plan for a format of products.

    Raises:
        LeftOutError: no precision has it, or the system has no rate for it.
    """
    from ...infer.formats import FORMATS, sixteen_bits

    if name not in PRECISIONS:
        raise LeftOutError(f"format {name}: no format of a plan")
    precision = PRECISIONS[name]
    rate = product_format(system, FORMATS[precision].rate or sixteen_bits(system))
    try:
        system.matrix_rate(rate)
    except InputError:
        raise LeftOutError(f"{system.name} has no matrix_rate in {rate}") from None
    return precision


def cache_of(name: str) -> str:
    """The format of a cache.

    Raises:
        LeftOutError: it is not known.
    """
    if name not in CACHES:
        raise LeftOutError(f"cache in {name}: no format of a cache")
    return CACHES[name]


def width_of(name: str) -> float:
    """Bytes of an element of a message.

    Raises:
        LeftOutError: it is not known.
    """
    if name not in WIDTHS:
        raise LeftOutError(f"messages of {name}: the bytes of an element are not known")
    return WIDTHS[name]
