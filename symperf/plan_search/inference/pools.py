"""Prefill and decode on devices of their own: every division of the devices, and the best pair of plans for each.

A pool of n devices has any plan that uses n devices; both pools hold weights and cache in the same formats. A pair
serves the smaller of what its pools do: L = min(L_p, L_d). L_d falls with the seconds that a prompt's cache takes from
one to the other, which are those of the pool whose devices hold larger parts. As with loads of single plans, L_p has an
interval, and the pair that might serve most is looked at next.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ...serve.pools import _decoding_at, _token_time
from .load import MISSED, SLACK, LoadPlan, Survey, look, round_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from .space import InferenceQuestion
    from .times import SearchedServing


@dataclass(eq=False)
class DecodePlan:
    """A plan of devices that only decode.

    Attributes:
        question: with its devices.
        fields: of the plan.
        serving: of it.
        transfer: seconds to receive a prompt's cache.
        loads: requests in a second at all replicas, and sequences of one, by seconds of transfer; None out of reach.
    """

    question: InferenceQuestion
    fields: dict[str, Any]
    serving: SearchedServing
    transfer: float
    loads: dict[float, tuple[float, float] | None] = field(default_factory=dict)

    def load(self, transfer: float) -> tuple[float, float] | None:
        """What it serves where a prompt's cache takes so many seconds."""
        if transfer not in self.loads:
            assert self.serving.steady is not None
            generate, tpot = self.serving.steady.engine.generate, self.question.tpot
            found = self.serving.steady.decode_load(None if tpot is None else tpot - transfer / (generate - 1))
            self.loads[transfer] = found and (found[0] * self.serving.plan.dp, found[1])
        return self.loads[transfer]


@dataclass(eq=False)
class Pair:
    """Two pools.

    Attributes:
        prefill: the plan of one.
        decode: that of the other.
        most: requests in a second that they might serve.
    """

    prefill: LoadPlan
    decode: DecodePlan
    most: float

    @property
    def transfer(self) -> float:
        """Seconds to send a prompt's cache."""
        sent = self.prefill.serving.transfer_s
        assert sent is not None
        return max(sent, self.decode.transfer)

    @property
    def question(self) -> InferenceQuestion:
        """With the devices of both pools."""
        devices = self.prefill.question.devices + self.decode.question.devices
        return changed(self.prefill.question, devices=devices)

    def decoding(self) -> float:
        """Sequences that one replica decodes at the load."""
        assert self.decode.serving.steady is not None
        found = self.decode.load(self.transfer)
        assert found is not None
        return _decoding_at(self.decode.serving.steady.engine, self.most / self.decode.serving.plan.dp, found[1])

    def latencies(self) -> tuple[float | None, float]:
        """Mean times to the first token, and of each later one, at the load; no first where it is the capacity."""
        engine = self.decode.serving.steady
        assert engine is not None
        state = self.prefill.steady.at_load(self.most / self.prefill.replicas)
        later = _token_time(engine.engine, self.decoding()) + self.transfer / (engine.engine.generate - 1)
        return None if state is None else state.first_token, later


@dataclass(eq=False)
class Division:
    """A division of the devices, with formats.

    Attributes:
        number: in the order of the space.
        devices: of both pools.
        prefill: plans of the devices that prefill.
        decode: plans of those that decode.
    """

    number: int
    devices: int
    prefill: list[LoadPlan]
    decode: list[DecodePlan]

    def best(self) -> Pair | None:
        """The pair that might serve most; None where no two go together within the limits."""
        first: dict[float, LoadPlan] = {}
        for plan in self.prefill:
            sent = plan.serving.transfer_s
            assert sent is not None
            if sent not in first or plan.high > first[sent].high:
                first[sent] = plan
        found: Pair | None = None
        for sent, plan in first.items():
            for other in self.decode:
                load = other.load(max(sent, other.transfer))
                if load is not None and (found is None or min(plan.high, load[0]) > found.most):
                    found = Pair(plan, other, min(plan.high, load[0]))
        return found


