"""Loads that an inference's layout serves, with what a request then waits for: computed when a page is made.

The steady state of serving is a solution that is sought, no program; so a page holds its points for the lengths that it
begins with and for figures as the data sheets have them, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..infer.stack import DEFAULT
from ..serve.point import describe
from ..serve.request import ServingRequest
from ..serve.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System

PARTS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96)
"""Prompts that arrive in an iteration, over those at the capacity: a state is a closed form of them, and no load of
which they would have to be sought."""
COLUMNS = ("load", "ttft", "tpot", "tokens_per_s_per_device", "concurrency")
"""Of a point: requests a second of one replica, seconds, seconds, tokens generated, requests of a replica in flight."""


def serve_points(
    model: Model, system: System, plan: Plan, lengths: tuple[int, int], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Points from a light load to nearly the capacity, for one replica; or `reason`, why there are none.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how a replica is laid out, with as many replicas as must run together.
        lengths: tokens of each prompt, and tokens generated for each.
        options: stack and format of the cache.
    """
    prompt, generate = lengths
    chosen = {"stack": options.get("stack", DEFAULT), "kv_precision": options.get("kv_precision")}
    try:
        serving = Serving(model, system, plan, ServingRequest(prompt, generate), **chosen)
        steady = serving.steady
    except InputError as error:
        return {"reason": str(error)}
    if steady is None:
        return {"reason": f"not one sequence of {prompt} + {generate} tokens fits in memory"}
    replicas = plan.dp
    states = [steady.at_arrivals(part * steady.capacity.arrivals) for part in PARTS]
    points = [
        describe(serving, state.load * replicas, state, replicas)
        for state in states
        if state.load < steady.capacity.load
    ]
    return {
        "limit": steady.capacity.limit,
        "capacity": steady.capacity.load,
        "points": [
            [
                each.load / replicas,
                each.ttft_s,
                each.tpot_s,
                each.output_tokens_per_s_per_device,
                None if each.concurrency is None else each.concurrency / replicas,
            ]
            for each in points
        ],
    }
