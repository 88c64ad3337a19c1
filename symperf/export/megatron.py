"""Plans as flags of Megatron-LM.

Both orders of ranks are Megatron-LM's: tensor, context, (expert,) data, pipeline, or by a flag pipeline before data.
"""

from __future__ import annotations

from typing import Final

from ..plans.offloaded_inputs import inputs_of
from ..plans.plan_fields import WIDE_PRECISIONS
from ..plans.recompute_modules import modules_of
from ..plans.structure import COUNTED
from .lines import flags as text
from .sheet import ExportRequest, Option, Sheet, fractions

__all__ = ["OPTIONS", "sheet", "text"]

ARGUMENTS: Final = (
    "https://github.com/NVIDIA/Megatron-LM/blob/000c4ac24f61159c138b0975def722c65245983c/megatron/training/arguments.py"
)
"""The command line of Megatron-LM at the commit that the names were read in."""
OFFLOADING: Final = (
    "https://github.com/NVIDIA/Megatron-LM/blob/524af67dbe4e2c23483dba637f76bf3a8061aa01/"
    "docs/user-guide/features/fine_grained_activation_offloading.md"
)
"""Its guide to inputs that the host keeps."""

OPTIONS: Final[dict[str, Option]] = {
    "--tensor-model-parallel-size": Option(int, ARGUMENTS),
    "--pipeline-model-parallel-size": Option(int, ARGUMENTS),
    "--context-parallel-size": Option(int, ARGUMENTS),
    "--cp-comm-type": Option(str, ARGUMENTS, ("p2p", "a2a", "allgather")),
    "--num-virtual-stages-per-pipeline-rank": Option(int, ARGUMENTS),
    "--pipeline-model-parallel-layout": Option(str, ARGUMENTS),
    "--account-for-embedding-in-pipeline-split": Option(bool, ARGUMENTS),
    "--account-for-loss-in-pipeline-split": Option(bool, ARGUMENTS),
    "--decoder-first-pipeline-num-layers": Option(int, ARGUMENTS),
    "--decoder-last-pipeline-num-layers": Option(int, ARGUMENTS),
    "--expert-model-parallel-size": Option(int, ARGUMENTS),
    "--expert-tensor-parallel-size": Option(int, ARGUMENTS),
    "--moe-token-dispatcher-type": Option(str, ARGUMENTS, ("allgather", "alltoall", "flex")),
    "--use-tp-pp-dp-mapping": Option(bool, ARGUMENTS),
    "--sequence-parallel": Option(bool, ARGUMENTS),
    "--fp32-residual-connection": Option(bool, ARGUMENTS),
    "--micro-batch-size": Option(int, ARGUMENTS),
    "--global-batch-size": Option(int, ARGUMENTS),
    "--seq-length": Option(int, ARGUMENTS),
    "--recompute-granularity": Option(str, ARGUMENTS, ("full", "selective")),
    "--recompute-method": Option(str, ARGUMENTS, ("uniform", "block")),
    "--recompute-num-layers": Option(int, ARGUMENTS),
    "--recompute-modules": Option(list, ARGUMENTS),
    "--use-distributed-optimizer": Option(bool, ARGUMENTS),
    "--use-megatron-fsdp": Option(bool, ARGUMENTS),
    "--data-parallel-sharding-strategy": Option(
        str, ARGUMENTS, ("no_shard", "optim", "optim_grads", "optim_grads_params")
    ),
    "--ckpt-format": Option(str, ARGUMENTS, ("torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor")),
    "--num-distributed-optimizer-instances": Option(int, ARGUMENTS),
    "--overlap-grad-reduce": Option(bool, ARGUMENTS),
    "--overlap-param-gather": Option(bool, ARGUMENTS),
    "--no-overlap-p2p-communication": Option(bool, ARGUMENTS),
    "--bf16": Option(bool, ARGUMENTS),
    "--fp16": Option(bool, ARGUMENTS),
    "--fp8-format": Option(str, ARGUMENTS, ("e4m3", "hybrid")),
    "--fp4-format": Option(str, ARGUMENTS, ("e2m1",)),
    "--attention-backend": Option(str, ARGUMENTS, ("flash", "fused", "unfused", "local", "auto")),
    "--attention-dropout": Option(float, ARGUMENTS),
    "--hidden-dropout": Option(float, ARGUMENTS),
    "--cross-entropy-loss-fusion": Option(bool, ARGUMENTS),
    "--make-vocab-size-divisible-by": Option(int, ARGUMENTS),
    "--optimizer": Option(str, ARGUMENTS, ("adam", "sgd", "muon", "dist_muon")),
    "--optimizer-cpu-offload": Option(bool, ARGUMENTS),
    "--cpu-offloading-num-layers": Option(int, ARGUMENTS),
    "--fine-grained-activation-offloading": Option(bool, OFFLOADING),
    "--offload-modules": Option(list, OFFLOADING),
}
CONTEXT: Final = {"ring": "p2p", "all-to-all": "a2a", "all-gather": "allgather"}
SCHEDULES: Final = ("1f1b", "interleaved")


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made = Sheet("megatron", OPTIONS)
    for part in (_degrees, _stages, _experts, _batch, _recomputation, _sharding, _overlap, _numbers, _loss, _optimizer):
        part(made, asked)
    return made