def divisions(question: InferenceQuestion, surveys: tuple[Survey, Survey], tell: Callable[[], None]) -> list[Division]:
    """Every division of the devices in two pools that have plans.

    Args:
        question: with all devices.
        surveys: of plans that prefill and of plans that decode, which are counted there.
        tell: called after each pool.
    """
    prefill: dict[tuple[int, Any, Any], list[LoadPlan]] = {}
    decode: dict[tuple[int, Any, Any], list[DecodePlan]] = {}
    for devices in range(1, question.devices):
        pool = changed(question, devices=devices)
        chunks = pool.candidates["chunk"]
        for fields in pool.choices():
            key = devices, fields["precision"], fields["kv_precision"]
            serving = _require_network(surveys[0], pool, fields)
            if serving is not None and (one := _prefill(surveys[0], pool, fields, serving)) is not None:
                prefill.setdefault(key, []).append(one)
            if fields["chunk"] != min(chunks):
                continue
            again = look(surveys[1], pool, fields, serving)
            if again is not None and (two := _decode(surveys[1], pool, fields, again)) is not None:
                decode.setdefault(key, []).append(two)
        tell()
    found: list[Division] = []
    for (devices, *formats), plans in prefill.items():
        others = decode.get((question.devices - devices, formats[0], formats[1]))
        if others:
            found.append(Division(len(found), question.devices, plans, others))
    return found


def _prefill(
    survey: Survey, pool: InferenceQuestion, fields: dict[str, Any], serving: SearchedServing
) -> LoadPlan | None:
    plan = LoadPlan.of(survey.considered, pool, fields, serving, prefills=True)
    alone = plan.steady.alone
    survey.see_times(alone.first_token, None)
    if plan.targets.missed(alone, 0.0) is not None:
        survey.reject(MISSED["ttft"])
        return None
    survey.feasible += 1
    return plan


def _decode(
    survey: Survey, pool: InferenceQuestion, fields: dict[str, Any], serving: SearchedServing
) -> DecodePlan | None:
    assert serving.transfer_s is not None
    assert serving.steady is not None
    engine = serving.steady.engine
    plan = DecodePlan(pool, {**fields, "chunk": None}, serving, serving.transfer_s)
    survey.see_times(None, _token_time(engine, 0.0) + plan.transfer / (engine.generate - 1))
    if plan.load(plan.transfer) is None:
        survey.reject(MISSED["tpot"])
        return None
    survey.feasible += 1
    return plan


def _require_network(survey: Survey, pool: InferenceQuestion, fields: dict[str, Any]) -> SearchedServing | None:
    """A plan that fits, on a system with a network."""
    serving = look(survey, pool, fields)
    if serving is not None and serving.transfer_s is None:
        raise InputError(f"disaggregate: system {pool.system.name} describes no network, over which caches would go")
    return serving


def best_pairs(given: list[Division], top: int, pairs: list[Pair]) -> None:
    """Put the best pair of each division that is among the best into a list, best first.

    The list holds those that are found, whenever the search for others is interrupted.
    """
    heap = [(-pair.most / each.devices, each.number, pair) for each in given if (pair := each.best()) is not None]
    heapq.heapify(heap)
    by_number = {each.number: each for each in given}
    found: list[tuple[float, int, Pair]] = []
    while heap:
        most, number, pair = heap[0]
        if len(found) >= top and -most < -found[top - 1][0] * (1 - SLACK):
            break
        if pair.prefill.known or pair.prefill.low >= pair.most:
            heapq.heappop(heap)
            found.append((most, number, pair))
            found.sort(key=lambda each: (-round_number(-each[0]), each[1]))
            pairs[:] = [each for _, _, each in found[:top]]
            continue
        pair.prefill.narrow(0.0)
        again = by_number[number].best()
        assert again is not None
        heapq.heapreplace(heap, (-again.most / by_number[number].devices, number, again))
