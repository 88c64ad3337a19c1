"""A sweep as a picture: each output along the longest axis, a line for each value of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..analysis.measures import si_axis
from ..analysis.solution import is_higher_better
from ..common.errors import InputError, NoAnswerError
from ..pictures.curves import Curves, Series
from ..pictures.figure import Sheet
from ..sweep.axes import CHOICES, label
from ..sweep.chunks import block_shape, every
from ..sweep.sweep import REASON

if TYPE_CHECKING:
    from ..sweep.axes import Axis
    from ..sweep.sweep import Sweep

    Array = np.ndarray[Any, Any]

MOST: Final = 1_000_000
"""Points of a grid that is drawn."""
CHUNK: Final = 65_536
LINES: Final = 8
"""Lines of a chart, and charts: of more the ends and some between, and the first."""
CHARTS: Final = 6


def check_size(sweep: Sweep) -> None:
    """Refuse a grid that is too large to be drawn.

    Raises:
        InputError: it has more points.
    """
    if sweep.points > MOST:
        raise InputError(f"sweep: --plot: found {sweep.points:,} points, expected at most {MOST:,}")


def sheet(sweep: Sweep) -> Sheet:
    """The picture; of the axes beside the two longest the best feasible point is drawn.

    Raises:
        NoAnswerError: no point is feasible.
    """
    values = _computed(sweep)
    order = sorted(range(len(sweep.axes)), key=lambda k: (-len(sweep.axes[k]), k))
    across, apart = order[0], order[1] if len(order) > 1 and len(sweep.axes[order[1]]) > 1 else None
    rest = tuple(k for k in range(len(sweep.axes)) if k not in (across, apart))
    x_axis = sweep.axes[across]
    charts = []
    for name in sweep.outputs[:CHARTS]:
        found = _best(values[name], values[REASON] == 0, rest, highest=is_higher_better(name))
        if apart is None:
            lines = {"": found}
        else:
            found = found if across < apart else found.T
            chosen = np.unique(np.linspace(0, len(sweep.axes[apart]) - 1, LINES).round().astype(int))
            lines = {f"{sweep.axes[apart].name} = {_names(sweep.axes[apart])[k]}": found[:, k] for k in chosen}
        charts.append(_chart(name, x_axis, lines))
    if not any(each.x for chart in charts for each in chart.series):
        raise NoAnswerError("sweep: --plot: no point is feasible, so there is nothing to draw")
    others = [f"the best {sweep.axes[k].name}" for k in rest if len(sweep.axes[k]) > 1]
    model, system = (None if each is None else each.name for each in (sweep.base.model, sweep.base.system))
    where = " on ".join(each for each in (model, system) if each) or "sweep"
    return Sheet(", ".join([where, *others]), charts)


def _computed(sweep: Sweep) -> dict[str, Array]:
    found = {name: np.empty(sweep.shape) for name in sweep.outputs}
    found[REASON] = np.empty(sweep.shape, dtype=np.uint8)
    for block in every(sweep.shape, block_shape(sweep.shape, CHUNK)):
        for name, values in sweep.compute(block).items():
            found[name][block] = values
    return found


def _best(values: Array, feasible: Array, over: tuple[int, ...], *, highest: bool) -> Array:
    """The best of the feasible values over some axes; NaN where there is none."""
    sign = -1.0 if highest else 1.0
    kept = np.where(feasible & np.isfinite(values), sign * values, np.inf).min(axis=over)
    return np.where(np.isinf(kept), np.nan, sign * kept)


def _names(axis: Axis) -> list[str]:
    """The values of an axis in words; of zipped symbols all of them."""
    members = [[_word(value) for value in axis.labels(name)] for name in axis.members]
    return [" ".join(each) for each in zip(*members, strict=True)]


def _word(value: Any) -> str:
    found = label(value)
    return "default" if found is None else f"{found:.6g}" if isinstance(found, float | np.floating) else str(found)


def _chart(name: str, axis: Axis, lines: dict[str, Array]) -> Curves:
    named = len(axis.members) > 1 or axis.name in CHOICES or bool(axis.unset)
    xs = np.arange(len(axis)) if named else np.asarray(next(iter(axis.members.values())), dtype=float)
    series = []
    for title, ys in lines.items():
        seen = np.isfinite(ys)
        if seen.any():
            series.append(Series(title, xs[seen].tolist(), ys[seen].tolist()))
    ticks = _names(axis) if named else ()
    return Curves(name, axis.name if named else si_axis(axis.name), si_axis(name), series, ticks=ticks, height=2.8)
