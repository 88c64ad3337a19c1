"""The largest loads within limits of latency: the best plans without computing the load of all.

Times to tokens never fall with the load, so that a load at which a plan misses a limit is above its largest one, and
one at which it meets them is not. Each plan has an interval in which its largest load lies: from 0 to the capacity at
first. The plan that might serve most is looked at next, and its interval halved, until it is narrow; then its load is
computed as `symperf serve` does. The best plans are found once none of the others might serve more.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...common.errors import InputError
from ...plans.rule import BrokenRuleError
from ...serve.limits import Targets
from ..reasons import name_of
from ..tally import round_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...serve.limits import Largest
    from .shared import SharedSteady
    from .space import InferenceQuestion
    from .times import SearchedServing

Answer = TypeVar("Answer")
MEMORY = "does_not_fit"
MISSED = {"ttft": "ttft_out_of_reach", "tpot": "tpot_out_of_reach"}
NARROW = 1.05
"""Ends of an interval whose ratio is below this are near enough to compute the load."""
HALVINGS = 8
STEPS = 6
"""Steps towards a state before it is computed."""
SLACK = 1e-9
"""Relative difference of loads below which plans count as equal."""


@dataclass(eq=False)
class LoadPlan:
    """A plan that meets the limits for a request alone.

    Attributes:
        number: in the order of the space.
        question: with its devices.
        fields: of the plan.
        serving: of it.
        steady: the steady states of a replica.
        targets: of mean times.
        steps: decode steps for each later token.
        low: requests in a second at all replicas that it is known to serve.
        high: that it is known not to exceed.
        known: whether both are its largest load.
        halvings: of the interval.
    """

    number: int
    question: InferenceQuestion
    fields: dict[str, Any]
    serving: SearchedServing
    steady: SharedSteady
    targets: Targets
    steps: float
    low: float
    high: float
    known: bool = False
    halvings: int = 0

    @classmethod
    def of(
        cls,
        number: int,
        question: InferenceQuestion,
        fields: dict[str, Any],
        serving: SearchedServing,
        *,
        prefills: bool,
    ) -> LoadPlan:
        """A plan of which only the capacity is known; one that only prefills has no later tokens."""
        assert serving.steady is not None
        steady, targets, steps = serving.steady, serving.targets, serving.steps_per_token
        if prefills:
            steady, targets, steps = steady.prefilling, Targets(ttft=targets.ttft), 0.0
        high = steady.capacity.load * serving.plan.dp
        return cls(number, question, fields, serving, steady, targets, steps, 0.0, high)

    @property
    def replicas(self) -> int:
        """Of the plan."""
        return self.serving.plan.dp

    @property
    def most(self) -> float:
        """What a device might serve."""
        return self.high / self.question.devices

    @property
    def largest(self) -> Largest:
        """The largest load of a replica, as `symperf serve` finds it."""
        return self.steady.largest(self.targets, self.steps)

    def narrow(self, threshold: float) -> None:
        """Shorten the interval, or find the load where that is not worth while.

        Args:
            threshold: requests in a second above which a plan is among the best: above it or not is what matters.
        """
        if self.high <= self.low * NARROW or self.halvings >= HALVINGS:
            self.settle()
            return
        middle = (self.low + self.high) / 2
        if self.low < threshold * (1 - 2 * SLACK) < self.high:
            middle = threshold * (1 - 2 * SLACK)
        met = self._meets(middle / self.replicas)
        self.low, self.high = (middle, self.high) if met else (self.low, middle)
        self.halvings += 1

    def settle(self) -> None:
        """Find the load."""
        assert self.largest.load is not None
        self.low = self.high = self.largest.load * self.replicas
        self.known = True

    def _meets(self, load: float) -> bool:
        """Whether a replica serves a load within the limits.

        The first steps towards the state come from below, where iterations are shorter: one that is too long decides.
        """
        arrivals = 0.0
        for _ in range(STEPS if self.targets.tpot is not None else 0):
            iteration = self.steady._iterations_seen(arrivals)[-1]
            if self.targets.tpot is not None and iteration * self.steps > self.targets.tpot:
                return False
            arrivals = min(load * iteration / self.steady.engine.groups, self.steady.most_arrivals)
        state = self.steady.at_load(load)
        return state is not None and self.targets.missed(state, self.steps) is None


@dataclass
class Survey:
    """What becomes of every plan before its load is sought.

    Attributes:
        plans: that meet the limits for a request alone.
        considered: how many were looked at.
        feasible: how many fit and are within the limits.
        rejected: the others, by reason.
        examples: the message of the first of each reason that has one.
        first: least time to a first token of a request alone, of those that fit; None where none does.
        later: least time of a later token.
        least: bytes of memory that the smallest plan needs, and of a device.
        refusal: of the first plan that the rules allow and a single run refuses.
    """

    plans: list[LoadPlan] = field(default_factory=list)
    considered: int = 0
    feasible: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    first: float | None = None
    later: float | None = None
    least: tuple[float, float] | None = None
    refusal: str = ""

    def built(
        self, question: InferenceQuestion, fields: dict[str, Any], build: Callable[[dict[str, Any]], Answer]
    ) -> Answer | None:
        """What a plan's fields make, or None where a rule or a choice refuses them, which is counted."""
        if (rule := question.refusal(fields)) is not None:
            if rule.name not in self.examples:
                self.examples[rule.name] = str(BrokenRuleError.of(rule, question.rule_values(fields)))
            self.reject(rule.name)
            return None
        try:
            return build(fields)
        except InputError as error:
            self.refusal = self.refusal or str(error)
            reason = name_of(error, question.base.model.name)
            self.examples.setdefault(reason, str(error))
            self.reject(reason)
            return None

    def reject(self, reason: str) -> None:
        """Count a plan."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def see_memory(self, need: float, have: float) -> None:
        """Look at what a plan that does not fit needs."""
        self.least = min(self.least or (need, have), (need, have))

    def see_times(self, first: float | None, later: float | None) -> None:
        """Look at the times of a request alone."""
        known = [(self.first, first), (self.later, later)]
        self.first, self.later = (min((t for t in pair if t is not None), default=None) for pair in known)


def look(
    survey: Survey, question: InferenceQuestion, fields: dict[str, Any], serving: SearchedServing | None = None
) -> SearchedServing | None:
    """The serving system of a plan, or None where it cannot run or does not fit, which is counted.

    One that has been looked at before is counted alone.
    """
    survey.considered += 1
    if serving is not None:
        return serving
    serving = survey.built(question, fields, question.serving)
    if serving is None:
        return None
    if not serving.fits:
        memory = serving.memory(serving.draft_length)
        survey.see_memory(memory["fixed"] + memory["sequence"], serving.capacity_bytes)
        survey.reject(MEMORY)
        return None
    return serving


def add(survey: Survey, question: InferenceQuestion, fields: dict[str, Any]) -> None:
    """Look at one plan."""
    serving = look(survey, question, fields)
    if serving is None:
        return
    assert serving.steady is not None
    alone = serving.steady.alone
    steps = serving.steps_per_token
    survey.see_times(alone.first_token, alone.iteration * steps if question.generate > 1 else None)
    missed = serving.targets.missed(alone, steps)
    if missed is not None:
        survey.reject(MISSED[missed])
        return
    survey.feasible += 1
    survey.plans.append(LoadPlan.of(len(survey.plans), question, fields, serving, prefills=False))


def best(plans: Sequence[LoadPlan], top: int, tell: Callable[[], None] = lambda: None) -> list[LoadPlan]:
    """The plans that serve most for each device, best first; of equal ones, the first of the space.

    Args:
        plans: some plans; what is learnt of them is kept in them.
        top: how many are wanted.
        tell: called after each step.
    """
    heap = [(-plan.most, plan.number, plan) for plan in plans]
    heapq.heapify(heap)
    found: list[LoadPlan] = []
    while heap:
        plan = heap[0][2]
        if len(found) >= top and plan.most < found[top - 1].most * (1 - SLACK):
            break
        if plan.known:
            heapq.heappop(heap)
            found.append(plan)
            continue
        lows = heapq.nlargest(top, (each.low / each.question.devices for each in plans))
        plan.narrow(lows[-1] * plan.question.devices if len(lows) == top else 0.0)
        heapq.heapreplace(heap, (-plan.most, plan.number, plan))
        tell()
    return order_plans(found)[:top]


def best_by(
    plans: Sequence[LoadPlan], top: int, cost: Callable[[LoadPlan], float], tell: Callable[[], None] = lambda: None
) -> list[LoadPlan]:
    """The plans that cost least at their largest loads, each of which is computed; of equal ones, the first."""
    found = []
    for plan in plans:
        plan.settle()
        found.append((cost(plan), plan.number, plan))
        tell()
    return [plan for _, _, plan in sorted(found, key=lambda each: each[:2])[:top]]


def round_number(value: float) -> float:
    """A number from 0 to the digits to which plans are compared."""
    return float(round_values(np.array(value)))


def order_plans(plans: Sequence[LoadPlan]) -> list[LoadPlan]:
    """Plans whose load is known, best first."""
    return sorted((plan for plan in plans if plan.known), key=lambda plan: (-round_number(plan.most), plan.number))
