"""The best points of a sweep, reduced while it is computed: nothing else is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .chunks import block_shape, every
from .codegen.kernel import GridKernel
from .codegen.reduce import TopK
from .codegen.store import Store
from .compiled import cache_folder
from .dataset import frame
from .errors import InputError, shown
from .plan import positive_integer
from .sweep import DEFAULT_OUTPUTS, POINTS, REASON, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from .axes import Axis
    from .cells import Base, Cell

    Array = np.ndarray[Any, Any]

COMPILED = 2_000_000
"""Points of a cell above which a kernel is asked to reduce it."""
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
        One row a point; `attrs` holds `considered` (points) and, where no compiled kernel was needed, `feasible` and
        `rejected` (points by reason).

    Raises:
        InputError: as for a sweep, or not exactly one of `minimize` and `maximize`.
    """
    if (minimize is None) == (maximize is None):
        raise InputError(f"best: found minimize={shown(minimize)}, maximize={shown(maximize)}, expected one of them")
    if positive_integer("top", top) > LARGEST_TOP:
        raise InputError(f"top: found {top}, expected at most {LARGEST_TOP}")
    target: Any = minimize if minimize is not None else maximize
    asked = [outputs] if isinstance(outputs, str) else list(outputs)
    if not isinstance(target, str):
        raise InputError(f"best: found {shown(target)}, expected the name of a quantity")
    sweep = Sweep(base, axes, derived=derived, where=where, outputs=dict.fromkeys([target, *asked]))
    kept = _Top(target, maximize is not None, top)
    counted = True
    for made, positions in sweep.parts(tuple(slice(0, n) for n in sweep.shape)):
        if made.program is None:
            kept.counts[1] += math.prod(p.size for p in positions)
        elif _suits(sweep, made, positions, target):
            kept.merge(sweep, *_compiled(sweep, made, positions, kept))
            counted = False
        else:
            shape = [p.size for p in positions]
            for cut in every(shape, block_shape(shape, POINTS)):
                kept.add(sweep, made, [p[c] for p, c in zip(positions, cut, strict=True)])
    at = np.unravel_index(kept.index, sweep.shape)
    table = frame(sweep, (), {name: kept.values.get(name, np.empty(0)) for name in sweep.outputs}, list(at))
    table.attrs = {"considered": sweep.points}
    if counted:
        table.attrs["feasible"] = int(kept.counts[0])
        table.attrs["rejected"] = {sweep.reasons[code - 1]: int(n) for code, n in enumerate(kept.counts) if code and n}
    return table


def _suits(sweep: Sweep, made: Cell, positions: Sequence[Array], target: str) -> bool:
    """Whether a cell is worth a compiled kernel, and has a form that one knows: one number along each axis."""
    if math.prod(p.size for p in positions) <= COMPILED or target in made.absent:
        return False
    return all(len(_numbers(axis)) <= 1 or p.size == 1 for axis, p in zip(sweep.axes, positions, strict=True))


def _numbers(axis: Axis) -> dict[str, Array]:
    return {name: values for name, values in axis.members.items() if isinstance(values, np.ndarray)}


def _compiled(sweep: Sweep, made: Cell, positions: Sequence[Array], kept: _Top) -> tuple[Array, dict[str, Array]]:
    """The best of a cell: places in the grid, and the values there."""
    assert made.program is not None
    scalars = dict(made.scalars)
    along: dict[str, Array] = {}
    dims: dict[str, int] = {}
    for k, (axis, p) in enumerate(zip(sweep.axes, positions, strict=True)):
        for name, values in _numbers(axis).items():
            if p.size == 1:
                scalars[name] = float(values[p[0]])
            else:
                along[name], dims[name] = values[p].astype(np.float64), k
    outputs = [name for name in sweep.outputs if name not in made.absent]
    kernel = GridKernel(
        made.program,
        list(along),
        outputs,
        constraints=made.constraints,
        reduce=TopK(kept.target, kept.top, largest=kept.largest),
        store=Store(cache_folder()),
    )
    found = kernel.run(along, scalars)
    at = [np.full(len(found), p[0]) for p in positions]
    for name, k in dims.items():
        at[k] = positions[k][found.indices[name]]
    result = {name: found.values.get(name, np.zeros(len(found))) for name in sweep.outputs}
    return np.asarray(np.ravel_multi_index(at, sweep.shape)), result


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

    def merge(self, sweep: Sweep, flat: Array, values: dict[str, Array]) -> None:
        """Keep the best of what there is and of some more points."""
        index = np.concatenate([self.index, flat])
        both = {n: np.concatenate([self.values.get(n, np.empty(0)), values[n]]) for n in sweep.outputs}
        sign = -1.0 if self.largest else 1.0
        order = np.lexsort((index, sign * both[self.target]))[: self.top]
        self.index, self.values = index[order], {name: v[order] for name, v in both.items()}
