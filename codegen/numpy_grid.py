"""A grid on NumPy, a block of it after the other: the back end that needs no machine code."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .evaluate import evaluate
from .passes import axis_sizes, choose_order, inputs_along
from .workers import boxes, run_boxes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .passes import Axis
    from .program import Program
    from .reduce import TopK
    from .workers import Box

    Array = np.ndarray[Any, Any]

BLOCK = 1 << 15
"""Points that are computed at once: their intermediate values stay in a cache."""


def run_on_numpy(
    program: Program,
    axes: Sequence[Axis],
    columns: Mapping[str, Array],
    scalars: Mapping[str, Any],
    reads: Sequence[str],
    constraints: Sequence[str],
    top: TopK | None,
) -> Any:
    """The outputs at every point, as `GridKernel.run` gives them; with a reduction its state.

    Args:
        program: of the kernel.
        axes: in the order in which results are indexed.
        columns: points by input.
        scalars: the other inputs.
        reads: outputs to return.
        constraints: outputs at least zero where a point is feasible.
        top: the points to keep; without it all are stored.
    """
    sizes = axis_sizes(columns, axes)
    order = choose_order(program, sizes)
    shape = tuple(sizes.values())
    wanted = set(program.outputs.values())
    steps = strides(sizes, axes)
    state: Any = None if top is None else top.start(len(constraints))
    found: dict[str, Array] = {}
    if top is None:
        found = {name: np.empty(shape) for name in reads}
    whole = np.zeros(shape if top is None and constraints else (0,) * len(shape), np.uint8)

    def work(_: int, box: Box) -> None:
        nonlocal state
        part = dict(zip(order, box, strict=True))
        window = tuple(slice(*part[axis]) for axis in axes)
        cut = tuple(stop - start for start, stop in (part[axis] for axis in axes))
        given = dict(scalars)
        for k, axis in enumerate(axes):
            given |= {name: along(columns[name][window[k]], k, len(cut)) for name in inputs_along(axis)}
        by_position = evaluate(program, given, wanted)
        values = {name: by_position[position] for name, position in program.outputs.items()}
        reason = _reason([values[name] for name in constraints], cut)
        if top is None:
            for name in reads:
                found[name][window] = values[name]
            if constraints:
                whole[window] = reason
            return
        flat = np.zeros(cut, np.int64)
        for k, axis in enumerate(axes):
            flat += along(np.arange(*part[axis]) * steps[axis], k, len(cut))
        value = np.broadcast_to(values[top.output], cut).ravel()
        state = top.absorb(state, value, reason.ravel(), flat.ravel())

    run_boxes(boxes([sizes[axis] for axis in order], [1] * len(order), BLOCK), work, 1)
    return add_reason(found, whole if constraints else None) if top is None else state


def _reason(constraints: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Per point 0 where feasible, else one more than the position of the first constraint that fails."""
    reason = np.zeros(shape, np.uint8)
    with np.errstate(invalid="ignore"):
        for k in range(len(constraints), 0, -1):
            reason[~np.broadcast_to(constraints[k - 1] >= 0, shape)] = k
    return reason


def along(column: Array, dimension: int, dimensions: int) -> Array:
    """A view of a column with one point in every dimension but one, so that it broadcasts."""
    return column.reshape([-1 if k == dimension else 1 for k in range(dimensions)])


def strides(sizes: Mapping[Axis, int], order: Sequence[Axis]) -> dict[Axis, int]:
    """How far apart neighbours along each axis are where `order` is the order of the axes."""
    return {axis: prod(sizes[other] for other in order[k + 1 :]) for k, axis in enumerate(order)}


def add_reason(found: dict[str, Array], reason: Array | None) -> dict[str, Array]:
    """The outputs with "feasible" and "reason", if there are constraints."""
    return found if reason is None else {**found, "feasible": reason == 0, "reason": reason}
