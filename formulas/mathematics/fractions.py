"""Powers of fractions, and their sums: what chance and repetition make of a probability."""

from __future__ import annotations

from typing import Any

import sympy

from ..language.atoms import Atom

E_INVERSE = sympy.Float("0.36787944117144232159552377016146", 32)
"""1 / e: `fraction_power(E_INVERSE, x)` is the probability of no event where x are expected (Poisson)."""


class fraction_power(Atom):  # noqa: N801
    """A fraction between 0 and 1 to a non-negative power: rises with the fraction, falls with the power.

    >>> fraction_power(sympy.Rational(1, 2), 3)
    1/8
    """

    nargs = 2
    operation = "power"
    directions = (1, -1)
    curvature = None

    @staticmethod
    def plain(fraction: Any, exponent: Any) -> Any:
        """`fraction ** exponent`."""
        return fraction**exponent

    def _tex(self, printer: Any) -> str:
        fraction, exponent = map(printer._print, self.args)
        return rf"\left({fraction}\right)^{{{exponent}}}"


class geometric_sum(Atom):  # noqa: N801
    """1 + r + r^2 + ... + r^n of a fraction r below 1: `(1 - r^(n + 1)) / (1 - r)`.

    >>> geometric_sum(sympy.Rational(1, 2), 2)
    7/4
    """

    nargs = 2
    operation = "geometric_sum"
    directions = (1, 1)
    curvature = None

    @staticmethod
    def plain(ratio: Any, last: Any) -> Any:
        """The quotient, with the power as an atom."""
        return (1 - fraction_power(ratio, last + 1)) / (1 - ratio)

    @classmethod
    def value(cls, ratio: Any, last: Any) -> Any:
        """The value at numbers; n + 1 where the ratio is 1."""
        return last + 1 if ratio == 1 else (1 - ratio ** (last + 1)) / (1 - ratio)

    def _tex(self, printer: Any) -> str:
        ratio, last = map(printer._print, self.args)
        return rf"\frac{{1 - {ratio}^{{{last} + 1}}}}{{1 - {ratio}}}"


class chosen_load(Atom):  # noqa: N801
    """Mean number of choices that fall on what is chosen at all: n x / (1 - (1 - x)^n) for n draws of chance x each.

    The part 1 - (1 - x)^n is chosen by someone. It is concave in x and in n and starts at 0, so that x and n over it
    rise: one draw gives 1, and many draws give n x.

    >>> chosen_load(sympy.Rational(1, 4), 1), chosen_load(sympy.Rational(1, 4), 2)
    (1, 8/7)
    """

    nargs = 2
    operation = "chosen_load"
    directions = (1, 1)
    curvature = None

    @staticmethod
    def plain(share: Any, draws: Any) -> Any:
        """The quotient, with the power as an atom."""
        return draws * share / (1 - fraction_power(1 - share, draws))

    def _tex(self, printer: Any) -> str:
        share, draws = map(printer._print, self.args)
        return rf"\frac{{{draws}\,{share}}}{{1 - \left(1 - {share}\right)^{{{draws}}}}}"
