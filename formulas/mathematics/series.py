"""Sums over the steps of a generation, in closed form.

A decode step reads a context that is one token longer than the last one, so that its time is the larger of two
straight lines in the context. Their sum over the steps has a closed form, whichever line is on top, and where they
cross inside the range.
"""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom, Max, Min, ceil_div, complement
from ..language.dimension import ONE, Dimension, DimensionError, alike

TINY = sympy.Float("1e-250")
"""Keeps a quotient finite where two lines are parallel; no square of a difference of times is as small."""


class max_sum(Atom):  # noqa: N801
    """The sum of the larger of two lines, max(a + b x, c + d x), over x = start, start + 1, ..., `count` terms.

    With p + q i the difference of the lines at the i-th term, the sum of both lines and of |p + q i| is twice the
    answer. |p + q i| changes its sign once, before k = ceil(-p / q) limited to 0 to n: with T(k) the sum of the first
    k differences, the sum of |p + q i| is |T(n) - 2 T(k)|. The quotient is taken as -p q / q^2, 0 for parallel lines.

    >>> max_sum(4, 1, 3, 0, 0, 1)
    13
    >>> sum(max(3, x) for x in range(1, 5))
    13
    """

    nargs = 6
    operation = "max_sum"
    directions = (1, 1, 1, 1, 1, 1)
    curvature = None

    @staticmethod
    def plain(count: Any, start: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        """The closed form, in the language's own functions."""
        half = sympy.Rational(1, 2)
        pairs = count * (count - 1) * half
        both = count * (a + c + (b + d) * start) + (b + d) * pairs
        slope = b - d
        first = a - c + slope * start
        turn = Max(0, Min(count, ceil_div(-first * slope, Max(slope**2, TINY))))
        whole = count * first + slope * pairs
        before = turn * first + slope * turn * (turn - 1) * half
        signed = whole - 2 * before
        return half * (both + Max(signed, -signed))

    @classmethod
    def value(cls, *args: Any) -> Any:
        """The value at numbers, exact for exact ones."""
        count, start, a, b, c, d = args
        slope, first = b - d, a - c + (b - d) * start
        turn = 0 if slope == 0 else sympy.Max(0, sympy.Min(count, sympy.ceiling(-first / slope)))

        def total(terms: Any) -> Any:
            return terms * first + slope * terms * (terms - 1) / 2

        both = count * (a + c + (b + d) * start) + (b + d) * count * (count - 1) / 2
        return (both + abs(total(count) - 2 * total(turn))) / 2

    def relaxed(self) -> Any:
        """The larger of the sums of both lines: the sum itself unless they cross inside the range."""
        count, start, a, b, c, d = self.args
        middle = start + (count - 1) / 2
        return Max(count * (a + b * middle), count * (c + d * middle))

    def dimension(self, parts: list[Dimension]) -> Dimension:
        """That of the lines' values; count and start are numbers."""
        for part, arg in zip(parts[:2], self.args[:2], strict=True):
            if part != ONE:
                raise DimensionError(f"max_sum: the range is in {part}, not a number: {arg}")
        lines = [part for part, arg in zip(parts[2:], self.args[2:], strict=True) if arg != 0]
        return alike(lines, "sum", self)

    def _tex(self, printer: Any) -> str:
        count, start, a, b, c, d = map(printer._print, self.args)
        first, second = (f"{x} + {y}\\,x" for x, y in ((a, b), (c, d)))
        return rf"\sum_{{x={start}}}^{{{start} + {count} - 1}} \max\left({first},\; {second}\right)"


def excess(count: Any, limit: Any) -> Any:
    """What a count has beyond a limit, max(count - limit, 0), for counts from 0 on, so that directions are proved.

    >>> [excess(*map(sympy.Integer, pair)) for pair in ((7, 5), (5, 7), (0, 0))]
    [2, 0, 0]
    """
    return (count + 1) * complement(Min(1, (limit + 1) / (count + 1)))
