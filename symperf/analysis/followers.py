"""What a run binds to other numbers as well when a symbol of it is: what follows the symbol, and by which law.

An inference without a micro-batch of its own takes it from the batch and the replicas, 16-bit products share the
efficiency and the rate of others, and so on. Nothing here knows of any of them: the run is bound to some values of the
symbol, and what moves is compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .symbols import argument_of, domain_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..evaluation.base_run import BaseRun

TRIED = (1.0, 2.0, 3.0, 4.0, 8.0, 0.5, 0.25, 0.75, 0.9, 1.1)
"""Multiples of the value now that the run is bound to beside those that are asked for."""
ENOUGH = 4
"""Values that a run has to accept before a law is believed."""
CLOSE = 1e-12


@dataclass(frozen=True)
class Followers:
    """What moves with a symbol.

    Attributes:
        run: bound to one of the tried values: what does not follow has the same number in all of them.
        structural: whether one of the values is of another structure than the run.
        powers: of each follower in proportion to a whole power of the symbol, that power.
        others: followers of no such law.
    """

    run: BaseRun
    structural: bool
    powers: dict[str, int]
    others: tuple[str, ...]

    def names(self) -> set[str]:
        """Of all followers."""
        return {*self.powers, *self.others}


def followers(run: BaseRun, symbol: str, values: Sequence[float] = ()) -> Followers | None:
    """What moves with a symbol.

    Args:
        run: bound in every symbol.
        symbol: of the run.
        values: to bind the run to first.

    Returns:
        Nothing where the run takes none of the values, as for a symbol that follows others itself.
    """
    tried = dict(_bound_to(run, symbol, values))
    if not tried:
        return None
    # What has another structure has another program: the largest group of one structure tells.
    groups: list[list[float]] = []
    for x, other in tried.items():
        group = next((each for each in groups if tried[each[0]].structure == other.structure), None)
        if group is None:
            groups.append([x])
        else:
            group.append(x)
    points = max(groups, key=lambda group: (len(group), tried[group[0]].structure == run.structure))
    first = tried[points[0]]
    powers: dict[str, int] = {}
    others: list[str] = []
    for name in first.bound:
        ys = [tried[x].bound[name][0] for x in points]
        if name == symbol or all(y == ys[0] for y in ys):
            continue
        power = _power(points, ys)
        if power is None:
            others.append(name)
        else:
            powers[name] = power
    structural = any(other.structure != run.structure for other in tried.values())
    return Followers(first, structural, powers, tuple(others))


def _bound_to(run: BaseRun, symbol: str, values: Sequence[float]) -> Iterator[tuple[float, BaseRun]]:
    argument, domain = argument_of(symbol), domain_of(symbol)
    now = run.bound[symbol][0] if symbol in run.bound else 0.0
    unit = now or domain.low or min(domain.high, 4.0) / 4.0
    accepted = 0
    for x in dict.fromkeys([*values, *(unit * share for share in TRIED)]):
        if domain.whole and x % 1:
            continue
        try:
            yield x, run.bind(**{argument: int(x) if domain.whole else x})
        except InputError:
            continue
        accepted += 1
        if accepted == ENOUGH:
            return


def _power(xs: Sequence[float], ys: Sequence[float]) -> int | None:
    """The whole power of a monomial through points, or nothing."""
    if len(xs) == 1 or not all(value > 0 for value in (*xs, *ys)):
        return None
    power = round(math.log(ys[1] / ys[0]) / math.log(xs[1] / xs[0]))
    fits = all(math.isclose(ys[0] * (x / xs[0]) ** power, y, rel_tol=CLOSE) for x, y in zip(xs, ys, strict=True))
    return power if power and fits else None
