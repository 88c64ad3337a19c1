"""What numbers a user may give, and how each door reads them: one reader for Python, NumPy, files and flags.

NumPy's numbers are those that symperf itself hands out, in tables and arrays; they are read here without importing it.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .deprecations import current_name

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

Number = TypeVar("Number", int, float)


LONGEST_WHOLE = 309
"""Digits of the largest whole number that a double can hold."""


def as_plain(value: Any) -> Any:
    """A number of NumPy, of no dimension, as Python's; everything else as it is.

    >>> as_plain(8), as_plain("8")
    (8, '8')
    """
    kind = type(value)
    if kind.__module__ != "numpy" or getattr(value, "ndim", None) != 0:
        return value
    plain = value.item()
    return float(plain) if type(plain).__module__ == "numpy" else plain  # a long double is its own item


def plain_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose arguments may be numbers of NumPy, and may have former names: it is given Python's."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        given: Any = {current_name(name): as_plain(value) for name, value in kwargs.items()}
        return function(*(as_plain(value) for value in args), **given)

    return called


def is_number(value: object) -> bool:
    """Whether something is a whole number or a float of Python, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_number(value: object, low: int, high: int) -> int | None:
    """The whole number from `low` to `high` that a value is, a float without a fraction too; or None.

    >>> whole_number(8.0, 1, 10), whole_number(8.5, 1, 10), whole_number(True, 1, 10), whole_number(10**400, 1, 10)
    (8, None, None, None)
    """
    value = as_plain(value)
    if not is_number(value) or not low <= value <= high or value % 1:  # type: ignore[operator]
        return None
    return int(value)  # type: ignore[call-overload,no-any-return]


def fraction(value: object) -> float | None:
    """The number from 0 to 1 that a value is, or None.

    >>> fraction(0.25), fraction(1), fraction(10**400), fraction(float("nan"))
    (0.25, 1, None, None)
    """
    value = as_plain(value)
    return value if is_finite(value) and 0 <= value <= 1 else None  # type: ignore[operator,return-value]


def is_finite(value: object) -> bool:
    """Whether something is a number that a double can hold.

    >>> is_finite(3), is_finite(10**400), is_finite(True), is_finite("3")
    (True, False, False, False)
    """
    if not is_number(value):
        return False
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False


def numeral(text: str, kind: type[Number]) -> Number | None:
    """The number that a text is, or None; digits of other scripts and underscores are none, although Python has them.

    A whole number that no double can hold is none either.

    >>> numeral("12", int), numeral("1_2", int), numeral("1e3", float)
    (12, None, 1000.0)
    """
    if kind is int and len(text.strip().lstrip("+-0")) > LONGEST_WHOLE:
        return None
    try:
        found = kind(text) if text.isascii() and "_" not in text else None
        return None if kind is int and not is_finite(found) else found
    except ValueError:
        return None


def plain_value(text: str) -> int | float | bool | str:
    """What a text on a command line is: a whole number, a number, true or false, or else the text.

    Digits that no double can hold stay text, so that whoever refuses them shows what was written.

    >>> plain_value("8"), plain_value("4.8e12"), plain_value("True"), plain_value("3 us"), plain_value("1e400")
    (8, 4800000000000.0, True, '3 us', '1e400')
    """
    for kind in (int, float):
        if (found := numeral(text, kind)) is not None:
            spelt = "inf" in text.lower()
            return text if found in (math.inf, -math.inf) and not spelt else found
    return {"true": True, "false": False}.get(text.lower(), text)
