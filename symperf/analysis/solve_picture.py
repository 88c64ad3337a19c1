"""Solutions as pictures: the quantity whose target binds along the symbol, its target, and the answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pictures.style import CURVES, GREEN, RULE
from .cross_whole import Trials
from .measures import axis, axis_scale, spell

if TYPE_CHECKING:
    from .solution import Solution, Target

SPAN = 16
"""The picture goes from the answer over this to the answer times this."""
POINTS = 160


def draw(solution: Solution, axes: Any) -> None:
    """Each quantity as a part of its target along the symbol; of one target, the quantity itself."""
    alone, lowest, unit = len(solution.targets) == 1, math.inf, axis_scale(solution.symbol)
    for k, target in enumerate(solution.targets):
        xs, heights = _curve(solution, target)
        scale = 1.0 if alone else target.wanted
        lowest = min(lowest, float(heights.min()))
        style = {"marker": ".", "linewidth": 0.8} if solution.whole else {}
        axes.plot(xs * unit, heights / scale, color=CURVES[k % len(CURVES)], label=str(target), **style)
    axes.axhline(solution.target if alone else 1.0, color="black", linewidth=0.8, label="target")
    axes.axvline(
        solution.value * unit,
        **RULE,
        label=f"{solution.symbol} = {spell(solution.symbol, solution.value)}",
    )
    for low, high in solution.admissible:
        left, right = axes.get_xlim()
        axes.axvspan(max(low * unit, left), min(high * unit, right), color=GREEN, alpha=0.1)
    if solution.value > 0:
        axes.set_xscale("log")
    if lowest > 0:
        axes.set_yscale("log")
    axes.set_xlabel(axis(solution.symbol))
    axes.set_ylabel(axis(solution.of) if alone else "part of the target")
    axes.set_title(solution.sentence)
    axes.legend()


def _curve(solution: Solution, target: Target) -> tuple[Any, Any]:
    """A quantity around the answer; at whole numbers, of those that the run accepts."""
    now = target.side.now or solution.value
    marks = [x for x in (solution.value, now, *solution.values) if x > 0] or [1.0]
    low, high = min(marks) / SPAN, max(marks) * SPAN
    if not solution.whole:
        xs = np.geomspace(low, high, 4 * POINTS + 1)
        return xs, target.side.values(xs)
    trials = Trials(target.side, target.side)
    for n in dict.fromkeys(math.ceil(x) for x in (*np.geomspace(max(low, 1), high, POINTS), solution.value)):
        trials.legal(n)
    found = trials.values()
    return found.xs, found.a
