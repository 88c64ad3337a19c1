"""`symperf search --prompt ... --emit`: the best plan as what a server is started with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..export.serve import NEWEST, backend_of, check_server, emit_service, limits_of
from ..export.service import Service
from ..export.sheet import ExportRequest
from ..infer.stack import Stack
from ..models.catalogue import CATALOGUE
from ..plan_search.inference.batch import BatchPlan
from ..plan_search.inference.pools import Pair
from ..plan_search.inference.space import Software
from ..plans.plan import Plan

if TYPE_CHECKING:
    import argparse

    from ..export.emit import Emission
    from ..plan_search.inference.load import LoadPlan
    from ..plan_search.inference.pools import DecodePlan
    from ..plan_search.inference.records import PlanRecord
    from ..plan_search.inference.space import InferenceQuestion

INSIDE = "tp-cp-pp-dp"
"""Servers number the devices of a replica together."""


def software(options: argparse.Namespace) -> tuple[str, Software]:
    """The profile of the server that is asked for, and what it runs.

    Raises:
        InputError: no such server, or a profile of another software.
    """
    name = check_server(options.emit)
    stack = options.stack or NEWEST[name]
    backend = backend_of(name, Stack.load(stack).name)
    rules, caches = limits_of(backend)
    return stack, Software(backend, rules, caches, {"rank_order": INSIDE})


def emitted(found: PlanRecord, options: argparse.Namespace) -> Emission:
    """The best plan as the commands of a server, or as a deployment."""
    plan = found.plan
    question = plan.question
    if isinstance(plan, Pair):
        held = {"prefill": 1.0, "decode": plan.decoding()}
        pools: dict[str, LoadPlan | DecodePlan] = {"prefill": plan.prefill, "decode": plan.decode}
        parts = [_served(question, pool, options, held[role], role) for role, pool in pools.items()]
    elif isinstance(plan, BatchPlan):
        size = plan.fields["batch"] // plan.fields["dp"]
        chunk = plan.fields["micro_batch"] * question.prompt
        takes = plan.run.room().utilization
        parts = [_part(question, {**plan.fields, "chunk": chunk}, options, (size, 0.0, takes), None)]
    else:
        parts = [_served(question, plan, options, found.measures["concurrency"] / plan.replicas, None)]
    system = question.base.system
    node = int(system.value("scale_up_size")) if system.tiers else 1
    backend = question.software.name
    return emit_service(options.emit, backend, parts, node)


def _served(
    question: InferenceQuestion,
    plan: LoadPlan | DecodePlan,
    options: argparse.Namespace,
    decoding: float,
    role: str | None,
) -> ExportRequest:
    serving = plan.serving
    return _part(question, plan.fields, options, (serving.limit(0), decoding, serving.room(0).utilization), role)


def _part(
    question: InferenceQuestion,
    fields: dict[str, Any],
    options: argparse.Namespace,
    held: tuple[int, float, float],
    role: str | None,
) -> ExportRequest:
    """What a server runs; held are the sequences that a replica may hold and decodes, and its part of the memory."""
    limit, decoding, utilization = held
    plan = Plan(**{**question.software.fixed, **{name: fields[name] for name in Plan.names() if name in fields}})
    plan = plan if plan.micro_batch is None or plan.pp > 1 else Plan(**{**_fields(plan), "micro_batch": None})
    service = Service(
        hub_id(options.model),
        question.prompt,
        question.generate,
        limit,
        math.ceil(decoding),
        fields["chunk"] or question.prompt,
        fields["kv_precision"],
        role,
        "num_experts" in question.model.sizes,
        round(utilization, 6),
    )
    return ExportRequest(plan, question.model, question.system, service=service)


def _fields(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in Plan.names()}


def hub_id(model: str) -> str:
    """What a server is told of a model: its id on the hub where the catalogue knows it, else the path as given."""
    name = CATALOGUE.find(model)
    return model if name is None else CATALOGUE.entries[name]["hub_id"] or name
