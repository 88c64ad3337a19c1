"""Technologies that differ in rates, bandwidths, latencies and capacities, as coordinates of branch and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .direction import LEAST_UNITS, MOST_UNITS
from .unit import UNITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .unit import Unit

    Array = np.ndarray[Any, Any]


class Points:
    """Technologies, each with the same values of what has no proved direction.

    Args:
        columns: values of each coordinate, of every technology.
        degrees: exponent of the second, by coordinate.
        capacity: bytes that a plan may use, of every technology.
        units: the plans.

    Attributes:
        columns: as given.
        names: of the coordinates; the units, where they are one, come last.
        order: the technologies in the order of the blocks; it is changed as blocks are cut.
        upper: seconds that the best plan known takes; infinite where none is known to fit.
        capacity_code: the number of the capacity among the different ones, in rising order.
        fits: of each unit, by number of a capacity and row, the members that fit.
    """

    def __init__(
        self,
        columns: Mapping[str, Array],
        degrees: Mapping[str, float],
        capacity: Array,
        units: Sequence[Unit],
    ) -> None:
        self.columns = dict(columns)
        self.counted = UNITS in columns
        self.names = (*(name for name in columns if name != UNITS), *([UNITS] if self.counted else []))
        self.down = np.array([name != UNITS and _way(name, units) < 0 for name in self.names])
        self.order = np.arange(len(capacity))
        self.upper = np.full(len(capacity), np.inf)
        turned = [1 / columns[n] if down else columns[n] for n, down in zip(self.names, self.down, strict=True)]
        self._turned = np.stack(turned, axis=1)
        self._moves = np.array([degrees[name] != 0 for name in self.names])
        self._homogeneous = all(unit.proof.homogeneous for unit in units)
        distinct, code = np.unique(capacity, return_inverse=True)
        self.capacity_code = code.ravel()
        self.fits = [np.stack([unit.bits(float(size)) for size in distinct]) for unit in units]

    def scaled(self, index: Array) -> tuple[Array, Array]:
        """Coordinates of some technologies, turned so that more is slower, and the seconds of their best known plans.

        Both are in a second of each technology's own, such that the latter are 1 where they are known.
        """
        found, upper = self._turned[index], self.upper[index]
        if not self._homogeneous:
            return found, upper
        scale = np.where(np.isfinite(upper), 1 / upper, self.columns["matrix_rate"][index])
        found[:, self._moves] *= scale[:, None]
        return found, upper * scale

    def inputs(self, slow: Array, low: Array, high: Array) -> dict[str, Array]:
        """Values by input at corners of blocks.

        Args:
            slow: the corners.
            low: the best ends of their blocks, of which only the units are read.
            high: the worst ends, likewise.
        """
        found = {}
        for k, name in enumerate(self.names):
            found[name] = 1 / slow[:, k] if self.down[k] else np.ascontiguousarray(slow[:, k])
        if self.counted:
            found[LEAST_UNITS] = np.ascontiguousarray(low[:, -1])
            found[MOST_UNITS] = np.ascontiguousarray(high[:, -1])
        return found


def _way(name: str, units: Sequence[Unit]) -> int:
    """The direction of a coordinate, which all units that read it agree on.

    Raises:
        ValueError: they do not.
    """
    ways = {unit.proof.ways[name] for unit in units if name in unit.program.inputs} or {1}
    if len(ways) > 1 or 0 in ways:
        raise ValueError(f"no direction of {name} is proved")
    return ways.pop()
