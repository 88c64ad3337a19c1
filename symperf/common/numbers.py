"""What numbers a user may give."""

from __future__ import annotations

import math


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
