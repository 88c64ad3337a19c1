"""Number formats of an inference: which rate the products run at, and what an element takes in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, nearest, quote
from ..models.gguf import FILES, TYPES
from ..systems.widening import product_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..plans.plan import Plan
    from ..systems.system import System

HALF = "two bytes"
SIXTEEN_BITS: Final = ("bf16", "fp16")
NVFP4 = "blocks of 16 values of 4 bits with a scale of 8 bits (NVFP4; OCP Microscaling 1.0 has 32 a block)"
BLOCKS = "one byte, a scale of 32 bits for each 128 values of a row and 128 x 128 weights (DeepSeek-V3 report, 3.3.2)"
GROUPED = "4 bits and a 16-bit scale for each group of 128 (Frantar et al. 2022, GPTQ; Lin et al. 2023, AWQ)"
MXFP4 = "4 bits and a scale of 8 bits for each block of 32 (MXFP4; OCP Microscaling 1.0)"
KV_BYTES: Final[Mapping[str, float]] = {
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5 + 1 / 16,
    "int4": 0.5 + 4 / 128,
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
}
"""Bytes of an element of the cache, by format, with its scales; in 8 bits one for a head or a tensor is small.

NVFP4 has a scale of 8 bits for each 16 values (NVIDIA TensorRT-LLM, quantization of the KV cache); LMDeploy's 4 bits a
scale and a zero of 16 bits for each head of a token, here of 128 features (quant_policy 4, "per-head per-token
asymmetric"); q8_0 and q4_0 are blocks of GGUF (llama.cpp, --cache-type-k). Kernels compute with them in 16 bits.
"""


@dataclass(frozen=True)
class Format:
    """One format of weights and products.

    Attributes:
        weight: bytes of a weight, scales included.
        operand: bytes of an activation that a product reads.
        rate: the precision whose rate the products run at; None: that of 16-bit products (weight-only formats).
        source: of the bytes.
        like: the format whose figures of software hold where this one has none of its own.
    """

    weight: float
    operand: float
    rate: str | None
    source: str
    like: str = ""


FORMATS: Final[Mapping[str, Format]] = {
    "bf16": Format(2, 2, "bf16", HALF),
    "fp16": Format(2, 2, "fp16", HALF),
    "fp8": Format(1, 1, "fp8", "one byte; one scale for a tensor or a channel is small"),
    "fp8-block": Format(1 + 4 / 128**2, 1 + 4 / 128, "fp8", BLOCKS, "fp8"),
    "int8": Format(1, 1, "int8", "one byte; one scale for a channel is small (Xiao et al. 2022, SmoothQuant)"),
    "fp4": Format(0.5625, 0.5625, "fp4", NVFP4),
    "int8-weight": Format(1, 2, None, "one byte, one scale for a channel is small; products in 16 bits"),
    "int4-weight": Format(0.515625, 2, None, GROUPED),
    "mxfp4-weight": Format(0.53125, 2, None, MXFP4),
    "nvfp4-weight": Format(0.5625, 2, None, NVFP4, "int4-weight"),
    "int4-fp8": Format(0.515625, 1, "fp8", f"{GROUPED}; activations in 8 bits (Lin et al. 2024, QServe)"),
    "mxfp4-mxfp8": Format(0.53125, 1.03125, "fp8", f"{MXFP4}; activations in 8 bits with such a scale (MXFP8)"),
    **{
        name: Format(size / count, 2, None, f"{size} bytes for {count} weights, scales included (ggml-common.h)")
        for name, (size, count) in ((name, TYPES[FILES.get(name, name)]) for name in {**TYPES, **FILES})
    },
}
"""Formats by name; those that end in `-weight` shrink the weights only.

Types of matrices in GGUF files, and files of several types, which have their default type here; see `stored`.
"""
WEIGHT_ONLY: Final[Mapping[str, str]] = {
    "fp4": "nvfp4-weight",
    "mxfp4-mxfp8": "mxfp4-weight",
    "int4-fp8": "int4-weight",
    **dict.fromkeys(("int8", "fp8", "fp8-block"), "int8-weight"),
}
"""Formats of weights and products -> the kernels that read weights alone in so many bits, where the device does not
multiply the format: vLLM takes Marlin for them (marlin_utils_fp4.py, prepare_fp4_layer_for_marlin: "weight-only FP4
compression will be used leveraging the Marlin kernel"; vllm-project/vllm pull request 5975 for 8 bits)."""


def sixteen_bits(system: System) -> str:
    """The 16-bit precision that a device has: bf16, or fp16 on one without."""
    return "bf16" if "bf16" in system.matrix_rates or "fp16" not in system.matrix_rates else "fp16"


def format_of(plan: Plan, system: System) -> tuple[str, Format, str]:
    """The format of a plan on a system, and the precision whose rate its products run at.

    Products in a format that the device does not multiply run in a wider one, with activations in 16 bits.

    Raises:
        InputError: a format that is not known, or one of which the device has no wider rate either.
    """
    sixteen = sixteen_bits(system)
    name = plan.precision or sixteen
    if name not in FORMATS:
        raise InputError(
            f"precision: found {quote(name)}, expected {' or '.join(FORMATS)}{nearest(str(name).lower(), FORMATS)}"
        )
    found = FORMATS[name]
    asked = found.rate or sixteen
    rate = product_format(system, asked)
    system.matrix_rate(rate)
    if rate != asked:
        found = replace(found, operand=max(found.operand, 2.0), source=f"{found.source}; products in {rate}")
    return name, found, rate


def rate_asked(plan: Plan, system: System) -> str:
    """The precision that a plan's products ask for, whether the device has it or not; an unknown name as it is."""
    sixteen = sixteen_bits(system)
    name = plan.precision or sixteen
    return FORMATS[name].rate or sixteen if name in FORMATS else name


def kv_format(name: str | None, precision: str) -> str:
    """The format of the cache: the one asked for, or 16 bits.

    Raises:
        InputError: a format that is not known.
    """
    chosen = ("fp16" if precision == "fp16" else "bf16") if name is None else name
    if not isinstance(chosen, str) or chosen not in KV_BYTES:
        raise InputError(
            f"kv_precision: found {quote(chosen)}, expected {' or '.join(KV_BYTES)}"
            f"{nearest(str(chosen).lower(), KV_BYTES)}"
        )
    return chosen
