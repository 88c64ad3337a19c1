"""Values of symbols as users write them: numbers in SI units, texts with a unit, tables with a source and a spread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.numbers import as_plain, is_number
from .system_symbols import Quantity
from .units import COUNT, FRACTION, parse, spell

if TYPE_CHECKING:
    from .system_symbols import Limits
    from .units import UnitKind


def quantity_of(entry: object, symbol: Limits, label: str, key: str) -> Quantity:
    """Check a value: a number in SI units, a text with a unit, or a table that adds source, low, high."""
    user = f"set by the user: {label}:{key}"
    if not isinstance(entry, dict):
        return Quantity(check_number(entry, symbol, f"{label}: {key}"), user)
    keys = ("value", "source", "low", "high")
    for part in entry:
        if part not in keys:
            raise InputError(f"{label}: {key}: unknown key {quote(part)}{nearest(part, keys) or ', expected value'}")
    if "value" not in entry:
        raise InputError(f"{label}: {key}: no value, expected {{ value = ..., source = ... }}")
    numbers = {p: check_number(entry[p], symbol, f"{label}: {key}.{p}") for p in ("low", "value", "high") if p in entry}
    if list(numbers.values()) != sorted(numbers.values()):
        raise InputError(f"{label}: {key}: found {quote(numbers)}, expected low <= value <= high")
    source = text_of(entry, "source", f"{label}: {key}") or user
    return Quantity(numbers["value"], " ".join(source.split()), numbers.get("low"), numbers.get("high"))


def check_number(entry: object, symbol: Limits, where: str) -> float:
    """The SI value of a number, or of a text with a unit, within the limits of its symbol.

    Raises:
        InputError: it is something else; the line begins with `where`.

    """
    dimension, entry = symbol.dimension, as_plain(entry)
    expected = f"expected a {dimension.name} such as {dimension.example}"
    if isinstance(entry, str):
        try:
            value = parse(entry, dimension)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    elif is_number(entry):
        try:
            value = float(entry)  # type: ignore[arg-type]
        except OverflowError:
            value = math.inf
    else:
        raise InputError(f"{where}: found {quote(entry)} of type {type(entry).__name__}, {expected}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not symbol.zero):
        sign = "not negative" if symbol.zero else "above zero"
        raise InputError(f"{where}: found {quote(entry)}, {expected}, finite and {sign}")
    if dimension is COUNT and value != int(value):
        raise InputError(f"{where}: found {quote(entry)}, {expected}")
    if value != 0 and not symbol.low <= value <= symbol.high:
        raise InputError(
            f"{where}: found {quote(entry)}, {expected}, between {spell(symbol.low, dimension)} and "
            f"{spell(symbol.high, dimension)}{_hint(dimension)}"
        )
    return value


def _hint(dimension: UnitKind) -> str:
    if dimension is FRACTION:
        return ' (a share of the data-sheet figure; write 80 % as 0.8 or "80 %")'
    unit = _si(dimension)
    return "" if dimension is COUNT or not unit else f" (a bare number is in {unit}: is the unit missing?)"


def _si(dimension: UnitKind) -> str:
    return next(unit for unit, factor in dimension.units.items() if factor == 1.0)


def text_of(table: dict[str, Any], key: str, label: str) -> str:
    """Check a text: empty where the key is absent, never empty where it is there."""
    text = table.get(key, "")
    if not isinstance(text, str) or (key in table and not text.strip()):
        raise InputError(f"{label}: {key}: found {quote(text)}, expected a text that is not empty")
    return text
