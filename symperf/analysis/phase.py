"""Phase diagrams: which resource binds at each value of two symbols, and the curves between."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError, quote
from .phase_answer import Boundary as Boundary
from .phase_answer import Phase as Phase
from .plane import REFUSED, Plane, plane_of
from .regimes import check_accepted
from .subject import subject_of
from .symbols import check_range, default_range, domain_of, require_symbol, value_now

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun
    from .plane import Array

HALVINGS = 60
WHERE = "phase"


def phase(
    of_run: BaseRun,
    x: str,
    x_range: tuple[float, float] | None,
    y: str,
    y_range: tuple[float, float] | None,
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
        x_range: its lowest and highest value; nothing: a sixteenth to 16 times the value now.
        y: the second symbol.
        y_range: its lowest and highest value, or nothing.
        of: the quantity, as of `subject.subject_of`.
        points: of the grid along each symbol; of a whole number that has no more values in its range those that the run
            accepts are tried, any other is drawn without tile and wave rounding.

    Raises:
        InputError: an unknown symbol or quantity, the same symbol twice, a range that is empty or reversed, or a value
            that the run refuses.
        Unreachable: the run accepts none of the whole numbers.
    """
    subject = subject_of(of_run, of, WHERE)
    for symbol in (x, y):
        require_symbol(of_run, subject, symbol, WHERE)
    if x == y:
        raise InputError(f"{WHERE}: found {quote(x)} twice, expected two symbols")
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= 1025:
        raise InputError(f"{WHERE}: points is {quote(points)}, expected a whole number from 2 to 1025")
    grids = {}
    for symbol, ends in ((x, x_range), (y, y_range)):
        asked = default_range(symbol, value_now(of_run, subject, symbol), WHERE) if ends is None else ends
        grids[symbol] = _grid(of_run, symbol, asked, points)
    (xs, first), (ys, second) = grids[x], grids[y]
    listed = {name: [int(n) for n in values] if view == "whole" else None for name, (values, view) in grids.items()}
    plane = plane_of(of_run, subject, (x, y), listed, WHERE)
    smooth = [symbol for symbol, (_, view) in grids.items() if view == "smooth"]
    if smooth:
        sheets = tuple(dataclasses.replace(sheet, subject=sheet.subject.smooth(*smooth)) for sheet in plane.sheets)
        plane = dataclasses.replace(plane, sheets=sheets)
    columns, rows = (part.ravel() for part in np.meshgrid(xs, ys))
    region = plane.bounds(columns, rows).reshape(len(ys), len(xs))
    legal = region != REFUSED
    kept_rows, kept_columns = legal.any(axis=1), legal.any(axis=0)
    xs, ys, region = xs[kept_columns], ys[kept_rows], region[np.ix_(kept_rows, kept_columns)]
    curves = _curves(plane, xs, ys, region, upright=False, whole=second == "whole")
    curves += _curves(plane, xs, ys, region, upright=True, whole=first == "whole")
    return Phase(x, y, subject.output, (first, second), xs, ys, plane.names, region, curves, plane)


def _grid(run: BaseRun, symbol: str, ends: object, points: int) -> tuple[Array, str]:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InputError(f"{WHERE}: the range of {symbol} is {quote(ends)}, expected its lowest and its highest value")
    domain = domain_of(symbol)
    low, high = check_range(symbol, ends[0], ends[1], domain, f"{WHERE}: {symbol}")
    if domain.whole and high - low + 1 <= points:
        return np.arange(low, high + 1), "whole"
    if not domain.whole:
        check_accepted(run, symbol, (low, high), WHERE)
    spaced = np.geomspace(low, high, points)
    spaced[0], spaced[-1] = low, high
    return spaced, "smooth" if domain.whole else "exact"


def _curves(plane: Plane, xs: Array, ys: Array, region: Array, *, upright: bool, whole: bool) -> tuple[Boundary, ...]:
    """The boundaries along one symbol: every change between neighbouring accepted values of it, joined into curves.

    Args:
        plane: what binds at any point.
        xs: the grid of the first symbol.
        ys: that of the second.
        region: what binds, of shape (rows, columns).
        upright: follow the first symbol at each value of the second.
        whole: the symbol that is followed is tried one by one.
    """
    across, along, grid = (ys, xs, region.T) if upright else (xs, ys, region)
    columns, lows, highs = [], [], []
    for column in range(len(across)):
        legal = np.flatnonzero(grid[:, column] != REFUSED)
        changed = np.flatnonzero(np.diff(grid[legal, column]))
        columns += [column] * len(changed)
        lows += legal[changed].tolist()
        highs += legal[changed + 1].tolist()
    if not columns:
        return ()
    at, low, high = across[columns], along[lows].copy(), along[highs].copy()
    first, second = grid[lows, columns], grid[highs, columns]
    for _ in range(0 if whole else HALVINGS):
        middle = np.sqrt(low) * np.sqrt(high)
        inside = (middle > low) & (middle < high)
        if not inside.any():
            break
        found = plane.bounds(middle, at) if upright else plane.bounds(at, middle)
        below = inside & (found == first)
        low = np.where(below, middle, low)
        high = np.where(inside & ~below, middle, high)
        second = np.where(inside & ~below, found, second)
    solved = plane.symbols[0 if upright else 1]
    crossings = list(zip(columns, first, second, at, high, strict=True))
    curves = _join_crossings(solved, plane.names, crossings)
    return tuple(dataclasses.replace(curve, x=curve.y, y=curve.x) for curve in curves) if upright else curves


def _join_crossings(solved: str, names: tuple[str, ...], crossings: list[tuple[Any, ...]]) -> tuple[Boundary, ...]:
    """Crossings of neighbouring columns between the same two resources, nearest to nearest, as curves."""
    open_curves: list[tuple[int, int, list[int], list[float], list[float]]] = []
    for column, first, second, at, y in sorted(crossings, key=lambda c: (c[0], c[4])):
        fits = [c for c in open_curves if (c[0], c[1]) == (first, second) and c[2][-1] == column - 1]
        if fits:
            best = min(fits, key=lambda c, y=y: abs(np.log(c[4][-1] / y)))  # type: ignore[misc]
        else:
            best = (int(first), int(second), [], [], [])
            open_curves.append(best)
        best[2].append(int(column))
        best[3].append(float(at))
        best[4].append(float(y))
    name = [*names, None]
    return tuple(Boundary(solved, name[a], name[b], np.array(xs), np.array(ys)) for a, b, _, xs, ys in open_curves)
