"""The best points of a sweep, reduced while it is computed: nothing else is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.reduce import TopK
from ..common.errors import InputError, quote
from ..plans.plan import positive_integer
from .cell_kernel import CellKernel
from .chunks import block_shape, every
from .dataset import frame
from .sweep import DEFAULT_OUTPUTS, POINTS, REASON, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from .cells import Base, Cell

    Array = np.ndarray[Any, Any]

COMPILED = 2_000_000
"""Points above which a kernel is asked to reduce a cell."""
SPARE = 100
"""More points than asked for are taken from a kernel, whose values may differ from NumPy's in the last places: which of
two equally good points is the better is for NumPy to say."""
LARGEST_TOP = 1_000_000


def best(
    base: Base,
    axes: Mapping[str, Any],
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    where: Iterable[str] | Mapping[str, str] = (),
    top: int = 10,
    derived: Mapping[str, str] | None = None,
    outputs: Iterable[str] = DEFAULT_OUTPUTS,
) -> pd.DataFrame:
    """The `top` feasible points, best first; of equal ones the first in the grid.

    Returns:
        One row a point; `attrs` holds `considered` (points), `feasible` (points) and `rejected` (points by
        reason).

    Raises:
        InputError: as for a sweep, or not exactly one of `minimize` and `maximize`.
    """
    if (minimize is None) == (maximize is None):
        raise InputError(f"best: found minimize={quote(minimize)}, maximize={quote(maximize)}, expected one of them")
    if positive_integer("top", top) > LARGEST_TOP:
        raise InputError(f"top: found {top}, expected at most {LARGEST_TOP}")
    target: Any = minimize if minimize is not None else maximize
    asked = [outputs] if isinstance(outputs, str) else list(outputs)
    if not isinstance(target, str):
        raise InputError(f"best: found {quote(target)}, expected the name of a quantity")
    sweep = Sweep(base, axes, derived=derived, where=where, outputs=dict.fromkeys([target, *asked]))
    kept = _Top(target, maximize is not None, top)
    for made, sizes, positions in sweep.parts(tuple(slice(0, n) for n in sweep.shape)):
        if made.program is None:
            kept.counts[1 + sweep.reasons.index(made.reason)] += math.prod(p.size for p in positions)
        elif math.prod(sizes) > COMPILED and target not in made.absent:
            kept.add_compiled(sweep, made, positions)
        else:
            for cut in every(sizes, block_shape(sizes, POINTS)):
                kept.add(sweep, made, [p[c] for p, c in zip(positions, cut, strict=True)])
    at = np.unravel_index(kept.index, sweep.shape)
    table = frame(sweep, (), {name: kept.values.get(name, np.empty(0)) for name in sweep.outputs}, list(at))
    rejected = {sweep.reasons[code - 1]: int(n) for code, n in enumerate(kept.counts) if code and n}
    table.attrs = {"considered": sweep.points, "feasible": int(kept.counts[0]), "rejected": rejected}
    return table


@dataclass
class _Top:
    """The best points so far, by the place of each in the grid."""

    target: str
    largest: bool
    top: int
    index: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: dict[str, Array] = field(default_factory=dict)
    counts: Array = field(default_factory=lambda: np.zeros(256, dtype=np.int64))

    def add(self, sweep: Sweep, made: Cell, positions: Sequence[Array]) -> None:
        """Look at every combination of some positions of a cell."""
        found = sweep.evaluate(made, positions)
        reason = found[REASON].ravel()
        self.counts += np.bincount(reason, minlength=256)
        ranked = found[self.target].ravel()
        ranked = -ranked if self.largest else ranked
        chosen = np.flatnonzero((reason == 0) & ~np.isnan(ranked))
        if chosen.size > self.top:
            worst = np.partition(ranked[chosen], self.top - 1)[self.top - 1]
            chosen = chosen[ranked[chosen] <= worst]
        at = np.unravel_index(chosen, found[REASON].shape)
        flat = np.ravel_multi_index([p[k] for p, k in zip(positions, at, strict=True)], sweep.shape)
        self.merge(sweep, flat, {name: found[name].ravel()[chosen] for name in sweep.outputs})

    def add_compiled(self, sweep: Sweep, made: Cell, positions: Sequence[Array]) -> None:
        """Look at every point of a cell with a kernel."""
        most = TopK(self.target, self.top + SPARE, largest=self.largest)
        sizes = [p.size for p in positions]
        at, found = CellKernel(sweep.axes, made, sizes, sweep.outputs, most).best(positions)
        self.counts[0] += found.feasible
        for position, n in found.rejected.items():
            self.counts[1 + sweep.reasons.index(made.constraints[position])] += n
        values = {name: found.values.get(name, np.full(len(found), np.nan)) for name in sweep.outputs}
        self.merge(sweep, np.asarray(np.ravel_multi_index(at, sweep.shape)), values)

    def merge(self, sweep: Sweep, flat: Array, values: dict[str, Array]) -> None:
        """Keep the best of what there is and of some more points."""
        index = np.concatenate([self.index, flat])
        both = {n: np.concatenate([self.values.get(n, np.empty(0)), values[n]]) for n in sweep.outputs}
        sign = -1.0 if self.largest else 1.0
        order = np.lexsort((index, sign * both[self.target]))[: self.top]
        self.index, self.values = index[order], {name: v[order] for name, v in both.items()}
