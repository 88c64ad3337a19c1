"""What plans of a search for training spend: fronts along dollars and joules, curves of equal time and equal cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from .rank import check_priced
from .tally import not_dominated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scaling import Scaling, ScalingPoint
    from .search import Answer
    from .space import SearchQuestion

AXES: Final = {
    "time": "time_s",
    "memory": "memory_bytes",
    "devices": "devices",
    "cost": "dollars_per_million_tokens",
    "joules": "joules_per_token",
}
"""What plans of a front are compared in, less of each is better, with the name of its value."""
DEFAULT: Final = ("time", "memory", "devices")
ROUNDING: Final = 1e-12
"""Relative: so that what is exactly enough for some steps is not a step short by rounding."""


def check_axes(text: str | None) -> tuple[str, ...]:
    """The axes of a front, by their names with commas between.

    Raises:
        InputError: an unknown name, one that comes twice, or fewer than two.
    """
    if text is None:
        return DEFAULT
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in AXES:
            raise InputError(f"axes: found {quote(name)}, expected {' or '.join(AXES)}{nearest(name, AXES)}")
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"axes: found {quote(text)}, expected two or more of {', '.join(AXES)}, each once")
    return names


def front(answer: Answer, axes: Sequence[str] = DEFAULT) -> list[dict[str, Any]]:
    """The plans that no other is as good as along the axes, fastest first.

    Dollars and joules are of all devices for as long as the step takes. So a plan that another is as good as in time,
    memory and devices is no better in any of them, and the front is among those plans.

    Args:
        answer: of a search for the front of time, memory and devices.
        axes: some of `AXES`.

    Raises:
        InputError: no price or no power, or dollars or joules that each plan has its own of.
    """
    question = answer.found[0].question
    if "cost" in axes:
        check_priced(question, "axes: cost")
    power = board_power(question) if "joules" in axes else None
    records = [dict(each) for each in answer.front]
    if power is not None:
        for each in records:
            tokens = each["tokens_per_s"] * each["time_s"]
            each["joules_per_token"] = power * each["devices"] * each["time_s"] / tokens
    points = [tuple(each[AXES[name]] for name in axes) for each in records]
    return [records[place] for place in sorted(not_dominated(range(len(records)), points.__getitem__))]


def board_power(question: SearchQuestion) -> float:
    """Watts of a device.

    Raises:
        InputError: the system tells none, or energies of FLOPs and bytes, which differ from plan to plan.
    """
    if question.base.told_energies() is not None:
        raise InputError(
            f"axes: joules: system {question.system.name} tells energies of FLOPs and bytes, of which each plan has "
            "its own; --by tokens-per-joule ranks by them"
        )
    return question.base.system.value("power")


@dataclass(frozen=True)
class IsoPoint:
    """One number of devices on the curves of equal time and of equal cost.

    Attributes:
        point: the best plan there.
        seconds: of the curve of equal time; None where it was not asked for.
        dollars: of the curve of equal cost; None likewise.
        rate: dollars of a second of a device; None where the system has no price.
    """

    point: ScalingPoint
    seconds: float | None
    dollars: float | None
    rate: float | None

    @property
    def step_tokens(self) -> int:
        """Tokens of a step."""
        return self.point.batch * self.point.sequence

    @property
    def step_dollars(self) -> float | None:
        """Dollars of a step."""
        return None if self.rate is None else self.rate * self.point.devices * self.point.time

    @property
    def tokens_in_time(self) -> int | None:
        """Tokens of the whole steps that end within the seconds."""
        if self.seconds is None or not self.point.feasible:
            return None
        return _whole_steps(self.seconds, self.point.time) * self.step_tokens

    @property
    def tokens_for_cost(self) -> int | None:
        """Tokens of the whole steps that the dollars pay for."""
        step = self.step_dollars
        if self.dollars is None or step is None or not self.point.feasible:
            return None
        return _whole_steps(self.dollars, step) * self.step_tokens

    @property
    def dollars_in_time(self) -> float | None:
        """What the training within the seconds costs."""
        step, tokens = self.step_dollars, self.tokens_in_time
        return None if step is None or tokens is None else step * tokens / self.step_tokens

    @property
    def seconds_for_cost(self) -> float | None:
        """How long the training for the dollars takes."""
        tokens = self.tokens_for_cost
        return None if tokens is None else self.point.time * tokens / self.step_tokens

    @property
    def binds(self) -> str | None:
        """Which of the two ends a training first; None unless both were asked for."""
        one, other = self.tokens_in_time, self.tokens_for_cost
        if one is None or other is None:
            return None
        return "time" if one < other else "cost" if other < one else "both"

    def as_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "devices": self.point.devices,
            "tokens_in_time": self.tokens_in_time,
            "dollars_in_time": self.dollars_in_time,
            "tokens_for_cost": self.tokens_for_cost,
            "seconds_for_cost": self.seconds_for_cost,
            "binds": self.binds,
        }


def _whole_steps(amount: float, step: float) -> int:
    """How many steps an amount of seconds or dollars is enough for."""
    return math.floor(amount / step * (1 + ROUNDING))


def iso_curves(scaling: Scaling, seconds: float | None, dollars: float | None) -> list[IsoPoint]:
    """The tokens that each number of devices trains on in a time, and for a sum.

    Raises:
        InputError: a sum on a system without a price.
    """
    question = scaling.points[0].answer.found[0].question
    rate: float | None = None
    try:
        check_priced(question, "iso-cost")
        rate = question.device_second
    except InputError:
        if dollars is not None:
            raise
    return [IsoPoint(point, seconds, dollars, rate) for point in scaling.points]
