"""Plans as the JSON configuration of DeepSpeed. JSON has no comments, so notes are told beside the text."""

from __future__ import annotations

import json
from typing import Final

from ..plans.plan_fields import WIDE_PRECISIONS
from .lines import nest_tables
from .sheet import ExportRequest, Option, Sheet, fractions

PAGE: Final = (
    "https://github.com/deepspeedai/DeepSpeed/blob/00376da49967bc6a15d70a550200ac67277b1fb4/docs/_pages/config-json.md"
)
"""The page of DeepSpeed's configuration at the commit that the names were read in."""

OPTIONS: Final[dict[str, Option]] = {
    "train_batch_size": Option(int, PAGE),
    "train_micro_batch_size_per_gpu": Option(int, PAGE),
    "gradient_accumulation_steps": Option(int, PAGE),
    "optimizer.type": Option(str, PAGE, ("Adam", "Muon")),
    "bf16.enabled": Option(bool, PAGE),
    "fp16.enabled": Option(bool, PAGE),
    "zero_optimization.stage": Option(int, PAGE, (0, 1, 2, 3)),
    "zero_optimization.overlap_comm": Option(bool, PAGE),
    "zero_optimization.offload_optimizer.device": Option(str, PAGE, ("cpu", "nvme")),
    "zero_optimization.offload_param.device": Option(str, PAGE, ("cpu", "nvme")),
    "tensor_parallel.autotp_size": Option(int, PAGE),
    "tensor_parallel.tp_overlap_comm": Option(bool, PAGE),
    "expert_parallel.enabled": Option(bool, PAGE),
    "expert_parallel.autoep_size": Option(int, PAGE),
    "activation_checkpointing.cpu_checkpointing": Option(bool, PAGE),
    "activation_checkpointing.partition_activations": Option(bool, PAGE),
}
OPTIMIZERS: Final = {"adam": "Adam", "muon": "Muon"}


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made = Sheet("deepspeed", OPTIONS)
    for part in (_batch, _sharding, _degrees, _pipeline, _model, _numbers):
        part(made, asked)
    return made


def text(made: Sheet) -> str:
    """One JSON object."""
    return json.dumps(nest_tables(made.settings), indent=2) + "\n"


def _batch(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    made.put("train_micro_batch_size_per_gpu", asked.micro_batch, "micro_batch")
    if asked.batch is not None:
        made.put("train_batch_size", asked.batch)
        made.put("gradient_accumulation_steps", asked.batch // (plan.dp * asked.micro_batch))
    made.note("dp", f"{plan.dp} follows from the number of processes, {plan.devices}")


def _sharding(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    made.put("zero_optimization.stage", plan.zero, "zero")
    if plan.zero and plan.overlap_dp:
        made.put("zero_optimization.overlap_comm", True, "overlap_dp")
        fractions(made, plan, "overlap_dp", reached=1.0)
    elif plan.zero:
        made.put("zero_optimization.overlap_comm", False, "overlap_dp")
    if plan.zero == 3:
        fractions(made, plan, "overlap_gather", reached=1.0)
    made.cover("overlap_gather")
    for what in plan.offloads:
        if what == "optimizer" and plan.zero:
            made.put("zero_optimization.offload_optimizer.device", "cpu", "offload")
        elif what == "weights" and plan.zero == 3:
            made.put("zero_optimization.offload_param.device", "cpu", "offload")
        elif what == "activations" and plan.effective_recompute != "none":
            made.put("activation_checkpointing.cpu_checkpointing", True, "offload")
        else:
            needs = {"optimizer": "zero above 0", "weights": "zero = 3", "activations": "recomputation"}.get(what)
            without = f"DeepSpeed has no key that keeps {what} on the host"
            told = f"{what} on the host needs {needs}" if needs else without
            made.note("offload", told)


def _degrees(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.tp > 1:
        made.put("tensor_parallel.autotp_size", plan.tp, "tp")
        made.put("tensor_parallel.tp_overlap_comm", plan.overlap_tp > 0, "overlap_tp")
        if 0 < plan.overlap_tp < 1:
            fractions(made, plan, "overlap_tp", reached=1.0)
    made.cover("overlap_tp")
    if plan.ep > 1:
        made.put("expert_parallel.enabled", True, "ep")
        made.put("expert_parallel.autoep_size", plan.ep, "ep")
        if plan.effective_expert_tp > 1:
            made.note("expert_tp", f"{plan.effective_expert_tp} within an expert: DeepSpeed accepts 1 only")
        made.cover("expert_tp")
    if plan.cp > 1:
        where = (
            "the degree of Ulysses is an argument in Python"
            if plan.cp_kind == "all-to-all"
            else "only Ulysses is there"
        )
        made.note("cp", f"{plan.cp} parts of a sequence ({plan.cp_kind}) are not in the configuration: {where}")
        made.cover("cp_kind")


def _pipeline(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.pp == 1:
        made.cover("schedule")
        return
    made.note("pp", f"{plan.pp} stages are not in the configuration: PipelineModule takes num_stages in Python")
    if plan.effective_schedule == "1f1b":
        made.cover("schedule")
    else:
        made.note("schedule", f"{plan.effective_schedule} is not in DeepSpeed, which runs 1f1b")
    if plan.rank_order != "tp-cp-dp-pp":
        made.note("rank_order", f"{plan.rank_order} needs a topology of your own, which PipelineModule takes in Python")
    if plan.zero > 1:
        made.note("zero", f"DeepSpeed refuses stage {plan.zero} with a pipeline")


def _model(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.effective_recompute != "none":
        some = "" if plan.recompute_layers is None else f", {plan.recompute_layers} layers of a stage"
        made.put("activation_checkpointing.partition_activations", False, "recompute")
        made.note(
            "recompute", f"{plan.effective_recompute}{some}: the model's code calls deepspeed.checkpointing.checkpoint"
        )
        made.cover("recompute_layers")
    made.note("attention", f"{asked.attention or 'open'} in the plan; the model's code decides")
    if asked.dropout is not None:
        made.note("dropout", f"{'runs' if asked.dropout else 'none'} in the plan; the model's code decides")


def _numbers(made: Sheet, asked: ExportRequest) -> None:
    plan, precision = asked.plan, asked.precision
    if precision is None:
        made.note("precision", "left open by the plan; give a system, or set bf16 or fp16")
    elif precision in WIDE_PRECISIONS:
        made.note("precision", f"{precision}: DeepSpeed runs in 32 bits where neither bf16 nor fp16 is enabled")
    elif precision in ("bf16", "fp16"):
        made.put(f"{precision}.enabled", True, "precision")
    else:
        made.put("bf16.enabled", True, "precision")
        made.note("precision", f"{precision} products are the model's code; DeepSpeed keeps the rest in bf16")
    if plan.optimizer in OPTIMIZERS:
        made.put("optimizer.type", OPTIMIZERS[plan.optimizer], "optimizer")
    else:
        made.note(
            "optimizer", f"{plan.optimizer} is not among DeepSpeed's own; its page says that others come from torch"
        )
