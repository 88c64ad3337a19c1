"""Phase diagrams: which resource binds at each value of two symbols, and the curves between."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError, quote
from ..common.extras import import_extra
from .numbers import numbers
from .subject import subject_of
from .symbols import check_range, domain_of, lead_dependents, require_symbol

if TYPE_CHECKING:
    from pathlib import Path

    from ..evaluation.base_run import BaseRun
    from .subject import Subject

Array = np.ndarray[Any, Any]
HALVINGS = 60


@dataclass(frozen=True)
class Boundary:
    """A curve on which the bounding resource changes.

    Attributes:
        solved: the symbol that was solved for at each value of the other: the second, and once more the first, so that
            curves that stand upright are there as well.
        before: the resource where the solved symbol is smaller.
        after: the one where it is larger.
        x: values of the first symbol, of shape (points,).
        y: of the second. Of a whole number that was solved for, the first value with the new resource.
    """

    solved: str
    before: str | None
    after: str | None
    x: Array
    y: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "solved": self.solved,
            "before": self.before,
            "after": self.after,
            "x": self.x.tolist(),
            "y": self.y.tolist(),
        }


@dataclass(frozen=True)
class Phase:
    """Which resource binds over two symbols.

    Attributes:
        x: the first symbol.
        y: the second.
        of: the quantity.
        views: of each symbol: "exact" of a real one; "whole" where every whole number is on the grid, else "smooth".
        x_values: of shape (columns,), evenly spaced in logarithms, or every whole number.
        y_values: of shape (rows,).
        resources: names.
        region: index into `resources` of the one with the largest share, of shape (rows, columns); -1 where none is.
        boundaries: the curves between regions.
    """

    x: str
    y: str
    of: str
    views: tuple[str, str]
    x_values: Array
    y_values: Array
    resources: tuple[str, ...]
    region: Array
    boundaries: tuple[Boundary, ...]

    def bound(self, row: int, column: int) -> str | None:
        """The bounding resource at one point of the grid."""
        return self._name(int(self.region[row, column]))

    def _name(self, index: int) -> str | None:
        return self.resources[index] if index >= 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `region` holds names by row and column."""
        return {
            "x": self.x,
            "y": self.y,
            "of": self.of,
            "views": list(self.views),
            "x_values": self.x_values.tolist(),
            "y_values": self.y_values.tolist(),
            "region": [[self._name(int(index)) for index in row] for row in self.region],
            "boundaries": [boundary.to_dict() for boundary in self.boundaries],
        }

    def draw(self, path: str | Path) -> None:
        """Draw the diagram into a file: PNG, PDF or SVG by its suffix.

        Raises:
            InputError: matplotlib is not installed, or the file cannot be written.
        """
        from .drawing import draw

        import_extra("matplotlib", "plot", "phase")
        draw(self, path)


def phase(
    of_run: BaseRun,
    x: str,
    x_range: tuple[float, float],
    y: str,
    y_range: tuple[float, float],
    of: str = "time",
    points: int = 65,
) -> Phase:
    """The phase diagram of a run over two symbols.

    At every x of the grid, each change of the bounding resource between two neighbouring y of the grid is halved down
    to the last bit; and the same at every y, along x. A region thinner than the grid can be missed; `regimes` along one
    symbol misses none.

    Args:
        of_run: bound in every symbol.
        x: the first symbol.
        x_range: its lowest and highest value.
        y: the second symbol.
        y_range: its lowest and highest value.
        of: the quantity: an output or a term that is a time.
        points: of the grid along each symbol; a whole number that has no more values in its range has each of them, any
            other is drawn without tile and wave rounding.

    Raises:
        InputError: an unknown symbol or quantity, the same symbol twice, or a range that is empty or reversed.
    """
    subject = subject_of(of_run, of, "phase")
    for symbol in (x, y):
        require_symbol(of_run, subject, symbol, "phase")
    if x == y:
        raise InputError(f"phase: found {quote(x)} twice, expected two symbols")
    subject = lead_dependents(of_run, subject, x, y)
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= 1025:
        raise InputError(f"phase: points is {quote(points)}, expected a whole number from 2 to 1025")
    (xs, first), (ys, second) = (_grid(symbol, ends, points) for symbol, ends in ((x, x_range), (y, y_range)))
    views = (first, second)
    subject = subject.smooth(*(symbol for symbol, view in zip((x, y), views, strict=True) if view == "smooth"))
    columns, rows = (part.ravel() for part in np.meshgrid(xs, ys))
    region = _region(subject, {x: columns, y: rows}).reshape(len(ys), len(xs))
    curves = _curves(subject, (x, xs), (y, ys), region, whole=second == "whole")
    upright = _curves(subject, (y, ys), (x, xs), region.T, whole=first == "whole")
    curves += tuple(dataclasses.replace(curve, x=curve.y, y=curve.x) for curve in upright)
    return Phase(x, y, subject.output, views, xs, ys, subject.names, region, curves)


