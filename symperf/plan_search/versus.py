"""Why a plan that the user has in mind is not the best: term by term, or which rule refuses it, or what memory lacks.

The seconds of a breakdown's terms sum to the step time, so the differences between two plans' terms sum to the
difference of their times: each term says how much of it is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..plans.plan import Plan, attention_of
from ..plans.validity import BrokenRuleError
from ..train.binding import precision_of
from .request import check_required

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..runs.training_run import Run
    from .search import Answer, Found
    from .space import SearchQuestion

EQUAL = 1e-9
"""Relative difference of two times below which they are equal: a search rounds differently from a run."""


@dataclass(frozen=True)
class TermDifference:
    """A term of a breakdown in two plans.

    Attributes:
        name: its path; both plans' terms, or one's.
        winner: seconds of the winner's step that it is responsible for, or bytes of its memory.
        plan: the same of the other plan.
    """

    name: str
    winner: float
    plan: float

    @property
    def difference(self) -> float:
        """What the term adds to the other plan's step."""
        return self.plan - self.winner


@dataclass(frozen=True)
class Versus:
    """A plan against the best that a search found.

    Attributes:
        given: its fields that are not left at their defaults, with what the search holds at one value.
        devices: of the search whose best it is compared with.
        verdict: "refused", "does not fit", "slower", "equal", "faster" or "the best".
        reason: the rule's message, or what excludes a plan that could run from the search; empty if there is nothing
            to say.
        rule: the name of the rule that refuses it, if one with a name does.
        winner: the best plan.
        winner_time: seconds of its step.
        time: seconds of a step of the plan; None where it cannot run.
        memory: bytes on the fullest device; None where it cannot run.
        limit: bytes that the search allows on a device.
        terms: of the two step times, by how much they differ, largest first.
        memory_terms: of the two memories, in the same order.
    """

    given: Mapping[str, Any]
    devices: int
    verdict: str
    reason: str
    rule: str | None
    winner: Plan
    winner_time: float
    time: float | None
    memory: float | None
    limit: float
    terms: tuple[TermDifference, ...]
    memory_terms: tuple[TermDifference, ...]

    @property
    def difference(self) -> float | None:
        """Seconds by which a step is longer than the winner's; the differences of the terms sum to it."""
        return None if self.time is None else self.time - self.winner_time

    @property
    def missing(self) -> float:
        """Bytes that a device lacks for it."""
        return 0.0 if self.memory is None else max(self.memory - self.limit, 0.0)


def versus(answer: Answer, fields: Mapping[str, Any]) -> Versus:
    """Compare a plan with the best of a search.

    Args:
        answer: of the search; it has a plan.
        fields: of the plan. `dp`, if it is missing, fills the devices; a field that the search was asked to hold at one
            value has that value; all else is as in `symperf train`.

    Raises:
        InputError: an unknown field, or a value that no plan has.
    """
    checked = {name: values[0] for name, values in check_required(dict(fields)).items()}
    found = _search(answer, checked)
    question = found.question
    held = {name: values[0] for name, values in question.required.items() if len(values) == 1}
    given = {**question.software.usual, **held, **checked}
    _fill(given, question.devices)
    winner = question.run(**found.space.fields(found.tally.best.place[0]))
    try:
        plan = Plan(**given)
    except InputError as error:
        return _describe_refusal(given, error, found, winner)
    try:
        run = question.run(**given)
    except InputError as error:
        return _describe_refusal(given, error, found, winner, _other_devices(plan, question))
    if other := _other_devices(plan, question):
        return _describe_refusal(given, InputError(other), found, winner)
    return _compare(given, run, found, winner)


def _other_devices(plan: Plan, question: SearchQuestion) -> str:
    """What to say of a plan of other devices than those that are searched."""
    if plan.devices == question.devices:
        return ""
    return f"devices: tp x pp x dp x cp = {plan.devices}, but the search is of {question.devices}"


