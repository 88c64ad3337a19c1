"""One plan of an answer as numbers with names: of a load, of a static batch, or of two pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...serve.point import describe
from ...spending.prices import rent_of
from . import spent
from .batch import BatchPlan
from .pools import Pair
from .space import SERVED, TRIED

if TYPE_CHECKING:
    from ...serve.point import LoadPoint
    from ...serve.serving import Serving
    from ...serve.state import State
    from .load import LoadPlan
    from .space import InferenceQuestion

NEARLY = 1 - 1e-6
"""Of the capacity, at which waits have no bound."""
MEASURES = (
    "devices",
    "requests_per_s",
    "output_tokens_per_s",
    "output_tokens_per_s_per_device",
    "interactivity",
    "tokens_per_dollar",
    "cost_per_million_output_tokens",
    "cost_per_million_input_tokens",
    "joules_per_output_token",
    "time_s",
    "ttft_s",
    "tpot_s",
    "concurrency",
    "limit",
    "memory_bytes",
)
"""What is told of a plan. Interactivity: tokens that a user sees in a second, 1 over the time of a later token."""
SCORES = {
    "latency": ("time_s", -1.0),
    "cost": ("cost_per_million_output_tokens", -1.0),
    "joules": ("joules_per_output_token", -1.0),
    "tokens_per_joule": ("joules_per_output_token", -1.0),
}
"""What plans are ranked by, and its sign where more is better, by order; by throughput for each device otherwise."""
JOULES = ("joules", "tokens_per_joule")
"""Orders for which joules are counted."""
FORMATS = ("precision", "kv_precision")
"""Fields that both pools have alike."""
POOL_FIELDS = ("tp", "pp", "dp", "ep", "chunk", "devices", "load")


@dataclass(frozen=True, eq=False)
class PlanRecord:
    """A plan of an answer.

    Attributes:
        plan: it.
        score: higher is better.
        fields: of the plan; of pools the formats only.
        measures: by name, all of `MEASURES`.
        pools: of each pool, its `POOL_FIELDS` and what was opened; empty where there is one.
    """

    plan: LoadPlan | BatchPlan | Pair
    score: float
    fields: dict[str, Any]
    measures: dict[str, Any]
    pools: dict[str, dict[str, Any]]

    def nested(self) -> dict[str, Any]:
        """All of it; pools as objects, null where there are none."""
        fields = dict.fromkeys((*TRIED, *SERVED)) | self.fields
        return {**fields, **self.measures, "pools": self.pools or None}

    def flat(self) -> dict[str, Any]:
        """All of it in one level."""
        found = {name: value for name, value in self.nested().items() if name != "pools"}
        for pool in ("prefill", "decode"):
            found |= {f"{pool}_{name}": self.pools.get(pool, {}).get(name) for name in POOL_FIELDS}
        return found

    def shares(self) -> dict[str, float]:
        """What resources the time of a mean iteration at the load, or of the whole batch, is due to.

        Of pools, those of the decode iterations.
        """
        if isinstance(self.plan, BatchPlan):
            return self.plan.run.shares()
        if isinstance(self.plan, Pair):
            return self._decode_shares(self.plan)
        serving = self.plan.serving
        found = serving.shares(_point(self.plan))
        assert found is not None
        return found

    @staticmethod
    def _decode_shares(pair: Pair) -> dict[str, float]:
        from ...serve.program import compile_iterations

        serving = pair.decode.serving
        groups = min(float(serving.plan.pp), 1 + pair.decoding())
        values = {"decoding": (1 + pair.decoding()) / groups, "step_tokens": 1.0, "groups_in_flight": groups}
        resources = compile_iterations(serving.run.structure).resources
        return serving.evaluators[0].shares("decode", resources, **values)


def record(
    plan: LoadPlan | BatchPlan | Pair, by: str, *, joules: bool = False, loop: tuple[int, State] | None = None
) -> PlanRecord:
    """The record of a plan, scored by what is asked for.

    Args:
        plan: it.
        by: what plans are ranked by.
        joules: whether joules are counted, whatever plans are ranked by.
        loop: requests in flight in a replica, and its state; by default those of the largest load within the limits.
    """
    if isinstance(plan, BatchPlan):
        fields, measures, pools = _of_batch(plan)
        rate, sequences = measures["requests_per_s"], plan.fields["batch"] / plan.fields["dp"]
    elif isinstance(plan, Pair):
        fields, measures, pools = _of_pair(plan)
        rate, sequences = plan.most, plan.decoding()
    else:
        fields, measures, pools = _of_load(plan, loop)
        rate, sequences = measures["requests_per_s"], measures["decoding"] / plan.replicas
    question = plan.question
    later = measures["tpot_s"]
    measures["interactivity"] = None if later is None else 1 / later
    paid = spent.dollars(plan, rate, sequences)
    if paid is not None:
        measures["cost_per_million_output_tokens"] = paid / question.generate * 1e6
        measures["cost_per_million_input_tokens"] = paid / question.prompt * 1e6
    if joules or by in JOULES:
        measures["joules_per_output_token"] = spent.joules(plan, rate, sequences) / question.generate
    name, sign = SCORES.get(by, ("output_tokens_per_s_per_device", 1.0))
    measures = {key: measures[key] for key in MEASURES}
    return PlanRecord(plan, sign * measures[name], fields, measures, pools)


Parts = tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]
"""Fields, measures and pools of a record."""


def _of_batch(plan: BatchPlan) -> Parts:
    measures = _rates(plan.question, plan.rate / plan.question.generate)
    measures |= {
        "time_s": plan.time,
        "ttft_s": plan.first,
        "tpot_s": plan.later,
        "concurrency": float(plan.fields["batch"]),
        "memory_bytes": plan.memory,
    }
    return plan.fields, measures, {}


def _of_load(plan: LoadPlan, loop: tuple[int, State] | None) -> Parts:
    at_capacity = loop is None and plan.largest.state is None
    if loop is None:
        point, rate = _point(plan), plan.low
    else:
        rate = loop[1].load * plan.replicas
        point = describe(plan.serving, rate, loop[1], plan.replicas)
    assert point.concurrency is not None
    held = point.concurrency if loop is None else float(loop[0] * plan.replicas)
    measures = _rates(plan.question, rate)
    measures |= {
        "time_s": None if at_capacity else point.e2e_s,
        "ttft_s": None if at_capacity else point.ttft_s,
        "tpot_s": point.tpot_s,
        "concurrency": held,
        "decoding": point.decoding,
        "limit": plan.largest.limit if loop is None else None,
        "memory_bytes": _bytes_held(plan.serving, held / plan.replicas),
    }
    return plan.fields, measures, {}


def _of_pair(pair: Pair) -> Parts:
    question = pair.question
    measures = _rates(question, pair.most)
    first, later = pair.latencies()
    prefill, decode = pair.prefill, pair.decode
    most = decode.load(pair.transfer)
    assert prefill.largest.load is not None
    assert most is not None
    loads = {"prefill": prefill.largest.load * prefill.replicas, "decode": most[0]}
    held = decode.serving.plan.dp * pair.decoding()
    measures |= {
        "time_s": None if first is None else first + later * (question.generate - 1),
        "ttft_s": first,
        "tpot_s": later,
        "concurrency": held,
        "limit": min(loads, key=lambda pool: loads[pool]),
        "memory_bytes": max(_bytes_held(decode.serving, pair.decoding()), _bytes_held(prefill.serving, 1.0)),
    }
    pools = {
        name: {**{key: value for key, value in fields.items() if key not in FORMATS}, "devices": n, "load": loads[name]}
        for name, fields, n in (
            ("prefill", prefill.fields, prefill.question.devices),
            ("decode", decode.fields, decode.question.devices),
        )
    }
    formats = {name: prefill.fields[name] for name in FORMATS}
    return formats, measures, pools


def _rates(question: InferenceQuestion, load: float) -> dict[str, Any]:
    """Measures that follow from requests a second; the others without a value."""
    rate = load * question.generate
    price = rent_of(question.base.system)
    found: dict[str, Any] = dict.fromkeys(MEASURES)
    return found | {
        "devices": question.devices,
        "requests_per_s": load,
        "output_tokens_per_s": rate,
        "output_tokens_per_s_per_device": rate / question.devices,
        "tokens_per_dollar": None if price is None else rate / (question.devices * price.value),
    }


def _point(plan: LoadPlan) -> LoadPoint:
    """The answers at the largest load, or next to it where that is the capacity."""
    part = NEARLY if plan.largest.state is None else 1.0
    return plan.serving.point(plan.low * part)


def _bytes_held(serving: Serving, sequences: float) -> float:
    """Bytes on the fullest device with so many sequences in a replica, or as many as it holds."""
    length = serving.draft_length
    memory = serving.memory(length)
    return memory["fixed"] + memory["sequence"] * min(max(1.0, sequences), serving.limit(length))
