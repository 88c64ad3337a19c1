"""The JavaScript back end: one dictionary from operation to text, and how JavaScript writes numbers and strings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .table import comment, statements

if TYPE_CHECKING:
    from ..program import Program

TABLE: dict[str, str] = {
    "let": "{0}",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "max": "{0} > {1} ? {0} : {1}",
    "min": "{0} < {1} ? {0} : {1}",
    "power": "Math.pow({0}, {1})",
    "sqrt": "Math.sqrt({0})",
    "log2": "Math.log2({0})",
    "ceil_div": "Math.ceil({0} / {1})",
    "above_one": "{0} > 1 ? 1 : 0",
    "stop_gradient": "{0}",
    "at_least": "{0} >= {1} ? 1 : 0",
}


def number(value: float) -> str:
    """A literal of exactly this double: the shortest decimal that reads back as it.

    Raises:
        OverflowError: a whole number too large for a double.

    >>> number(2), number(0.1), number(-1e300), number(float("inf"))
    ('2', '0.1', '(-1e+300)', 'Infinity')
    """
    double = float(value)
    if math.isnan(double):
        return "NaN"
    text = "Infinity" if math.isinf(double) else repr(abs(double)).removesuffix(".0")
    return f"(-{text})" if math.copysign(1.0, double) < 0 else text


def string(text: str) -> str:
    r"""A string literal in plain ASCII that may stand in a comment, a type or a page's script element as well.

    >>> print(string('a"</script>'))
    "a\u0022\u003c/script\u003e"
    """
    return f'"{comment(text)}"'


def key(text: str) -> str:
    """The name of a property in an object literal, where `"__proto__"` alone would set the prototype."""
    return f"[{string(text)}]" if text == "__proto__" else string(text)


def straight(program: Program) -> tuple[list[str], list[str]]:
    """Statements for one point, and the text of each output's value; inputs are read by `read(name)`."""
    reads = {name: f"read(values, {string(name)})" for name in program.inputs}
    lines, names = statements(program, TABLE, number, reads, "const {} = {};")
    return [line for line in lines if line], [names[position] for position in program.outputs.values()]
