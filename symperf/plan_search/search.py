"""`symperf.search`: the best plans of a model on a system, for one number of devices or several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.collecting import collection_paused
from ..common.errors import InputError
from ..plans.plan import Plan, positive_integer
from ..plans.software_limits import SoftwareLimits
from ..systems.system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from .cluster import on_cluster
from .evaluate import evaluate, lay_out_space
from .rank import by_energy, criterion
from .request import check_limits, check_required, check_values, contradictions
from .space import SearchQuestion
from .tally import Tally, not_dominated

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from ..common.cluster import Scheduler
    from ..models.model import Model
    from ..runs.training_run import Run
    from ..systems.system import System
    from .evaluate import Progress, Remote, SearchSpace
    from .explain import Alternative
    from .rank import Criterion
    from .tally import Kept

MOST = 100_000
"""Plans that an answer may list."""
SPARE = 4
"""More plans than asked for are kept, so that the best by memory of equally fast ones are among them."""

TRAINED_PARTS = ("freeze", "lora_rank", "lora_targets")
"""Fields that say which parts of a model are trained."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a search over one number of devices found.

    Attributes:
        space: the plans.
        tally: the best of them, and counts.
        whole: whether all was seen.
    """

    space: SearchSpace
    tally: Tally
    whole: bool

    @property
    def question(self) -> SearchQuestion:
        """What was asked."""
        return self.space.question

    @cached_property
    def rejected(self) -> dict[str, int]:
        """Plans that cannot run or do not fit, by reason, most first."""
        found = dict(self.space.rejected)
        for name, n in self.tally.rejected.items():
            found[name] = found.get(name, 0) + n
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, eq=False)
class Answer:
    """The best plans, and what became of the others.

    Attributes:
        found: by number of devices.
        criterion: what they are ranked by.
        top: plans asked for.
    """

    found: tuple[Found, ...]
    criterion: Criterion
    top: int

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The plans, best first: fields of the plan, devices, time, throughput, MFU, memory and what they rank by."""
        ranked = [(found, place) for found in self.found for place in range(min(self.top, len(found.tally.best)))]
        ranked.sort(key=lambda item: self.criterion.score(item[0].question, float(item[0].tally.best.score[item[1]])))
        return [self._record(found, found.tally.best, place) for found, place in ranked[: self.top]]

    @cached_property
    def front(self) -> list[dict[str, Any]]:
        """The plans that no other is as good as in time, memory and devices, fastest first."""
        points = [
            (found, place)
            for found in self.found
            if found.tally.front is not None
            for place in range(len(found.tally.front))
        ]

        def point(item: tuple[Found, int]) -> tuple[float, float, int]:
            front = item[0].tally.front
            assert front is not None
            return float(front.time[item[1]]), float(front.memory[item[1]]), item[0].question.devices

        kept = not_dominated(points, point)
        return [self._record(found, found.tally.front, place) for found, place in kept if found.tally.front is not None]

    @cached_property
    def winner(self) -> Run:
        """The run of the best plan."""
        return self._best[0].question.run(**self._best[1])

    @cached_property
    def _best(self) -> tuple[Found, dict[str, Any]]:
        scores = [
            (self.criterion.score(found.question, float(found.tally.best.score[0])), k)
            for k, found in enumerate(self.found)
            if len(found.tally.best)
        ]
        found = self.found[min(scores)[1]]
        return found, found.space.fields(found.tally.best.place[0])

    @property
    def winner_fields(self) -> dict[str, Any]:
        """The fields of the best plan."""
        return self._best[1]

    @property
    def best(self) -> Found:
        """Where the best plan was found."""
        return self._best[0]

    @cached_property
    def considered(self) -> int:
        """Plans of all spaces."""
        return sum(found.space.considered for found in self.found)

    @cached_property
    def legal(self) -> int:
        """Those that can run, if they fit."""
        return sum(found.space.legal for found in self.found)

    @cached_property
    def feasible(self) -> int:
        """Those that can run and fit."""
        return sum(found.tally.feasible for found in self.found)

    @cached_property
    def pruned(self) -> int:
        """Of these, those that a bound proved slower than the best, and whose time was not computed."""
        return sum(found.tally.pruned for found in self.found)

    @cached_property
    def rejected(self) -> dict[str, int]:
        """Plans that cannot run or do not fit, by reason, most first."""
        total: dict[str, int] = {}
        for found in self.found:
            for name, n in found.rejected.items():
                total[name] = total.get(name, 0) + n
        return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))

    @property
    def whole(self) -> bool:
        """Whether all plans were seen."""
        return all(found.whole for found in self.found)

    def _record(self, found: Found, kept: Kept, place: int) -> dict[str, Any]:
        question, time = found.question, float(kept.time[place])
        number = int(kept.place[place][0])
        rate = next(m.scalars["matrix_rate"] for m in found.space.members if m.number == number)
        fields = found.space.fields(kept.place[place])
        return {
            **fields,
            "devices": question.devices,
            "time_s": time,
            "tokens_per_s": question.batch * question.sequence / time,
            "mfu": self._model_flops(question, fields) / (time * question.devices * rate),
            "memory_bytes": float(kept.memory[place]),
            "dollars_per_million_tokens": _dollars(question, time),
            self.criterion.column: self.criterion.value(question, float(kept.score[place])),
        }

    def shares(self) -> dict[str, float]:
        """What the best plan's time is due to; nothing after an interruption, as its structure is not compiled then."""
        return self.winner.shares() if self.whole else {}

    def alternatives(self) -> list[Alternative]:
        """The nearest to the best plan; none after an interruption, when the nearest may not have been seen."""
        from .explain import alternatives

        return alternatives(self) if self.whole else []

    def _model_flops(self, question: SearchQuestion, fields: dict[str, Any]) -> float:
        """FLOPs of a step of the model, which differ between plans only where they train different parts of it."""
        parts = tuple(fields[name] for name in TRAINED_PARTS)
        if parts not in self._flops:
            alike = all(self.winner_fields[name] == fields[name] for name in TRAINED_PARTS)
            run = self.winner if alike else question.run(**fields)
            self._flops[parts] = run.value("model_flops") if self.whole else _flops_of(run)
        return self._flops[parts]

    @cached_property
    def _flops(self) -> dict[tuple[Any, ...], float]:
        return {}


