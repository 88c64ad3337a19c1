"""The rate of products in a format that a device does not multiply: that of a wider one, as weight-only kernels run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .system import System

_HALVES: Final = ("bf16", "fp16", "tf32", "fp32")
WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("int4", "int8", "fp4", "fp6", "fp8"), _HALVES),
    "bf16": ("tf32", "fp32", "fp16"),
    "fp16": ("tf32", "fp32", "bf16"),
    "tf32": ("fp32",),
}
"""What a product in a format runs in where the device has no rate for it, the first that it has: 8 bits and fewer are
widened to 16 in registers (Frantar et al. 2024, MARLIN), 16 bits to 32, or else read as the other 16 bits."""


def product_format(system: System, precision: str) -> str:
    """The format whose rate products in `precision` run at: itself, or the first of `WIDER` that the device has.

    Itself also where the device has none of them, so that asking for its rate is refused.

    >>> from symperf import System
    >>> product_format(System.load("a100-80gb-sxm"), "fp8"), product_format(System.load("h100-sxm"), "fp8")
    ('bf16', 'fp8')
    """
    if precision in system.matrix_rates:
        return precision
    return next((wider for wider in WIDER.get(precision, ()) if wider in system.matrix_rates), precision)


def widening(system: System, precision: str) -> tuple[str, ...]:
    """What a run says about products in a format that the device does not multiply; nothing where it does."""
    wider = product_format(system, precision)
    if wider == precision:
        return ()
    told = f"{system.name} has no matrix_rate in {precision}: weights keep its bytes and are widened"
    return (f"{told}, products run at the rate of {wider}",)
