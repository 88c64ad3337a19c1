"""Static batches: every plan that fits is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .load import MEMORY, MISSED, round_number

if TYPE_CHECKING:
    from ...runs.inference_run import InferenceRun
    from .load import Survey
    from .space import InferenceQuestion


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """A plan that fits and is within the limits.

    Attributes:
        number: in the order of the space.
        question: with its devices.
        fields: of the plan.
        run: of it.
        time: seconds from the prompts to the last token.
        first: of them until the first token.
        later: mean seconds of each later token; None where there are none.
        rate: tokens in a second, all devices together.
        memory: bytes on the fullest device.
    """

    number: int
    question: InferenceQuestion
    fields: dict[str, Any]
    run: InferenceRun
    time: float
    first: float
    later: float | None
    rate: float
    memory: float

    def score(self, by: str) -> tuple[float, float, int]:
        """Lower is better; equal plans are ordered by memory, then as in the space."""
        value = self._value(by)
        sign = 1.0 if value >= 0 else -1.0
        return sign * round_number(abs(value)), round_number(self.memory), self.number

    def _value(self, by: str) -> float:
        match by:
            case "latency":
                return self.time
            case "cost":
                return self.run.cost().per_million_tokens
            case "joules" | "tokens_per_joule":
                return self.run.energy().per_token
        return -self.rate / self.question.devices


def try_plan(survey: Survey, question: InferenceQuestion, fields: dict[str, Any], number: int) -> BatchPlan | None:
    """A plan, or None where it cannot run, does not fit or misses a limit, which is counted."""
    survey.considered += 1
    run = survey.built(question, fields, question.inference)
    if run is None:
        return None
    memory, needed, capacity = run.memory_alone(), run.needed_alone(), run.value("capacity_bytes")
    if needed > capacity:
        survey.see_memory(needed, capacity)
        survey.reject(MEMORY)
        return None
    first = run.value("prefill")
    later = run.value("time_per_token") if run.generates and question.generate > 1 else None
    survey.see_times(first, later)
    for name, time, limit in (("ttft", first, question.ttft), ("tpot", later, question.tpot)):
        if limit is not None and time is not None and time > limit:
            survey.reject(MISSED[name])
            return None
    survey.feasible += 1
    return BatchPlan(number, question, fields, run, run.value("time"), first, later, run.value("tokens_per_s"), memory)
