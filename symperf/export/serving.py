"""What servers have in common: fields of a plan that only training has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plans.plan import FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .service import Service
    from .sheet import ExportRequest, Sheet

TRAINING = tuple(name for name, field in FIELDS.items() if field.inference in ("ignored", "refused"))


def training_only(made: Sheet, asked: ExportRequest) -> None:
    """Note what a server has no use for."""
    for name in TRAINING:
        value = getattr(asked.plan, name)
        if name not in made.covered and value != FIELDS[name].default:
            made.note(name, f"{value} is a choice of training")


def replica_by_replica(made: Sheet, asked: ExportRequest, server: str) -> None:
    """Note an order of ranks that puts replicas before stages: servers number the devices of a replica together."""
    plan = asked.plan
    if plan.rank_order != "tp-cp-pp-dp" and plan.pp > 1 and plan.dp > 1:
        made.note("rank_order", f"{server} numbers the devices of a replica together, as tp-cp-pp-dp does")
    made.cover("rank_order")


LAYOUTS = {
    "cp": "{cp} parts of a sequence ({cp_kind}): no option is set for them",
    "dcp": "caches shared by {dcp} devices: no option is set for that",
    "redundant_experts": "{redundant_experts} copies of experts: no option is set for them",
    "expert_exchange": "{expert_exchange}: no option is set for how tokens get to experts",
}
"""What is noted of layouts of sequences, caches and experts that no option says."""


def whole_context(made: Sheet, asked: ExportRequest) -> None:
    """Note what says how sequences and experts lie on devices in ways that no option is set for."""
    plan = asked.plan
    for name, text in LAYOUTS.items():
        if name not in made.covered and getattr(plan, name) != FIELDS[name].default:
            made.note(name, text.format_map(vars(plan)))
    if plan.cp > 1:
        made.cover("cp_kind")


def joint(asked: ExportRequest) -> bool:
    """Whether replicas of a served model deal its experts among all their devices."""
    plan = asked.plan
    over = plan.ep * plan.effective_expert_tp
    return asked.service is not None and asked.service.routed and plan.dp > 1 and over == plan.tp * plan.dp


def apart(asked: ExportRequest) -> bool:
    """Whether replicas of a served model with experts share none, so that each is a server."""
    return asked.service is not None and asked.service.routed and asked.plan.dp > 1 and not joint(asked)


def sixteen_bits(made: Sheet, service: Service, caches: Mapping[str, str], server: str) -> bool:
    """Whether a cache needs no option: it has 16 bits, or a format that the server has not, which is noted."""
    if service.kv_precision is not None and service.kv_precision not in caches:
        made.note("kv_precision", f"{service.kv_precision} in the plan; {server} has no such cache")
        return True
    return service.kv_precision is None or caches[service.kv_precision] == "auto"


def numbers(made: Sheet, asked: ExportRequest, types: Mapping[str, str], server: str) -> None:
    """The format of weights and products, for servers that have --dtype and quantize to FP8 on the fly."""
    precision = asked.precision
    if precision is None:
        made.note("precision", f"left open by the plan; {server} takes the checkpoint's")
    elif precision in types:
        made.put("--dtype", types[precision], "precision")
    elif precision == "fp8":
        made.put("--quantization", "fp8", "precision")
    else:
        made.note("precision", f"{precision} is what a quantized checkpoint says; {server} reads its configuration")


def filled_by_itself(made: Sheet, asked: ExportRequest, server: str, kernels: str) -> None:
    """Note what a server chooses itself, and what it has no use for."""
    plan = asked.plan
    if plan.micro_batch is not None:
        made.note("micro_batch", f"{plan.micro_batch} in the plan; {server} fills its pipeline itself")
    if plan.attention is not None:
        made.note("attention", f"{plan.attention} in the plan; {server} chooses {kernels}")
    replica_by_replica(made, asked, server)
    whole_context(made, asked)
    training_only(made, asked)
