"""Which symbols can be fitted, between what bounds, and what is believed of them before a row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..systems.kernel_constants import FAMILIES, INSTEAD, TRAINED
from ..systems.system_symbols import SYMBOLS
from ..systems.units import COUNT, FRACTION, POWER, PRICE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..systems.system import System

CHOSEN = (
    "matrix_efficiency",
    "fp8_efficiency",
    "ridge_efficiency",
    "sustained_efficiency",
    "attention_efficiency",
    "attention_backward_efficiency",
    "memory_efficiency",
    "l2_efficiency",
    "launch_latency",
    "split_latency",
    "scale_up_efficiency",
    "scale_up_half_bytes",
    "scale_up_latency",
    "switch_efficiency",
    "scale_out_efficiency",
    "scale_out_half_bytes",
    "scale_out_latency",
    *(name for family in TRAINED for name in FAMILIES[family]),
)
"""Fitted unless others are asked for, as far as the system's forms have them and the rows depend on them."""
FITTED = tuple(
    name
    for name, limits in SYMBOLS.items()
    if limits.dimension not in (COUNT, POWER, PRICE) and name != "memory_capacity"
)
"""What may be asked for."""
SHARE_WIDTH, WIDE = 0.3, 1.0
"""Prior standard deviation of ln(value): of shares and rates, and of latencies and sizes, which vary by factors."""


@dataclass(frozen=True)
class Prior:
    """ln(value) is believed to be normal around the start, with this standard deviation, between bounds."""

    name: str
    start: float
    width: float
    low: float
    high: float

    @property
    def measured(self) -> bool:
        """Whether it is a rate of a data sheet rather than a share, a latency or a size."""
        return self.name not in CHOSEN


def choose_symbols(asked: Iterable[str], system: System) -> list[str]:
    """The symbols to fit: those asked for, or the usual ones that the system has.

    Raises:
        InputError: an unknown symbol, one that is no matter of fitting, or one that the system lacks.
    """
    names = [name.replace("-", "_") for name in dict.fromkeys(asked)]
    if not names:
        known = system.families
        unread = {
            name for family in TRAINED for name in (INSTEAD.get(family, ()) if family in known else FAMILIES[family])
        }
        return [name for name in CHOSEN if name in system.quantities and name not in unread]
    for name in names:
        if name not in FITTED:
            if name in SYMBOLS or name == "matrix_rate":
                raise InputError(
                    f"--fit: {name} is a figure of the data sheet, which is not fitted; set it in the system"
                )
            raise InputError(f"--fit: no symbol {quote(name)}{nearest(name, FITTED)}")
        system.value(name)
    return names


NARROWEST, WIDEST = 1e-6, 100.0
"""Widths of ln(value) between which a fit is sound in floats."""


def parse_priors(asked: Iterable[str]) -> dict[str, float]:
    """Widths by symbol of `NAME=WIDTH`, and under "" of a width alone.

    Raises:
        InputError: no number above zero, or an unknown symbol.
    """
    found: dict[str, float] = {}
    for text in asked:
        name, equals, number = text.rpartition("=")
        name = name.strip().replace("-", "_")
        try:
            width = float(number) if number.isascii() and "_" not in number else math.nan
        except ValueError:
            width = math.nan
        if not NARROWEST <= width <= WIDEST or (equals and not name):
            raise InputError(
                f"--prior: found {quote(text)}, expected NAME=WIDTH or WIDTH, a number above zero: "
                f"{NARROWEST:g} to {WIDEST:g}"
            )
        if name and name not in FITTED:
            raise InputError(f"--prior: no symbol {quote(name)}{nearest(name, FITTED)}")
        found[name] = width
    return found


def priors(names: Iterable[str], system: System, widths: Mapping[str, float]) -> list[Prior]:
    """What is believed of each symbol: the system's present value, of a stated width."""
    found = []
    for name in names:
        limits = SYMBOLS[name]
        value = system.value(name)
        shares = limits.dimension is FRACTION or name.endswith(("_bandwidth", "_rate"))
        width = widths.get(name, widths.get("", SHARE_WIDTH if shares else WIDE))
        start = value if value > 0 else math.sqrt(limits.low * limits.high)
        found.append(Prior(name, min(max(start, limits.low), limits.high), width, limits.low, limits.high))
    return found
