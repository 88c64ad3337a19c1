"""What numbers a user may give."""

from __future__ import annotations

import math
from typing import TypeVar

Number = TypeVar("Number", int, float)


def is_finite(value: object) -> bool:
    """Whether something is a number that a double can hold.

    >>> is_finite(3), is_finite(10**400), is_finite(True), is_finite("3")
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def numeral(text: str, kind: type[Number]) -> Number | None:
    """The number that a text is, or None; digits of other scripts and underscores are none, although Python has them.

    >>> numeral("12", int), numeral("1_2", int), numeral("1e3", float)
    (12, None, 1000.0)
    """
    try:
        return kind(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def plain_value(text: str) -> int | float | bool | str:
    """What a text on a command line is: a whole number, a number, true or false, or else the text.

    >>> plain_value("8"), plain_value("4.8e12"), plain_value("True"), plain_value("3 us")
    (8, 4800000000000.0, True, '3 us')
    """
    for kind in (int, float):
        if (found := numeral(text, kind)) is not None:
            return found
    return {"true": True, "false": False}.get(text.lower(), text)
