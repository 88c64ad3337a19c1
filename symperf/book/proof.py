"""Short proofs of monotonicity: what turns a direction on the way from a symbol to the whole cost.

Sums and products of non-negative parts, positive powers, maxima and minima keep the direction of their parts. So a
proof needs only the other steps: a reciprocal, a function that declares how it moves, a negative term.
`formulas.discipline` proves every claim node by node; these are its proofs without the steps that keep the direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.discipline import direction_of
from ..formulas.language.symbols import SYMBOLS, strip_units

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula

Step = tuple[Any, int]
"""A part of a cost and its direction in the symbol, +1 or -1."""


@dataclass(frozen=True)
class Claim:
    """One proved direction.

    Attributes:
        symbol: the name of the symbol.
        rises: whether the cost never falls with it; else it never rises.
        steps: the parts that turn or declare a direction, from the inside outwards.
    """

    symbol: str
    rises: bool
    steps: tuple[Step, ...]

    @property
    def inverse(self) -> bool:
        """Whether the one step is the symbol's reciprocal."""
        return self.steps == ((1 / SYMBOLS[self.symbol].symbol, -1),)


def claims(formula: Formula) -> list[Claim]:
    """The claims of a formula with their proofs: what rises first, then what falls, in the vocabulary's order."""
    expr = strip_units(formula.expression)
    return [
        Claim(name, rises, steps(expr, SYMBOLS[name].symbol))
        for names, rises in ((formula.increasing, True), (formula.decreasing, False))
        for name, entry in SYMBOLS.items()
        if name in names and entry.group != "unit"
    ]


def undecided_symbols(formula: Formula) -> list[str]:
    """Names of symbols of which the proof finds no one direction."""
    known = {symbol.name for symbol, way in formula.judgement().directions.items() if way == 0}
    return [name for name in SYMBOLS if name in known]


def steps(expr: Any, symbol: Any) -> tuple[Step, ...]:
    """The parts of an expression that do more than keep the direction in a symbol, from the inside outwards.

    >>> from sympy import symbols
    >>> n, rate = symbols("n rate")
    >>> steps(n / rate, rate), steps(n / rate, n)
    (((1/rate, -1),), ())
    """
    found = [
        node for node in sympy.postorder_traversal(expr) if node.args and _turns(node) and symbol in node.free_symbols
    ]
    return tuple((node, direction_of(node, symbol) or 0) for node in dict.fromkeys(found))


def _turns(node: Any) -> bool:
    """Whether a step says more than that the whole moves as its parts do."""
    if node.is_Pow:
        return bool(node.exp.is_negative)
    if node.is_Mul:
        return bool(node.args[0].is_negative)
    return hasattr(node, "operation") and node.operation not in ("max", "min")