def _grid(symbol: str, ends: object, points: int) -> tuple[Array, str]:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InputError(f"phase: the range of {symbol} is {quote(ends)}, expected its lowest and its highest value")
    domain = domain_of(symbol)
    low, high = check_range(symbol, ends[0], ends[1], domain, f"phase: {symbol}")
    if domain.whole and high - low + 1 <= points:
        return np.arange(low, high + 1), "whole"
    spaced = np.geomspace(low, high, points)
    spaced[0], spaced[-1] = low, high
    return spaced, "smooth" if domain.whole else "exact"


def _region(subject: Subject, points: dict[str, Array]) -> Array:
    count = len(next(iter(points.values())))
    chunks = []
    for start in range(0, count, 4096):
        some = {symbol: values[start : start + 4096] for symbol, values in points.items()}
        chunks.append(numbers(subject, some).bounds(subject.bearing))
    return np.concatenate(chunks)


def _curves(
    subject: Subject, along_x: tuple[str, Array], along_y: tuple[str, Array], region: Array, *, whole: bool
) -> tuple[Boundary, ...]:
    """The boundaries: every change between neighbouring rows, found in all columns at once, then joined into curves."""
    (x, xs), (y, ys) = along_x, along_y
    rows, columns = np.nonzero(region[1:] != region[:-1])
    if not len(rows):
        return ()
    low, high, at = ys[rows].copy(), ys[rows + 1].copy(), xs[columns]
    first = region[rows, columns]
    second = region[rows + 1, columns]
    for _ in range(HALVINGS):
        middle = np.floor((low + high) / 2) if whole else np.sqrt(low) * np.sqrt(high)
        inside = (middle > low) & (middle < high)
        if not inside.any():
            break
        found = np.where(inside, _region(subject, {x: at, y: middle}), first)
        below = inside & (found == first)
        low = np.where(below, middle, low)
        high = np.where(inside & ~below, middle, high)
        second = np.where(inside & ~below, found, second)
    return _join_crossings(y, subject.names, list(zip(columns, first, second, at, high, strict=True)))


def _join_crossings(solved: str, names: tuple[str, ...], crossings: list[tuple[Any, ...]]) -> tuple[Boundary, ...]:
    """Crossings of neighbouring columns between the same two resources, nearest to nearest, as curves."""
    open_curves: list[tuple[int, int, list[int], list[float], list[float]]] = []
    done = []
    for column, first, second, at, y in sorted(crossings, key=lambda c: (c[0], c[4])):
        fits = [c for c in open_curves if (c[0], c[1]) == (first, second) and c[2][-1] == column - 1]
        if fits:
            best = min(fits, key=lambda c, y=y: abs(np.log(c[4][-1] / y)))  # type: ignore[misc]
        else:
            best = (int(first), int(second), [], [], [])
            open_curves.append(best)
            done.append(best)
        best[2].append(int(column))
        best[3].append(float(at))
        best[4].append(float(y))
    name = [*names, None]
    return tuple(Boundary(solved, name[a], name[b], np.array(xs), np.array(ys)) for a, b, _, xs, ys in done)
