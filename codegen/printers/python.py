"""The back end of plain Python floats: one dictionary from operation to text, and the module for one point."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from .table import statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Template

    from ..program import Program

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


def point_module(program: Program, outputs: Sequence[str]) -> str:
    """The source of a module with `INPUTS`, `OUTPUTS` and `evaluate`, from a tuple of floats to a tuple of floats.

    Args:
        program: with these outputs and no other, as `prune` gives it.
        outputs: of the program, in the order wanted.
    """
    reads = {name: f"point[{k}]" for k, name in enumerate(program.inputs)}
    lines, values = statements(program, TABLE, number, reads, "{} = {}")
    return _template().render(
        inputs=[ascii(name) for name in program.inputs],
        outputs=[ascii(name) for name in outputs],
        lines=[line for line in lines if line],
        results=[values[program.outputs[name]] for name in outputs],
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    package = (__package__ or "").rpartition(".")[0]
    found = Environment(loader=PackageLoader(package), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return found.get_template("python.j2")  # no escaping for HTML: names are ASCII string literals
