"""How sure a prediction is: the interval that the spreads of its efficiencies and overheads give it.

An efficiency or an overhead has, where its calibration shows a spread, a low and a high value: about the 5th and the
95th percentile. Each is moved alone to either end, and the logarithms of what that does to the answer are added in
quadrature, upwards and downwards apart: the propagation of independent uncertainties (Kline and McClintock 1953, with
whole differences in the place of derivatives, so that a change of bound counts). What no symbol has is added in
quadrature too: another software, and the rest that calibration rows ask for (`causes.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..common.numbers import is_finite
from .causes import INFERENCE, PROMPT, combine, imbalance, scatter_of, subject_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .base_run import BaseRun
    from .causes import Steps

LEVEL = 0.9
"""The part of all measurements that an interval is meant to hold."""
UNEVEN = "token_imbalance"
RATES = (
    *("tokens_per_s", "tokens_per_s_per_device", "flops_per_s_per_device", "mfu", "hfu", "mfu_executed"),
    *("prefill_mfu", "prefill_mfu_executed", "decode_mbu"),
)
"""Outputs that fall as the time grows."""


@dataclass(frozen=True)
class Effect:
    """What the spread of one symbol does to an answer, all others at their values.

    Attributes:
        name: of the symbol.
        low: its low end.
        high: its high end.
        at_low: the answer with it at the low end.
        at_high: the answer with it at the high end.
    """

    name: str
    low: float
    high: float
    at_low: float
    at_high: float


@dataclass(frozen=True)
class Interval:
    """An answer between two ends.

    Attributes:
        value: the answer.
        low: the lower end.
        high: the upper end.
        effects: of every symbol that has a spread and matters, the largest first.
        causes: how far each cause alone moves the answer's logarithm, downwards and upwards; together, in quadrature,
            they are the ends.
    """

    value: float
    low: float
    high: float
    effects: tuple[Effect, ...]
    causes: Mapping[str, Steps]

    def holds(self, measured: float) -> bool:
        """Whether a measurement lies inside."""
        return self.low <= measured <= self.high

    def widened(self, factor: float) -> Interval:
        """The interval with the logarithms of its ends' distances from the value times a factor.

        docs/accuracy.md says by what published measurements ask for, as effects that no formula has lie outside.

        Raises:
            InputError: a factor that is not above 0.
        """
        if not is_finite(factor) or factor <= 0:
            raise InputError(f"factor: found {quote(factor)}, expected a number above 0")
        try:
            down, up = (self.value * (end / self.value) ** float(factor) for end in (self.low, self.high))
        except OverflowError:
            raise InputError(f"factor: found {quote(factor)}, expected a number that leaves an end finite") from None
        return replace(self, low=down, high=up)


def interval(
    run: BaseRun, name: str = "time", kind: str = "", group: str = "", answer: float | None = None
) -> Interval:
    """The interval of one answer of a run, an output of its program such as "time" or "tokens_per_s".

    A value that the user set has no spread.

    Args:
        run: that answers.
        name: of the output.
        kind: of the answer to the calibration of intervals, one of `causes.KINDS`; by default that of the output.
        group: of calibration rows that may have a rest of their own.
        answer: what has the interval, where it is not the output: what goes with it, as a server's times do.

    Raises:
        InputError: an unknown answer, with the nearest, or free symbols.
    """
    program = run.compiled.program
    if name not in program.outputs:
        raise InputError(f"interval: unknown quantity {quote(name)}{nearest(name, program.outputs)}")
    if run.free_names:
        raise InputError(f"free symbols have no value: {', '.join(sorted(run.free_names))}; bind them first")
    value, effects = run.value_at(name, {}), []
    scale = 1.0 if answer is None else answer / value
    for symbol, (low, high) in spreads(run).items():
        ends = run.value_at(name, {symbol: low}), run.value_at(name, {symbol: high})
        if ends != (value, value):
            effects.append(Effect(symbol, low, high, *(end * scale for end in ends)))
    value *= scale
    effects.sort(key=lambda effect: -abs(math.log(effect.at_high / effect.at_low)))
    moved = {effect.name: (_step(value, effect, -1), _step(value, effect, 1)) for effect in effects}
    causes = causes_of(run, moved, kind or kind_of(run, name), group, falls=name in RATES)
    down, up = whole(causes)
    return Interval(value, value * math.exp(-down), value * math.exp(up), tuple(effects), causes)


def kind_of(run: BaseRun, name: str) -> str:
    """What an output of a run is to the calibration of intervals, one of `causes.KINDS`."""
    return PROMPT if name == "prefill" and run.kind == INFERENCE else run.kind


def causes_of(
    run: BaseRun, moved: Mapping[str, Steps], kind: str, group: str = "", *, falls: bool = False
) -> dict[str, Steps]:
    """How far each cause moves the logarithm of an answer of a run.

    Args:
        run: of which the answer is.
        moved: how far each symbol does.
        kind: of the answer, one of `causes.KINDS`.
        group: of calibration rows that may have a rest of their own.
        falls: the answer falls as the time grows, so that what lengthens a time is below it.
    """
    subject = subject_of(run.plan.precision, routed=run.model.architecture.routed)
    scatter = scatter_of(kind, group, subject)
    return combine(moved, scatter.turned if falls else scatter, measured=run.software_measured)


def spreads(run: BaseRun) -> dict[str, tuple[float, float]]:
    """The low and high end of every symbol of the time that has a spread, by name, in alphabetical order.

    A symbol that a run binds to another value than its file (the efficiency of products in FP8) keeps its spread.
    """
    used, found = run.compiled.program.inputs, {}
    for name, quantity in sorted(run.quantities().items()):
        if name not in used or name in run.given or (quantity.low is None and quantity.high is None):
            continue
        scale = run.bound[name][0] / quantity.value if quantity.value else 1.0
        ends = (quantity.value if end is None else end for end in (quantity.low, quantity.high))
        low, high = (end * scale for end in ends)
        found[name] = (low, high)
    if run.model.architecture.routed and UNEVEN in used and UNEVEN not in run.given:
        fewest, most = imbalance()
        found[UNEVEN] = (run.bound[UNEVEN][0] * fewest, run.bound[UNEVEN][0] * most)
    return found


def _step(value: float, effect: Effect, direction: int) -> float:
    """How far a symbol moves the logarithm of the answer in a direction."""
    return max(0.0, *(direction * math.log(end / value) for end in (effect.at_low, effect.at_high)))
