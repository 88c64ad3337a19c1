"""The Pareto front of a search for inference: what a device yields against what a user sees.

The points are all plans that can run and fit, each static batch that was asked for, or else every plan with 1, 2, 4,
... requests in flight in each replica, up to as many as its memory holds. Of all these the front is exact: no point is
on it that another is as good as along every axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...common.errors import InputError, nearest, quote
from ...serve.closed import ClosedLoop
from ...serve.pools import _decode_load
from ..tally import not_dominated
from . import spent
from .batch import BatchPlan
from .load import LoadPlan
from .pools import Pair
from .records import PlanRecord, record
from .request import require_undrafted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...serve.state import State
    from .pools import Division
    from .space import InferenceQuestion


@dataclass(frozen=True)
class Axis:
    """What a point is good at.

    Attributes:
        measure: of a record.
        largest: whether more is better.
        title: for people, with its unit.
    """

    measure: str
    largest: bool
    title: str


AXES = {
    "throughput": Axis("output_tokens_per_s_per_device", True, "output tokens a second and device"),
    "interactivity": Axis("interactivity", True, "tokens a second of a user, 1 / TPOT"),
    "ttft": Axis("ttft_s", False, "time to the first token (s)"),
    "latency": Axis("time_s", False, "time to the last token (s)"),
    "cost": Axis("cost_per_million_output_tokens", False, "USD for a million output tokens"),
    "joules": Axis("joules_per_output_token", False, "joules of an output token"),
}
MOST = 0.95
"""Of what a pool prefills: the largest load of two pools; waits have no bound at the capacity itself."""
DEFAULT = ("throughput", "interactivity")
"""The axes of InferenceMAX (SemiAnalysis 2025): tokens a second of a GPU against those of a user."""


def check_axes(given: Sequence[str] | None, question: InferenceQuestion) -> tuple[str, ...]:
    """The axes that are asked for, each once.

    Raises:
        InputError: an unknown one, with the nearest, fewer than two, or one that the question has no values for.
    """
    names = DEFAULT if given is None else tuple(dict.fromkeys(name.strip() for name in given))
    for name in names:
        if name not in AXES:
            raise InputError(f"axes: found {quote(name)}, expected {' or '.join(AXES)}{nearest(name, AXES)}")
    if len(names) < 2:
        raise InputError(f"axes: found {', '.join(names)} alone, expected two or more of {', '.join(AXES)}")
    if "interactivity" in names and question.generate == 1:
        raise InputError("axes: interactivity means nothing with generate = 1, where no later token is decoded")
    if "cost" in names:
        spent.check_priced(question)
    if "joules" in names:
        require_undrafted(question, "axes", "other axes")
        spent.energy_basis(question)
    return names


@dataclass
class Front:
    """The points that no other is as good as.

    Attributes:
        axes: along which points are compared.
        points: how many were compared.
        records: of the front, the best along the first axis first.
    """

    axes: tuple[str, ...]
    points: int = 0
    records: list[PlanRecord] = field(default_factory=list)


@dataclass(frozen=True)
class Point:
    """A plan with some requests in flight, or of a batch.

    Attributes:
        plan: it.
        values: along each axis, negative where more is better.
        loop: requests in flight in a replica, and its state; None of a batch, and of pools.
    """

    plan: LoadPlan | BatchPlan | Pair
    values: tuple[float, ...]
    loop: tuple[int, State] | None = None


def front(
    axes: tuple[str, ...],
    plans: Sequence[LoadPlan | BatchPlan],
    divisions: Sequence[Division],
    by: str,
    tell: Callable[[], None] = lambda: None,
) -> Front:
    """The front of all plans, and of pools where there are divisions of the devices.

    Args:
        axes: along which points are compared.
        plans: that can run and fit.
        divisions: of the devices into two pools.
        by: what plans are ranked by, of which their records tell.
        tell: called after each plan.
    """
    points: list[Point] = []
    states: dict[tuple[int, int], State] = {}
    for plan in plans:
        points += _loaded(plan, axes, states) if isinstance(plan, LoadPlan) else [_of_batch(plan, axes)]
        tell()
    for division in divisions:
        points += (_of_pair(pair, axes) for pair in _pairs(division))
        tell()
    kept = not_dominated(points, lambda point: point.values)
    records = [record(each.plan, by, joules="joules" in axes, loop=each.loop) for each in kept]
    return Front(axes, len(points), records)


def _of_batch(plan: BatchPlan, axes: tuple[str, ...]) -> Point:
    rate = plan.rate / plan.question.generate
    return _point(plan, axes, rate, plan.fields["batch"] / plan.fields["dp"], plan.first, plan.later)


def _of_pair(pair: Pair, axes: tuple[str, ...]) -> Point:
    first, later = pair.latencies()
    return _point(pair, axes, pair.most, pair.decoding(), math.inf if first is None else first, later)


def _loaded(plan: LoadPlan, axes: tuple[str, ...], states: dict[tuple[int, int], State]) -> Iterator[Point]:
    """A plan with each number of requests in flight; equal replicas share their states."""
    for count, state in loops(plan, states):
        later = state.iteration * plan.steps if plan.question.generate > 1 else None
        load = state.load * plan.replicas
        yield _point(plan, axes, load, state.decoding, state.first_token, later, (count, state))


def _point(
    plan: LoadPlan | BatchPlan | Pair,
    axes: tuple[str, ...],
    rate: float,
    sequences: float,
    first: float,
    later: float | None,
    loop: tuple[int, State] | None = None,
) -> Point:
    """A point whose values are negative where more is better."""
    question, found = plan.question, []
    for name in axes:
        match name:
            case "throughput":
                value = -rate * question.generate / question.devices
            case "interactivity":
                value = math.inf if later is None else -1 / later
            case "ttft":
                value = first
            case "latency":
                value = plan.time if isinstance(plan, BatchPlan) else first + (later or 0.0) * (question.generate - 1)
            case "cost":
                value = spent.dollars(plan, rate, sequences) or 0.0
            case _:
                value = spent.joules(plan, rate, sequences)
        found.append(value)
    return Point(plan, tuple(found), loop)


def loops(plan: LoadPlan, states: dict[tuple[int, int], State]) -> Iterator[tuple[int, State]]:
    """Requests in flight in a replica, 1, 2, 4, ... and as many as memory holds, and its state, within the limits."""
    steady, most = plan.steady, int(plan.steady.engine.limit)
    counts = [2**k for k in range(most.bit_length()) if 2**k < most]
    for count in (*counts, most):
        key = id(steady), count
        state = states[key] if key in states else states.setdefault(key, ClosedLoop(steady, count).state())
        if plan.targets.missed(state, plan.steps) is None:
            yield count, state


def _pairs(division: Division) -> Iterator[Pair]:
    """A division's pools at each number of sequences that a decoding replica holds, up to what the prompts allow."""
    prefill = max(division.prefill, key=lambda plan: plan.high)
    while not prefill.known:
        prefill.narrow(0.0)
        prefill = max(division.prefill, key=lambda plan: plan.high)
    most = prefill.high * MOST
    for decode in division.decode:
        found = decode.load(Pair(prefill, decode, most).transfer)
        steady = decode.serving.steady
        if found is None or steady is None:
            continue
        sequences, load = 1.0, 0.0
        while load < most and sequences < 2 * found[1]:
            load = _decode_load(steady.engine, min(sequences, found[1])) * decode.serving.plan.dp
            yield Pair(prefill, decode, min(load, most))
            sequences *= 2
