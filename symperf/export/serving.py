"""What servers have in common: fields of a plan that only training has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plans.plan import Plan

if TYPE_CHECKING:
    from .sheet import ExportRequest, Sheet

TRAINING = (
    "recompute",
    "recompute_layers",
    "sequence_parallel",
    "zero",
    "zero_shards",
    "vpp",
    "schedule",
    "uneven_stages",
    "first_stage_layers",
    "last_stage_layers",
    "node_limit",
    "overlap_tp",
    "overlap_dp",
    "overlap_ep",
    "overlap_gather",
    "overlap_parameters",
    "dropout",
    "optimizer",
    "offload",
)


def training_only(made: Sheet, asked: ExportRequest) -> None:
    """Note what a server has no use for."""
    for name in TRAINING:
        value = getattr(asked.plan, name)
        if value != Plan.__dataclass_fields__[name].default:
            made.note(name, f"{value} is a choice of training")


def replica_by_replica(made: Sheet, asked: ExportRequest, server: str) -> None:
    """Note an order of ranks that puts replicas before stages: servers number the devices of a replica together."""
    plan = asked.plan
    if plan.rank_order != "tp-cp-pp-dp" and plan.pp > 1 and plan.dp > 1:
        made.note("rank_order", f"{server} numbers the devices of a replica together, as tp-cp-pp-dp does")
    made.cover("rank_order")


def whole_context(made: Sheet, asked: ExportRequest) -> None:
    """Note parts of a sequence, which are modelled in training only."""
    plan = asked.plan
    if plan.cp > 1:
        made.note("cp", f"{plan.cp} parts of a sequence ({plan.cp_kind}) are a choice of training here")
        made.cover("cp_kind")
