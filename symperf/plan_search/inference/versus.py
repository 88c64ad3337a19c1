"""Why a plan that the user has in mind is not the best of a search for inference, and the fewest devices within a time.

The seconds that resources are responsible for sum to the time of a batch, or of a later token at the largest load; so
the differences between two plans' resources sum to the difference of their times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...analysis import Unreachable
from ...common.errors import InputError
from ..versus import EQUAL, TermDifference
from .batch import BatchPlan, try_plan
from .load import Survey, add
from .pools import Pair
from .reasons import reasons
from .records import record
from .request import check_fields
from .space import LAYOUT, InferenceQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .records import PlanRecord
    from .search import InferenceAnswer

VERDICTS = {
    "does_not_fit": "does not fit",
    **dict.fromkeys(("ttft_out_of_reach", "tpot_out_of_reach"), "misses a limit"),
}
"""Of plans that no rule refuses, by the reason for which a search leaves them out."""


@dataclass(frozen=True)
class InferenceVersus:
    """A plan against the best.

    Attributes:
        given: fields that were asked for.
        devices: of the search whose best it is compared with.
        verdict: "refused", "does not fit", "misses a limit", "worse", "equal", "better" or "the best".
        rule: the name of what refuses it; None where nothing does.
        reason: in words; empty where it can run.
        winner: the best plan.
        plan: it; None where it cannot run.
        terms: seconds of the time that `time_of` tells, by resource, by how much they differ, largest first.
    """

    given: Mapping[str, Any]
    devices: int
    verdict: str
    rule: str | None
    reason: str
    winner: PlanRecord
    plan: PlanRecord | None
    terms: tuple[TermDifference, ...]

    @property
    def behind(self) -> float | None:
        """How much worse than the best it is, as a part of the best's score; below 0 where it is better."""
        if self.plan is None:
            return None
        return (self.winner.score - self.plan.score) / abs(self.winner.score)


def time_of(found: PlanRecord) -> tuple[str, float]:
    """The time that the seconds of resources sum to: of a batch, of a later token, or of the first if it is alone."""
    for name in ("time_s",) if isinstance(found.plan, BatchPlan) else ("tpot_s", "ttft_s"):
        if (value := found.measures[name]) is not None:
            return name, float(value)
    return "ttft_s", math.nan


def versus(answer: InferenceAnswer, fields: Mapping[str, Any]) -> InferenceVersus:
    """Compare a plan with the best of a search.

    Args:
        answer: of the search; it has a plan.
        fields: of the plan. Degrees that are missing are 1, but for `dp`, which fills the devices, and a micro-batch
            is all that a replica has; all else is as in the best plan.

    Raises:
        InputError: an unknown field, a value that no plan has, or a best plan of two pools.
    """
    winner = answer.winner
    if isinstance(winner.plan, Pair):
        raise InputError("explain: the best plan is of two pools, expected a search without disaggregate")
    question = winner.plan.question
    given = {name: values[0] for name, values in check_fields(fields, batch=bool(question.batch)).items()}
    whole = {**winner.fields, **dict.fromkeys([*LAYOUT, "ep"], 1), **given}
    rest = question.devices // math.prod(whole[name] for name in LAYOUT if name != "dp")
    whole["dp"] = given.get("dp", max(rest, 1))
    if question.batch and "micro_batch" not in given:
        whole["micro_batch"] = max(1, whole["batch"] // whole["dp"])
    if math.prod(whole[name] for name in LAYOUT) != question.devices:
        product = " x ".join(LAYOUT)
        told = f"devices: {product} = {math.prod(whole[n] for n in LAYOUT)}, but the search is of {question.devices}"
        return InferenceVersus(given, question.devices, "refused", "devices", told, winner, None, ())
    survey = Survey()
    plan = _try(survey, question, whole)
    if plan is None:
        (reason,) = reasons(survey)
        told = reason.example or _missed(survey, question)
        verdict = VERDICTS.get(reason.name, "refused")
        return InferenceVersus(given, question.devices, verdict, reason.name, told, winner, None, ())
    made = record(plan, answer.by)
    return InferenceVersus(
        given, question.devices, _verdict(made, winner, whole), None, "", winner, made, _terms(winner, made)
    )


def _try(survey: Survey, question: InferenceQuestion, fields: dict[str, Any]) -> Any:
    if question.batch:
        return try_plan(survey, question, fields, 0)
    add(survey, question, fields)
    for plan in survey.plans:
        plan.settle()
        return plan
    return None


def _missed(survey: Survey, question: InferenceQuestion) -> str:
    """The least times of a plan that misses a limit."""
    times = (("TTFT", survey.first, question.ttft), ("TPOT", survey.later, question.tpot))
    return "; ".join(
        f"{name} {least:.4g} s, the limit {limit:.4g} s" for name, least, limit in times if least and limit is not None
    )


def _verdict(made: PlanRecord, winner: PlanRecord, fields: Mapping[str, Any]) -> str:
    if all(winner.fields.get(name) == value for name, value in fields.items()):
        return "the best"
    if abs(made.score - winner.score) <= EQUAL * abs(winner.score):
        return "equal"
    return "worse" if made.score < winner.score else "better"


def _terms(winner: PlanRecord, made: PlanRecord) -> tuple[TermDifference, ...]:
    parts = [{name: share * time_of(each)[1] for name, share in each.shares().items()} for each in (winner, made)]
    terms = [TermDifference(n, parts[0].get(n, 0.0), parts[1].get(n, 0.0)) for n in {**parts[0], **parts[1]}]
    return tuple(sorted(terms, key=lambda term: (-abs(term.difference), term.name)))


def fewest_devices(answer: InferenceAnswer, seconds: float) -> PlanRecord:
    """The fastest plan of a static batch on the fewest of the devices that were searched on which one is fast enough.

    Raises:
        InputError: no static batch was asked for.
        Unreachable: no plan is as fast.
    """
    if not answer.questions[0].batch:
        raise InputError("within: is of a static batch (batch), found none: requests that arrive have ttft and tpot")
    fastest = min(answer.plans, key=lambda plan: plan.time)
    enough = [plan for plan in answer.plans if plan.time <= seconds]
    if not enough:
        raise Unreachable(
            f"within: no batch takes at most {seconds:g} s on the devices that were searched; the fastest takes "
            f"{fastest.time:.4g} s on {fastest.question.devices}",
            seconds,
            fastest.time,
        )
    return record(min(enough, key=lambda plan: (plan.question.devices, plan.time)), answer.by)
