"""Which constants a software has of its own on a device, and which are those that hold on any.

A stage fits all of its constants. Those whose own values matter least are then given the values that hold on any
device, and the others are fitted again. What a constant matters is the least rise of the mean squared logarithmic error
of its stage's rows with the constant moved to that value and all others fitted anew: d^2 / [H^-1]_jj, with d the
logarithm of the move and H the mean of the products of slopes (Hassibi and Stork 1992, Second order derivatives for
network pruning: Optimal Brain Surgeon).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OWN: Final = 20
"""Constants that a software has of its own on one device, at most."""
RIDGE: Final = 1e-9
"""What is added to curvatures, so that constants that no row tells have one."""


@dataclass
class Candidates:
    """The constants of one stage.

    Attributes:
        names: of the constants.
        moves: ln(value on any device / own value) by name; what has no value on any device stays.
        slopes: d ln(seconds) / d ln(constant) of each row, a column for each name.
        weights: what the loss leaves of each row.
        part: how much the stage counts beside others.
    """

    names: list[str]
    moves: Mapping[str, float]
    slopes: Any
    weights: Any
    part: float = 1.0

    def __post_init__(self) -> None:
        scaled = self.slopes * np.sqrt(self.weights)[:, None]
        self._curvature = scaled.T @ scaled / max(1, len(self.weights))
        self._moves = np.array([self.moves.get(name, np.inf) for name in self.names])
        self._own = np.ones(len(self.names), dtype=bool)

    @property
    def own(self) -> list[str]:
        """Those that are not given up."""
        return [name for name, own in zip(self.names, self._own, strict=True) if own]

    def rises(self) -> list[float]:
        """The rise of the error if each constant is given up next, in the order of `names`; infinite where none can."""
        found = np.full(len(self.names), np.inf)
        places = np.flatnonzero(self._own)
        inverse = self._inverse(places)
        found[places] = self.part * self._moves[places] ** 2 / np.diag(inverse)
        return [float(rise) for rise in found]

    def give_up(self, place: int) -> None:
        """Give a constant up; the others move to where its move leaves the least error."""
        places = np.flatnonzero(self._own)
        inverse = self._inverse(places)
        at = int(np.flatnonzero(places == place)[0])
        shift = self._moves[place] * inverse[:, at] / inverse[at, at]
        self._moves[places] -= shift
        self._own[place] = False

    def _inverse(self, places: Any) -> Any:
        return np.linalg.inv(self._curvature[np.ix_(places, places)] + RIDGE * np.eye(len(places)))


def choose(stages: Sequence[Candidates], most: int = OWN) -> list[list[str]]:
    """The constants that each stage keeps, at most so many together: what matters least is given up first.

    >>> slopes = np.array([[1.0, 0.0], [0.0, 0.1]])
    >>> both = Candidates(["a", "b"], {"a": 0.5, "b": 0.5}, slopes, np.ones(2))
    >>> choose([both], 1)
    [['a']]
    """
    while sum(len(stage.own) for stage in stages) > most:
        rise, number, place = min(_rises(stages))
        if not np.isfinite(rise):
            break
        stages[number].give_up(place)
    return [stage.own for stage in stages]


def _rises(stages: Sequence[Candidates]) -> Iterable[tuple[float, int, int]]:
    for number, stage in enumerate(stages):
        for place, rise in enumerate(stage.rises()):
            yield rise, number, place
