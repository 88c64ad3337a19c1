"""Which of two quantities is larger along a real symbol: from exact pieces, or else from a dense grid and halving."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .forms import FormError, PowerQuotient, constant, plain
from .line import Pieces, align_cuts
from .roots import between, sign_at, sign_changes, value_at

if TYPE_CHECKING:
    from .forms import Sum

TIE = 1e-12
"""Quantities closer than this, relative, are equal."""
SLIVER = 1e-9
"""A tie narrower than this, relative, is a point at which the order changes."""
POINTS, FEW_POINTS = 8193, 129
"""Of the grid where there are no exact pieces; where each has to be bound."""
WIDEST = 1e18
HALVINGS = 128


@dataclass(frozen=True)
class Order:
    """Which of two quantities is larger between cuts.

    Attributes:
        cuts: where it changes, in order.
        signs: +1 where the first is larger, -1 where the second is, 0 where they are equal; one more than cuts.
        exact: whether no change can have been missed.
    """

    cuts: tuple[float, ...]
    signs: tuple[int, ...]
    exact: bool


class Curve(Protocol):
    """A quantity as a function of one real symbol."""

    @property
    def faithful(self) -> bool:
        """Whether `pieces` and `values` are to be trusted."""

    def pieces(self, low: float, high: float) -> Pieces:
        """Exact pieces between two values of the symbol; raises `FormError` where there are none."""

    def values(self, xs: Any) -> Any:
        """The quantity at many values of the symbol."""

    def value(self, x: float) -> float:
        """The quantity at one value, whatever else moves with it."""


@dataclass(frozen=True)
class Level:
    """A quantity that is the same everywhere."""

    height: float
    faithful: bool = True

    def pieces(self, low: float, high: float) -> Pieces:  # noqa: ARG002
        """One piece."""
        return Pieces((), (constant(self.height),))

    def values(self, xs: Any) -> Any:
        """The height, as often."""
        return np.full(np.shape(xs), self.height)

    def value(self, x: float) -> float:  # noqa: ARG002
        """The height."""
        return self.height


def order_along(a: Curve, b: Curve, low: float, high: float) -> Order:
    """Which of two curves is larger, from one value of their symbol to another.

    Args:
        a: one of them.
        b: the other.
        low: 0 or above.
        high: above `low`; may be infinite.
    """
    if a.faithful and b.faithful:
        try:
            return _joined(*_exact_order(a.pieces(low, high), b.pieces(low, high), low, high), exact=True)
        except FormError:
            pass
    return _sampled(a, b, low, high)


def _exact_order(a: Pieces, b: Pieces, low: float, high: float) -> tuple[list[float], list[int]]:
    cuts, columns = align_cuts([a, b])
    edges = [low, *cuts, high]
    found: list[float] = []
    signs: list[int] = []
    for k, (first, second) in enumerate(columns):
        if k:
            found.append(edges[k])
        inside, order = _order_of(_untagged(first), _untagged(second), edges[k], edges[k + 1])
        found += inside
        signs += order
    return found, signs


def _order_of(first: PowerQuotient, second: PowerQuotient, low: float, high: float) -> tuple[list[float], list[int]]:
    """Where two forms change their order between two points, and which is larger on each side."""
    difference = first - second
    over = plain(difference.over)
    under = None if difference.under is None else plain(difference.under)
    if not over:
        return [], [0]
    roots = {*sign_changes(over, low, high), *(sign_changes(under, low, high) if under else ())}
    inside = sorted(root for root in roots if low < root < high)
    signs = []
    for left, right in itertools.pairwise([low, *inside, high]):
        middle = between(left, right)
        sign = sign_at(over, middle) * (1 if under is None else sign_at(under, middle))
        signs.append(0 if all(_tied(difference, first, x) for x in (left, middle, right)) else sign)
    return inside, signs


def _untagged(form: PowerQuotient) -> PowerQuotient:
    """A form without tags, which are of the resources of one system alone."""
    return PowerQuotient(_plainly(form.over), None if form.under is None else _plainly(form.under))


def _plainly(total: Sum) -> Sum:
    return {(exponent, logs, ()): c for (exponent, logs), c in plain(total).items()}


def _tied(difference: PowerQuotient, of: PowerQuotient, x: float) -> bool:
    """Whether a difference is but rounding beside what it is of, at a point; at no end that is not finite."""
    return not 0 < x < math.inf or abs(_value(difference, x)) <= TIE * abs(_value(of, x))


def _value(form: PowerQuotient, x: float) -> float:
    over = plain(form.over)
    under = 1.0 if form.under is None else value_at(plain(form.under), x)
    return value_at(over, x) / under if over else 0.0


def _joined(cuts: list[float], signs: list[int], *, exact: bool) -> Order:
    """The order without cuts at which nothing changes, and without ties that are a point."""
    kept: list[float] = []
    held = [signs[0]]
    for cut, sign in zip(cuts, signs[1:], strict=True):
        if held[-1] == 0 and kept and math.isclose(cut, kept[-1], rel_tol=SLIVER):
            held.pop()
            cut = kept.pop()
        if sign != held[-1]:
            kept.append(cut)
            held.append(sign)
    return Order(tuple(kept), tuple(held), exact)


def _sampled(a: Curve, b: Curve, low: float, high: float) -> Order:
    """Changes that a dense grid shows, each halved down to the last bit."""
    usable = a.faithful and b.faithful

    def signs(xs: Any) -> Any:
        if usable:
            return order(a.values(xs), b.values(xs))
        return order(*(np.array([side.value(float(x)) for x in xs]) for side in (a, b)))

    first, last = low or min(high, 1.0) / WIDEST, high if math.isfinite(high) else max(low, 1.0) * WIDEST
    xs = np.geomspace(first, last, POINTS if usable else FEW_POINTS)
    xs[0], xs[-1] = first, last
    if not low:
        xs = np.concatenate([[0.0], xs])
    seen = signs(xs)
    at = np.flatnonzero(seen[1:] != seen[:-1])
    left, right, before = xs[at], xs[at + 1], seen[at]
    for _ in range(HALVINGS):
        middle = left + (right - left) / 2
        inside = (middle > left) & (middle < right)
        if not inside.any():
            break
        same = signs(middle) == before
        left, right = np.where(inside & same, middle, left), np.where(inside & ~same, middle, right)
    return _joined(right.tolist(), [int(seen[0]), *seen[at + 1].tolist()], exact=False)


def order(a: Any, b: Any) -> Any:
    """+1 where the first is larger, -1 where the second is, 0 where they are equal up to rounding."""
    gap = a - b
    tied = np.abs(gap) <= TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0, np.sign(gap)).astype(int)
