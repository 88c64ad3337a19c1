"""Values in words: numbers with units scaled for people, resources and stretches as an engineer says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.vocabulary import meaning_of, unit
from .symbols import domain_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIXES = ("p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E")
"""By powers of 1000, from 1e-12."""
LARGER = {"s": "s", "$": "USD", "$/s": "USD/s", "$/J": "USD/J"}
"""Units without prefixes above one, and how they are written."""
SPENT = {
    "cost": "USD",
    "cost_per_million_tokens": "USD per million tokens",
    "energy": "J",
    "energy_per_token": "J per token",
    "parameters": "",
}


def unit_of(name: str) -> str:
    """The SI unit of a symbol or of a quantity; nothing of a number."""
    known = meaning_of(name)
    found = SPENT[name] if name in SPENT else unit(name) if known is None else known.unit
    return {"1": "", "J/s": "W", "FLOP": "FLOP"}.get(found, found)


def spell(name: str, value: float | None) -> str:
    """A value of a symbol or of a quantity in the unit that suits its size.

    >>> spell("memory_bandwidth", 2.039e12), spell("batch", 142.0), spell("time", 0.0113), spell("mfu", 0.51)
    ('2.039 TB/s', '142', '11.3 ms', '0.51')
    """
    if value is None:
        return "-"
    if meaning_of(name) is not None and domain_of(name).whole and value % 1 == 0:
        return f"{value:.0f}"
    measure = unit_of(name)
    if not measure or value == 0 or value != value:
        return f"{value:.4g} {LARGER.get(measure, measure)}".strip()
    return scaled(value, measure)


def scaled(value: float, measure: str) -> str:
    """A number to four digits with the prefix that suits its size."""
    if " " in measure or measure.startswith(("kg", "1/")):
        return f"{value:.4g} {measure}"
    step = 4
    while step < len(PREFIXES) - 1 and abs(value) >= 999.95 * 1000.0 ** (step - 4) and measure not in LARGER:
        step += 1
    if not measure.startswith(("B", "FLOP", "USD", "$")):
        while step and abs(value) < 0.99995 * 1000.0 ** (step - 4):
            step -= 1
    return f"{value / 1000.0 ** (step - 4):.4g} {PREFIXES[step]}{LARGER.get(measure, measure)}"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.334), percent(0.0004)
    ('33 %', '0.04 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def join(words: Sequence[str]) -> str:
    """Words in a list.

    >>> join(["compute"]), join(["memory", "l2", "compute"])
    ('compute', 'memory, l2 and compute')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
