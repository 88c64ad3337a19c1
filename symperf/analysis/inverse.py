"""The closed form of a solution: a regime's sum of powers set equal to the quantity."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.interpret import floats, run
from .closed import powers, sides_at, symbol_of, zero
from .forms import FormError

if TYPE_CHECKING:
    from .solution import Solution


def inverse(solution: Solution) -> Any:
    """The value of a solution as an expression in the other symbols and in the quantity's own symbol, or nothing.

    The quantity is a symbol of its name (`time`); every other symbol is of the vocabulary.
    """
    subject = solution.subject
    if subject is None or solution.whole or solution.value <= 0:
        return None
    inputs = subject.values | {solution.symbol: solution.value}
    values = run(subject.program, inputs, floats())
    try:
        total = dict(powers(subject, solution.symbol, sides_at(subject, values))[subject.position])
    except FormError:
        return None
    quantity = symbol_of(subject.output)
    total[Fraction(0)] = total.get(Fraction(0), sympy.S.Zero) - quantity
    return zero(total, inputs | {subject.output: solution.target}, solution.value)
