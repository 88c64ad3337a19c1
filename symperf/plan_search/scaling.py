"""How the best plan scales with devices, which number of them is fast enough, and what a whole training takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analysis import Unreachable
from ..common.errors import InputError, quote
from .search import Answer, answer_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.model import Model
    from ..spending.answers import Cost, Energy
    from ..systems.system import System

HOUR = 3600.0


@dataclass(frozen=True, eq=False)
class ScalingPoint:
    """The best plan on one number of devices.

    Attributes:
        devices: how many.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        answer: of the search on so many devices alone; it may have no plan.
    """

    devices: int
    batch: int
    sequence: int
    answer: Answer

    @property
    def feasible(self) -> bool:
        """Whether a plan fits."""
        return bool(len(self.answer.found[0].tally.best))

    @property
    def record(self) -> dict[str, Any]:
        """The best plan."""
        return self.answer.records[0]

    @property
    def time(self) -> float:
        """Seconds of a step of the best plan; infinite where none fits."""
        return float(self.answer.found[0].tally.best.time[0]) if self.feasible else math.inf

    @property
    def rate(self) -> float:
        """Tokens a second; none where no plan fits."""
        return self.batch * self.sequence / self.time


@dataclass(frozen=True)
class Training:
    """What it takes to train on some tokens.

    Attributes:
        tokens: asked for.
        steps: whole steps; the last may see more tokens than are asked for.
        seconds: of all steps.
        devices: in use.
        dollars: what the devices cost in that time; None where the system has no price.
        source: of the price, if there is one.
        joules: of all devices; None where the system tells neither energies nor a power.
        basis: of the joules: "resources" (FLOPs, bytes and static power) or "board" (its power all the time).
    """

    tokens: float
    steps: int
    seconds: float
    devices: int
    dollars: float | None
    source: str | None
    joules: float | None = None
    basis: str | None = None

    @property
    def device_hours(self) -> float:
        """Hours of a device."""
        return self.devices * self.seconds / HOUR


@dataclass(frozen=True, eq=False)
class Scaling:
    """The best plans on several numbers of devices.

    Attributes:
        kind: "strong", of one batch, or "weak", of a batch that grows with the devices.
        points: by number of devices, fewest first.
    """

    kind: str
    points: tuple[ScalingPoint, ...]

    @property
    def first(self) -> ScalingPoint | None:
        """The fewest devices that have a plan: the others are compared with it."""
        return next((point for point in self.points if point.feasible), None)

    def speedup(self, point: ScalingPoint) -> float | None:
        """Tokens a second over those of the first point; None where no plan fits."""
        return None if self.first is None or not point.feasible else point.rate / self.first.rate

    def efficiency(self, point: ScalingPoint) -> float | None:
        """Tokens a second and device over those of the first point; None where no plan fits."""
        speedup = self.speedup(point)
        return None if speedup is None or self.first is None else speedup * self.first.devices / point.devices

    def within(self, seconds: float) -> ScalingPoint | None:
        """The fewest devices whose best plan's step takes at most so long, of those that were searched."""
        return next((point for point in self.points if point.time <= seconds), None)


def strong(answer: Answer) -> Scaling:
    """The scaling of one batch: a search over several numbers of devices, part by part."""
    points = [
        ScalingPoint(
            each.question.devices,
            each.question.batch,
            each.question.sequence,
            Answer((each,), answer.criterion, answer.top),
        )
        for each in answer.found
    ]
    return Scaling("strong", tuple(points))


def weak(model: Model, system: System, *, devices: Sequence[int], batch: int, **question: Any) -> Scaling:
    """The scaling of a batch that grows with the devices.

    Args:
        model: what to train.
        system: what to train on.
        devices: how many; the fewest have the batch that is given.
        batch: sequences in the global batch of the fewest devices.
        question: the rest, as for a search.

    Raises:
        InputError: bad input, or a number of devices whose share of the batch is not whole.
    """
    counts = sorted(set(devices))
    points = []
    for count in counts:
        grown, left = divmod(batch * count, counts[0])
        if left:
            raise InputError(
                f"weak: a batch of {batch} on {counts[0]} devices would be {batch * count / counts[0]:g} on {count}, "
                "expected a whole number"
            )
        found = answer_search(model, system, devices=count, batch=grown, **question)
        points.append(ScalingPoint(count, grown, question["sequence"], found))
        if not found.whole:
            break
    return Scaling("weak", tuple(points))


def training(point: ScalingPoint, tokens: float) -> Training:
    """What it takes to train on some tokens with the best plan of a point.

    The dollars are those of `symperf train`: the system's price, or the catalogue's for it; none is made up.

    Raises:
        InputError: no positive number of tokens.
        Unreachable: no plan fits.
    """
    if not isinstance(tokens, int | float) or isinstance(tokens, bool) or not 0 < tokens < math.inf:
        raise InputError(f"tokens: found {quote(tokens)}, expected a number above 0")
    if not point.feasible:
        raise Unreachable(f"tokens: no plan fits on {point.devices} devices", tokens, 0.0)
    steps = math.ceil(tokens / (point.batch * point.sequence))
    cost = _cost(point)
    dollars = None if cost is None else cost.dollars * steps
    energy = _energy(point)
    joules, basis = (None, None) if energy is None else (energy.total * steps, energy.basis)
    source = None if cost is None else cost.source
    return Training(tokens, steps, steps * point.time, point.devices, dollars, source, joules, basis)


def _energy(point: ScalingPoint) -> Energy | None:
    """Of a step, where the system tells energies or a power."""
    try:
        return point.answer.winner.energy()
    except InputError:
        return None


def _cost(point: ScalingPoint) -> Cost | None:
    """Of a step, where the system has a price."""
    try:
        return point.answer.winner.cost()
    except InputError:
        return None