def _flops_of(run: Run) -> float:
    """FLOPs of a step of the model alone: of a structure whose step is not compiled, as whoever interrupts waits."""
    from ..codegen.interpret import floats
    from ..codegen.interpret import run as interpret
    from ..codegen.lower import lower
    from ..formulas.language.symbols import UNITS
    from ..train.model_flops import model_flops

    program = lower([], {"model_flops": model_flops(run.structure)}, stand_for=UNITS)
    values = interpret(program, {name: run.bound[name][0] for name in program.inputs}, floats())
    return float(values[program.outputs["model_flops"]])


def _dollars(question: SearchQuestion, time: float) -> float | None:
    """Of a million tokens; None on a system without a price, or where they differ by the joules of each plan."""
    try:
        rate = question.device_second
    except InputError:
        return None
    return None if rate is None else rate * question.devices * time / (question.batch * question.sequence) * 1e6


def answer_search(
    model: Model,
    system: System,
    *,
    devices: int | Sequence[int],
    batch: int,
    sequence: int,
    top: int = 10,
    by: str = "time",
    max_memory: float | str | None = None,
    require: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    pareto: bool = False,
    prune: bool = True,
    values: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    dask: str | Scheduler | None = None,
    software: SoftwareLimits | None = None,
    stack: str | os.PathLike[str] | None = None,
) -> Answer:
    """Search the plans; the arguments are those of `symperf.search`, and what a software runs.

    Returns:
        An answer, which has no plan where none fits.

    Raises:
        InputError: bad input; constraints that contradict each other.
    """
    if positive_integer("top", top) > MOST:
        raise InputError(f"top: found {top}, expected at most {MOST}")
    required, most = check_required(require or {}), check_limits(limits or {})
    runs = software or SoftwareLimits()
    runs.check(required)
    memory, given = _memory(max_memory), check_values(values or {})
    found = []
    with on_cluster(dask) as remote:
        for count in _counts(devices):
            question = SearchQuestion(
                model,
                system,
                count,
                positive_integer("batch", batch),
                positive_integer("sequence", sequence),
                given,
                required,
                most,
                memory,
                by_energy(by, system, given),
                runs,
                stack,
            )
            ranking = criterion(by, question)
            contradictions(question)
            found.append(_find(question, top, pareto=pareto, prune=prune, progress=progress, remote=remote))
            if not found[-1].whole:
                break
    return Answer(tuple(found), ranking, top)


def answer(model: Model, system: System, **question: Any) -> Answer:
    """As `searched`, but an answer has a plan, unless the search was interrupted.

    Raises:
        InputError: bad input; constraints that contradict each other; devices that no plan can use.
        Unreachable: no plan fits; the message says what would.
    """
    answer = answer_search(model, system, **question)
    if answer.whole and not answer.feasible:
        from .failures import fail

        fail(answer.found)
    return answer


def _find(
    question: SearchQuestion, top: int, *, pareto: bool, prune: bool, progress: Progress | None, remote: Remote | None
) -> Found:
    with collection_paused():
        space = lay_out_space(question)
    tally = Tally(top + SPARE, [made.length for made in space.tables], len(space.combinations), front=pareto)
    whole = evaluate(space, tally, prune=prune and not pareto, progress=progress, remote=remote)
    return Found(space, tally, whole)


def _counts(devices: int | Iterable[int]) -> list[int]:
    single = isinstance(devices, str | bytes) or not hasattr(devices, "__iter__")
    several = [devices] if single else list(devices)  # type: ignore[arg-type]
    if not several:
        raise InputError("devices: found none, expected a number or several")
    return sorted({positive_integer("devices", count) for count in several})


def _memory(given: float | str | None) -> float | None:
    if given is None:
        return None
    from ..systems.quantities import check_number

    return check_number(given, SYSTEM_SYMBOLS["memory_capacity"], "max_memory")


def sort_keywords(words: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Keywords by what they are: limits (`max_tp`), fields of the plan, and values of symbols.

    >>> sort_keywords({"max_tp": 8, "zero": 1, "memory_efficiency": 0.9})
    ({'tp': 8}, {'zero': 1}, {'memory_efficiency': 0.9})
    """
    limits = {name.removeprefix("max_"): value for name, value in words.items() if name.startswith("max_")}
    require = {name: value for name, value in words.items() if name in Plan.names()}
    rest = {n: v for n, v in words.items() if n not in require and not n.startswith("max_")}
    return limits, require, rest
