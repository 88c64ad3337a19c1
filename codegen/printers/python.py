"""The back end of plain Python floats: one dictionary from operation to text, and how Python writes a number."""

from __future__ import annotations

import math

TABLE: dict[str, str] = {
    "let": "{0}",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "max": "{0} if {0} >= {1} else {1}",
    "min": "{0} if {0} <= {1} else {1}",
    "power": "{0} ** {1}",
    "sqrt": "sqrt({0})",
    "log2": "log2({0})",
    "ceil_div": "float(ceil({0} / {1}))",
    "above_one": "1.0 if {0} > 1.0 else 0.0",
    "stop_gradient": "{0}",
    "at_least": "1.0 if {0} >= {1} else 0.0",
}


def number(value: float) -> str:
    """A literal of exactly this double.

    >>> number(2), number(-0.1), number(float("inf"))
    ('2.0', '(-0.1)', 'inf')
    """
    double = float(value)
    text = repr(abs(double))
    return f"(-{text})" if math.copysign(1.0, double) < 0 and not math.isnan(double) else text
