"""`symperf.search_inference`: the best plans to serve a model, for the largest load within limits or a static batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ...infer.stack import DEFAULT
from ...models.draft_heads import draft_of
from ...plans.arguments import load_model, load_system
from ...plans.plan import positive_integer
from ..request import check_mapping, check_values
from ..search import MOST, _counts, _memory
from .batch import BatchPlan, try_plan
from .front import Front, check_axes, front
from .load import Survey, add, best, best_by
from .pools import Division, Pair, best_pairs, divisions
from .records import JOULES, PlanRecord, record
from .request import check_batch, check_fields, check_most, check_order, check_question
from .space import InferenceQuestion, Software
from .spent import rented

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ...models.model import Model
    from ...systems.system import System

Progress = Callable[[int, int], None]


@dataclass(eq=False)
class InferenceAnswer:
    """The best plans, and what became of the others.

    Attributes:
        questions: one for each number of devices.
        by: what plans are ranked by.
        top: plans asked for.
        survey: counts of plans.
        plans: that can run, fit and are within the limits.
        pools: counts of the pools that prefill and of those that decode; None where they were not asked for.
        records: the best, best first.
        front: the Pareto front; None where it was not asked for.
        whole: whether all was seen.
    """

    questions: tuple[InferenceQuestion, ...]
    by: str
    top: int
    survey: Survey = field(default_factory=Survey)
    plans: list[Any] = field(default_factory=list)
    pools: tuple[Survey, Survey] | None = None
    records: list[PlanRecord] = field(default_factory=list)
    front: Front | None = None
    whole: bool = True

    @property
    def feasible(self) -> int:
        """Plans that can run, fit, and are within the limits, for a request alone where a load is sought."""
        return self.survey.feasible

    @property
    def rejected(self) -> dict[str, int]:
        """Plans that are not, by reason, most first."""
        return sort_counts(self.survey)

    @property
    def winner(self) -> PlanRecord:
        """The best plan."""
        return self.records[0]

    @cached_property
    def alternatives(self) -> list[tuple[str, PlanRecord]]:
        """For each field the best plan with another value there than the best has, nearest first.

        Of single plans only; none where pools are best.
        """
        mine = self.winner.plan
        if isinstance(mine, Pair):
            return []
        found = []
        for name in mine.fields:
            others = [plan for plan in self.plans if plan.fields[name] != mine.fields[name]]
            if others:
                found.append((name, record(self._ranked(others, 1)[0], self.by)))
        return sorted(found, key=lambda each: -each[1].score)

    def _ranked(self, plans: Sequence[Any], top: int, tell: Callable[[], None] = lambda: None) -> list[Any]:
        if self.questions[0].batch:
            return sorted(plans, key=lambda plan: plan.score(self.by))[:top]
        if self.by in JOULES or (self.by == "cost" and not rented(self.questions[0])):
            return best_by(plans, top, lambda plan: -record(plan, self.by).score, tell)
        return best(plans, top, tell)


def sort_counts(survey: Survey) -> dict[str, int]:
    """Reasons of a survey with how many plans each refused, most first."""
    return dict(sorted(survey.rejected.items(), key=lambda item: (-item[1], item[0])))


def answer_search(
    model: Model,
    system: System,
    *,
    devices: int | Sequence[int],
    prompt: int,
    generate: int,
    ttft: float | None = None,
    tpot: float | None = None,
    batch: int | Sequence[int] | None = None,
    by: str | None = None,
    top: int = 10,
    disaggregate: bool = False,
    stack: str | os.PathLike[str] = DEFAULT,
    max_memory: float | str | None = None,
    require: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    pareto: bool = False,
    axes: Sequence[str] | None = None,
    software: Software | None = None,
    draft: Model | None = None,
    acceptance: float | Sequence[float] | None = None,
    progress: Progress | None = None,
) -> InferenceAnswer:
    """Search the plans; the arguments are those of `symperf.search_inference`, and a software that runs them.

    Returns:
        An answer, which has no records where no plan is within the limits.

    Raises:
        InputError: bad input; constraints that contradict each other.
    """
    batches = check_batch(batch)
    required = check_fields(require or {}, batch=bool(batches or "batch" in (require or {})))
    batches = required.pop("batch", batches)
    most = check_most(limits or {}, batch=bool(batches))
    given = check_values(values or {})
    if (memory := _memory(max_memory)) is not None:
        given["memory_capacity"] = min(memory, system.value("memory_capacity"))
    if positive_integer("top", top) > MOST:
        raise InputError(f"top: found {top}, expected at most {MOST}")
    runs = software or Software()
    accepted = acceptance if acceptance is None or isinstance(acceptance, int | float) else tuple(acceptance)
    of_load = prompt, generate, ttft, tpot, batches, stack
    limited = given, required, most, runs, draft, accepted
    questions = tuple(InferenceQuestion(model, system, n, *of_load, *limited) for n in _counts(devices))
    for question in questions:
        check_question(question, disaggregate=disaggregate, front=pareto)
    answer = InferenceAnswer(questions, check_order(by, questions[0]), top)
    along = check_axes(axes, questions[0]) if pareto else None
    if axes is not None and not pareto:
        raise InputError("axes: are those of a Pareto front, found none asked for (pareto)")
    pairs: list[Pair] = []
    divided: list[Division] = []
    chosen: list[Any] | None = None
    try:
        _look(answer, progress)
        chosen = answer._ranked(answer.plans, top)
        if disaggregate:
            answer.pools = Survey(), Survey()
            divided = _divide(questions, answer.pools, progress)
            best_pairs(divided, top, pairs)
        if along is not None:
            answer.front = front(along, answer.plans, divided, answer.by)
    except KeyboardInterrupt:
        answer.whole = False
        if chosen is None:
            known = [plan for plan in answer.plans if isinstance(plan, BatchPlan) or plan.known]
            likely = known or sorted(answer.plans, key=lambda plan: (-plan.low, -plan.most))[:1]
            chosen = answer._ranked(likely, top)
    answer.records = sorted((record(each, answer.by) for each in (*chosen, *pairs)), key=lambda each: -each.score)[:top]
    return answer


def _look(answer: InferenceAnswer, progress: Progress | None) -> None:
    space = [(question, fields) for question in answer.questions for fields in question.choices()]
    for done, (question, fields) in enumerate(space):
        if question.batch:
            plan = try_plan(answer.survey, question, fields, done)
            answer.plans += [] if plan is None else [plan]
        else:
            add(answer.survey, question, fields)
            answer.plans = answer.survey.plans
        if progress is not None:
            progress(done + 1, len(space))


def _divide(
    questions: Sequence[InferenceQuestion], surveys: tuple[Survey, Survey], progress: Progress | None
) -> list[Division]:
    """Every division of the devices of every question."""
    total = sum(question.devices - 1 for question in questions)
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return [division for question in questions for division in divisions(question, surveys, tell)]


def answer_inference(model: Model, system: System, **question: Any) -> InferenceAnswer:
    """As `answer_search`, but an answer has a plan, unless the search was interrupted.

    Raises:
        InputError: bad input; constraints that contradict each other; devices that no plan can use.
        Unreachable: nothing fits, or no plan is within the limits; the message names what is nearest.
    """
    found = answer_search(model, system, **question)
    if found.whole and not found.records:
        from .failures import fail

        fail(found)
    return found


def search_inference(
    model: Model | str,
    system: System | str,
    *,
    devices: int | Sequence[int],
    prompt: int,
    generate: int,
    ttft: float | None = None,
    tpot: float | None = None,
    batch: int | Sequence[int] | None = None,
    by: str | None = None,
    top: int = 10,
    disaggregate: bool = False,
    stack: str | os.PathLike[str] = DEFAULT,
    max_memory: float | str | None = None,
    require: Mapping[str, Any] | None = None,
    pareto: bool = False,
    axes: Sequence[str] | None = None,
    draft: Model | str | os.PathLike[str] | None = None,
    speculate: str | None = None,
    acceptance: float | Sequence[float] | None = None,
    **words: Any,
) -> pd.DataFrame:
    """The best plans to serve a model, of all that are legal.

    Args:
        model: what runs, or its name or file.
        system: what it runs on, or its name or file.
        devices: how many, all of them used; several numbers are searched and ranked together, for each device.
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        ttft: longest mean time to the first token, in seconds.
        tpot: longest mean time of each later token, in seconds.
        batch: sequences of a static batch, one number or several; without it, requests arrive at random, and plans are
            ranked by the largest load within `ttft` and `tpot`.
        by: "throughput" (default without a batch), "latency" (default with one), "tokens_per_dollar", "cost" (dollars
            of a million output tokens), "tokens_per_joule" or "joules" (of an output token).
        top: plans to return.
        disaggregate: also divide the devices into two pools, one that prefills and one that decodes.
        stack: name of a serving software's profile, or the path of one.
        max_memory: bytes on a device that a plan may use, or a text with a unit; by default its capacity.
        require: values that a field may take, one or a list: `tp`, `pp`, `dp`, `ep`, `precision`, `kv_precision`,
            `chunk`, and with a batch `micro_batch` and `batch`; of a server `max_num_seqs`, `memory_utilization` and
            `draft_length` (0: no draft).
        pareto: return the Pareto front, and not the `top`; limits of latency may then be left out.
        axes: of the front, some of `front.AXES`; by default throughput of a device and interactivity of a user.
        draft: a draft model or a head's file, whose lengths are tried, and no draft beside them.
        speculate: the way of drafting, as in `symperf.serving`.
        acceptance: of drafted tokens, as in `symperf.serving`.
        words: limits such as `max_tp=8`, required fields such as `precision="bf16"`, values of symbols.

    Returns:
        A row a plan, best first; the columns are described in `docs/search.md`. `attrs` counts the plans `considered`,
        `feasible` and `rejected` (by reason), and has the `shares` of the best.

    Raises:
        InputError: bad input; constraints that contradict each other; devices that no plan can use.
        Unreachable: nothing fits, or no plan is within the limits; the message names what is nearest.
        KeyboardInterrupt: the search was interrupted.
    """
    import pandas as pd

    from .space import FIELDS

    limits = {name.removeprefix("max_"): words.pop(name) for name in list(words) if name.startswith("max_")}
    fields = {name: words.pop(name) for name in list(words) if name in FIELDS}
    loaded = load_model(model)
    found = answer_inference(
        loaded,
        load_system(system),
        devices=devices,
        prompt=prompt,
        generate=generate,
        ttft=ttft,
        tpot=tpot,
        batch=batch,
        by=by,
        top=top,
        disaggregate=disaggregate,
        stack=stack,
        max_memory=max_memory,
        require={**check_mapping("require", require or {}), **fields},
        limits=limits,
        values=words,
        pareto=pareto,
        axes=axes,
        draft=draft_of(loaded, draft, speculate),
        acceptance=acceptance,
    )
    if not found.whole:
        raise KeyboardInterrupt  # a table does not show that it is of a part
    table = pd.DataFrame([each.flat() for each in (found.front.records if found.front else found.records)])
    table.attrs = {
        "considered": found.survey.considered,
        "feasible": found.feasible,
        "rejected": found.rejected,
        "shares": found.winner.shares(),
    }
    return table