def _search(answer: Answer, fields: Mapping[str, Any]) -> Found:
    """The search of the plan's devices; if there is none, or the plan leaves them open, that of the best plan."""
    if "dp" in fields:
        devices = fields["dp"] * fields.get("tp", 1) * fields.get("pp", 1) * fields.get("cp", 1)
        for found in answer.found:
            if found.question.devices == devices and len(found.tally.best):
                return found
    return answer.best


def _fill(given: dict[str, Any], devices: int) -> None:
    if "dp" in given:
        return
    rest, left = divmod(devices, given.get("tp", 1) * given.get("pp", 1) * given.get("cp", 1))
    given["dp"] = rest if rest and not left else 1


def _limit(question: SearchQuestion) -> float:
    return min(question.capacity, question.capacity if question.max_memory is None else question.max_memory)


def _describe_refusal(given: Mapping[str, Any], error: InputError, found: Found, winner: Run, told: str = "") -> Versus:
    rule = error.rule if isinstance(error, BrokenRuleError) else None
    limit = _limit(found.question)
    time = winner.value("time")
    devices = found.question.devices
    return Versus(given, devices, "refused", told or str(error), rule, winner.plan, time, None, None, limit, (), ())


def _held(run: Run) -> dict[str, float]:
    """Bytes by name that sum to what a device must have."""
    return run.memory_terms() | {f"beside/{name}": size for name, size in run.reserved_parts().items()}


def _compare(given: Mapping[str, Any], run: Run, found: Found, winner: Run) -> Versus:
    time, best, memory, limit = run.value("time"), winner.value("time"), run.needed_bytes, _limit(found.question)
    if memory > limit:
        verdict = "does not fit"
    elif _meant(run.plan, found.question) == _meant(winner.plan, found.question):
        verdict = "the best"
    elif abs(time - best) <= EQUAL * best:
        verdict = "equal"
    else:
        verdict = "slower" if time > best else "faster"
    return Versus(
        given,
        found.question.devices,
        verdict,
        _outside(run.plan, found.question),
        None,
        winner.plan,
        best,
        time,
        memory,
        limit,
        _terms(_seconds(winner), _seconds(run)),
        _terms(_held(winner), _held(run)),
    )


def _seconds(run: Run) -> dict[str, float]:
    return {row.name: row.time_s for row in run.table()}


def _terms(winner: Mapping[str, float], plan: Mapping[str, float]) -> tuple[TermDifference, ...]:
    made = [TermDifference(name, winner.get(name, 0.0), plan.get(name, 0.0)) for name in {**winner, **plan}]
    return tuple(sorted(made, key=lambda term: (-abs(term.difference), term.name)))


def _meant(plan: Plan, question: SearchQuestion) -> dict[str, Any]:
    """The fields of a plan, with what it leaves open as the model and the system have it."""
    base = question.base
    return {name: getattr(plan, name) for name in Plan.names()} | {
        "schedule": plan.effective_schedule,
        "attention": attention_of(plan, base.model),
        "precision": precision_of(plan, base.system),
        "dropout": base.model.architecture.dropout if plan.dropout is None else plan.dropout,
        "expert_tp": plan.effective_expert_tp,
        "cp_kind": plan.cp_kind if plan.cp > 1 else None,
        "micro_batch": plan.micro_batch or 1,
    }


OPEN = ("precision", "dropout", "expert_tp")
"""Fields that a search leaves as the model and the system have them, unless asked for."""


def _outside(plan: Plan, question: SearchQuestion) -> str:
    """The fields whose values the search was not to try."""
    meant = _meant(plan, question)
    usual = _meant(Plan(**{name: getattr(plan, name) for name in Plan.names() if name not in OPEN}), question)
    outside = []
    for name, values in question.candidates.items():
        tried = [usual[name] if value is None and name in OPEN else value for value in values]
        if meant[name] not in tried and not (name == "cp_kind" and plan.cp == 1):
            some = f"{' or '.join(map(str, tried[:8]))}{' or ...' if len(tried) > 8 else ''}"
            outside.append(f"{name} = {meant[name]}, not {some}")
    return f"not searched: {'; '.join(outside)}" if outside else ""