def _degrees(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    made.put("--tensor-model-parallel-size", plan.tp, "tp")
    made.put("--pipeline-model-parallel-size", plan.pp, "pp")
    made.put("--context-parallel-size", plan.cp, "cp")
    if plan.cp > 1:
        made.put("--cp-comm-type", CONTEXT[plan.cp_kind], "cp_kind")
    made.cover("cp_kind")
    if plan.sequence_parallel:
        made.put("--sequence-parallel", True, "sequence_parallel")
    if plan.fp32_residual:
        made.put("--fp32-residual-connection", True, "fp32_residual")
    _rank_order(made, asked)
    made.note("dp", f"{plan.dp} follows from a world size of {plan.devices} (torchrun's nodes x processes)")


def _rank_order(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.rank_order == "tp-cp-dp-pp":
        return
    made.put("--use-tp-pp-dp-mapping", True, "rank_order")
    routed = asked.model is not None and asked.model.architecture.routed
    if routed and plan.pp > 1 and plan.ep * plan.effective_expert_tp != plan.tp * plan.cp:
        made.note(
            "rank_order", "Megatron-LM wants as many replicas of experts as of the rest: ep x expert_tp = tp x cp"
        )


def _stages(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.effective_schedule in SCHEDULES:
        made.cover("schedule")
    else:
        made.note("schedule", f"{plan.schedule} is not in Megatron-LM, which runs 1f1b and interleaved stages")
    if plan.vpp > 1:
        made.put("--num-virtual-stages-per-pipeline-rank", plan.vpp, "vpp")
    if plan.stages == "given":
        assert plan.first_stage_layers is not None
        assert plan.last_stage_layers is not None
        made.put("--decoder-first-pipeline-num-layers", plan.first_stage_layers, "first_stage_layers")
        made.put("--decoder-last-pipeline-num-layers", plan.last_stage_layers, "last_stage_layers")
    elif plan.uneven_stages or plan.layout is not None:
        _uneven(made, asked)
    elif plan.account_for != "none":
        embedding, loss = COUNTED[plan.account_for]
        if embedding:
            made.put("--account-for-embedding-in-pipeline-split", True, "account_for")
        if loss:
            made.put("--account-for-loss-in-pipeline-split", True, "account_for")
    made.cover("layout", "account_for")


def _uneven(made: Sheet, asked: ExportRequest) -> None:
    """The layout of stages that differ: E, t, m and L are the embedding, a layer, a module and the loss."""
    layout = asked.stage_layout
    if layout is not None:
        made.put("--pipeline-model-parallel-layout", layout, "uneven_stages", "layout")
    elif asked.model is None:
        made.note("uneven_stages", "--pipeline-model-parallel-layout needs the number of layers; give a model")
    made.cover("uneven_stages")


def _experts(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.ep > 1:
        made.put("--expert-model-parallel-size", plan.ep, "ep")
        made.put("--moe-token-dispatcher-type", "alltoall", "ep")
    if plan.ep > 1 or plan.expert_tp is not None:
        made.put("--expert-tensor-parallel-size", plan.effective_expert_tp, "expert_tp")
    if plan.node_limit is not None:
        made.note(
            "node_limit",
            f"set --moe-router-group-topk {plan.node_limit}, and --moe-router-num-groups to the nodes of a group",
        )


def _batch(made: Sheet, asked: ExportRequest) -> None:
    made.put("--micro-batch-size", asked.micro_batch, "micro_batch")
    if asked.batch is not None:
        made.put("--global-batch-size", asked.batch)
    if asked.sequence is not None:
        made.put("--seq-length", asked.sequence)


def _recomputation(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.effective_recompute == "none":
        return
    made.put("--recompute-granularity", plan.effective_recompute, "recompute")
    if plan.effective_recompute == "selective":
        _modules(made, asked)
        return
    some = plan.recompute_layers
    if some is not None and some % plan.vpp:
        made.note("recompute_layers", f"{some} of a stage are no whole number of each of its {plan.vpp} virtual stages")
        some = None
    made.put("--recompute-method", "uniform" if some is None else "block", "recompute")
    made.put("--recompute-num-layers", 1 if some is None else some // plan.vpp, "recompute", "recompute_layers")


def _modules(made: Sheet, asked: ExportRequest) -> None:
    """The modules of selective recomputation; operations one by one are no module."""
    plan = asked.plan
    if plan.recompute_modules == "op":
        made.note("recompute_modules", "op: Megatron-LM computes modules again, not every second product")
        return
    names = modules_of(plan.recompute, plan.recompute_modules)
    made.put("--recompute-modules", list(names), "recompute", "recompute_modules")


def _sharding(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.zero:
        made.put("--use-distributed-optimizer", True, "zero")
    if plan.zero > 1:
        made.put("--use-megatron-fsdp", True, "zero")
        made.put("--data-parallel-sharding-strategy", "optim_grads" if plan.zero == 2 else "optim_grads_params", "zero")
        made.put("--ckpt-format", "fsdp_dtensor", "zero")
    if plan.zero and plan.zero_shards is not None:
        copies = plan.dp * plan.cp // plan.zero_shards
        made.put("--num-distributed-optimizer-instances", copies, "zero_shards")


def _overlap(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    gathers = plan.overlap_parameters if plan.zero in (1, 2) else plan.overlap_gather if plan.zero == 3 else 0.0
    if plan.overlap_dp or gathers:  # Megatron-LM refuses the second without the first
        made.put("--overlap-grad-reduce", True, "overlap_dp")
    if gathers:
        made.put("--overlap-param-gather", True, "overlap_parameters", "overlap_gather")
    if plan.overlap_dp:
        fractions(made, plan, "overlap_dp", reached=1.0)
    elif gathers:
        made.note("overlap_dp", "0 in the plan, but --overlap-param-gather needs --overlap-grad-reduce")
    for name, matters in (("overlap_parameters", plan.zero in (1, 2)), ("overlap_gather", plan.zero == 3)):
        if matters and getattr(plan, name):
            fractions(made, plan, name, reached=1.0)
    if plan.vpp > 1 and plan.overlap_pp:
        fractions(made, plan, "overlap_pp", reached=1.0)
    elif plan.vpp > 1 and plan.pp > 2:  # Megatron-LM refuses it for two stages, between which both ways are one pair
        made.put("--no-overlap-p2p-communication", True, "overlap_pp")
    elif plan.vpp > 1:
        made.note("overlap_pp", "0 in the plan, but Megatron-LM always hides transfers of two interleaved stages")
    elif plan.pp > 1 and plan.overlap_pp:
        made.note("overlap_pp", "Megatron-LM overlaps transfers between stages only of interleaved ones")
    made.cover("overlap_pp")
    if plan.tp > 1:
        fractions(made, plan, "overlap_tp", reached=1.0)
        made.note("overlap_tp", "needs CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment before Blackwell")
    made.cover("overlap_tp", "overlap_gather")


def _numbers(made: Sheet, asked: ExportRequest) -> None:
    precision = asked.precision
    if precision is None:
        made.note("precision", "left open by the plan; give a system, or set --bf16 or --fp16")
    elif precision in WIDE_PRECISIONS:
        made.note("precision", f"{precision}: Megatron-LM runs in 32 bits where neither --bf16 nor --fp16 is given")
    elif precision not in ("bf16", "fp16", "fp8", "fp4"):
        made.note("precision", f"{precision} is no format of training")
    else:
        made.put("--fp16" if precision == "fp16" else "--bf16", True, "precision")
    if precision == "fp8":
        made.put("--fp8-format", "hybrid", "precision")
    if precision == "fp4":
        made.put("--fp4-format", "e2m1", "precision")
    if asked.attention is None:
        made.note("attention", "left open by the plan; Megatron-LM chooses")
    else:
        made.put("--attention-backend", "flash" if asked.attention == "flash" else "unfused", "attention")
    if asked.dropout is None:
        made.note("dropout", "left open by the plan; Megatron-LM's default is 0.1")
    elif asked.dropout:
        made.note("dropout", "runs, at Megatron-LM's default of 0.1; set the model's rates")
    else:
        made.put("--attention-dropout", 0.0, "dropout")
        made.put("--hidden-dropout", 0.0, "dropout")


def _loss(made: Sheet, asked: ExportRequest) -> None:
    if asked.plan.vocab_multiple is not None:
        made.put("--make-vocab-size-divisible-by", asked.plan.vocab_multiple, "vocab_multiple")
    kind = asked.plan.loss
    if kind == "fused":
        made.put("--cross-entropy-loss-fusion", True, "loss")
    elif kind != "unfused":
        made.note("loss", f"{kind} is not in Megatron-LM, whose loss is unfused or fused")


def _optimizer(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    names = {"adam": "adam", "sgd-momentum": "sgd", "muon": "dist_muon" if plan.zero else "muon"}
    if plan.optimizer in names:
        made.put("--optimizer", names[plan.optimizer], "optimizer")
    else:
        nearest = "; --use-precision-aware-optimizer keeps moments in 8 bits" if plan.optimizer == "adam-8bit" else ""
        made.note("optimizer", f"{plan.optimizer} is not in Megatron-LM{nearest}")
    if inputs := inputs_of(plan.offloads):
        made.put("--fine-grained-activation-offloading", True, "offload")
        made.put("--offload-modules", list(inputs), "offload")
    for what in (each for each in plan.offloads if each not in inputs):
        if what == "optimizer":
            made.put("--optimizer-cpu-offload", True, "offload")
        elif what == "activations" and asked.layers is not None:
            made.put("--cpu-offloading-num-layers", -(-asked.layers // plan.pp), "offload")
        elif what == "activations":
            made.note("offload", "--cpu-offloading-num-layers needs the number of layers; give a model")
        else:
            made.note("offload", f"Megatron-LM has no option that keeps {what} on the host")
