"""Plans as a configuration file of torchtitan, in the TOML of its versions up to 0.2."""

from __future__ import annotations

import json
from typing import Final

from ..plans.structure import COUNTED
from .lines import comments, nest_tables
from .sheet import ExportRequest, Option, Sheet, fractions

CONFIG: Final = "https://github.com/pytorch/torchtitan/blob/6404b932421f5ce382e7dac5ad381b2c17b1373c/torchtitan/config/job_config.py"
"""The configuration of torchtitan at the commit that the names were read in."""

OPTIONS: Final[dict[str, Option]] = {
    "model.converters": Option(list, CONFIG),
    "optimizer.name": Option(str, CONFIG, ("AdamW",)),
    "training.local_batch_size": Option(int, CONFIG),
    "training.global_batch_size": Option(int, CONFIG),
    "training.seq_len": Option(int, CONFIG),
    "training.enable_cpu_offload": Option(bool, CONFIG),
    "training.mixed_precision_param": Option(str, CONFIG, ("bfloat16", "float32")),
    "parallelism.data_parallel_replicate_degree": Option(int, CONFIG),
    "parallelism.data_parallel_shard_degree": Option(int, CONFIG),
    "parallelism.fsdp_reshard_after_forward": Option(str, CONFIG, ("default", "always", "never")),
    "parallelism.tensor_parallel_degree": Option(int, CONFIG),
    "parallelism.pipeline_parallel_degree": Option(int, CONFIG),
    "parallelism.pipeline_parallel_schedule": Option(str, CONFIG, ("1F1B", "GPipe", "Interleaved1F1B")),
    "parallelism.pipeline_parallel_microbatch_size": Option(int, CONFIG),
    "parallelism.pipeline_parallel_layers_per_stage": Option(int, CONFIG),
    "parallelism.pipeline_parallel_first_stage_less_layers": Option(int, CONFIG),
    "parallelism.pipeline_parallel_last_stage_less_layers": Option(int, CONFIG),
    "parallelism.context_parallel_degree": Option(int, CONFIG),
    "parallelism.context_parallel_rotate_method": Option(str, CONFIG, ("allgather", "alltoall")),
    "parallelism.expert_parallel_degree": Option(int, CONFIG),
    "activation_checkpoint.mode": Option(str, CONFIG, ("selective", "full", "none")),
    "activation_checkpoint.selective_ac_option": Option(str, CONFIG),
}
SCHEDULES: Final = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
ROTATE: Final = {"ring": "alltoall", "all-gather": "allgather"}


def sheet(asked: ExportRequest) -> Sheet:
    """The settings."""
    made = Sheet("torchtitan", OPTIONS)
    for part in (_replicas, _degrees, _stages, _batch, _layers, _numbers):
        part(made, asked)
    return made


def text(made: Sheet) -> str:
    """The file: tables under comments."""
    lines = comments(made)
    for table, values in nest_tables(made.settings).items():
        lines += ["", f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _replicas(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    shards = 1 if plan.zero == 0 else plan.dp
    if plan.zero and plan.zero_shards is not None:
        if plan.zero_shards % plan.cp or plan.dp % (plan.zero_shards // plan.cp):
            made.note("zero_shards", f"{plan.zero_shards} are no whole number of the cp = {plan.cp} parts; not set")
        else:
            shards = plan.zero_shards // plan.cp
    made.put("parallelism.data_parallel_replicate_degree", plan.dp // shards, "dp", "zero_shards")
    made.put("parallelism.data_parallel_shard_degree", shards, "dp", "zero")
    if plan.zero:
        made.put("parallelism.fsdp_reshard_after_forward", "always" if plan.zero == 3 else "never", "zero")
    if plan.zero == 1:
        made.note("zero", "torchtitan shards gradients with the optimizer state, as zero = 2 does: that is what is set")
    if plan.zero == 0 and plan.cp > 1:
        made.note("zero", f"torchtitan shards the state over the {plan.cp} parts of a sequence all the same")
    for name, matters in (("overlap_dp", True), ("overlap_parameters", plan.zero in (1, 2))):
        if matters and plan.dp * plan.cp > 1:
            fractions(made, plan, name, reached=1.0)
        made.cover(name)
    if plan.zero == 3:
        fractions(made, plan, "overlap_gather", reached=1.0)
    made.cover("overlap_gather")


def _degrees(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    made.put("parallelism.tensor_parallel_degree", plan.tp, "tp")
    if plan.tp > 1:
        made.cover("sequence_parallel")
        if not plan.sequence_parallel:
            made.note("sequence_parallel", "torchtitan's tensor parallelism includes it, and no option turns it off")
        fractions(made, plan, "overlap_tp", reached=0.0)
    made.cover("overlap_tp")
    made.put("parallelism.context_parallel_degree", plan.cp, "cp")
    if plan.cp > 1 and plan.cp_kind in ROTATE:
        made.put("parallelism.context_parallel_rotate_method", ROTATE[plan.cp_kind], "cp_kind")
    elif plan.cp > 1:
        made.note("cp_kind", f"{plan.cp_kind} (of heads) is not in torchtitan, which exchanges keys and values")
    made.cover("cp_kind")
    if plan.ep > 1:
        made.put("parallelism.expert_parallel_degree", plan.ep, "ep")
        if plan.effective_expert_tp > 1:
            made.note("expert_tp", f"{plan.effective_expert_tp} within an expert: this version deals experts whole")
    if plan.effective_expert_tp == plan.tp:
        made.cover("expert_tp")


def _stages(made: Sheet, asked: ExportRequest) -> None:
    plan, layers = asked.plan, asked.layers
    made.put("parallelism.pipeline_parallel_degree", plan.pp, "pp")
    if plan.effective_schedule not in SCHEDULES:
        made.note("schedule", f"{plan.schedule} (one stage per device) is not among the schedules of torchtitan")
    elif plan.pp > 1:
        made.put("parallelism.pipeline_parallel_schedule", SCHEDULES[plan.effective_schedule], "schedule")
    made.cover("schedule", "uneven_stages", "first_stage_layers", "last_stage_layers", "vpp")
    if plan.pp == 1:
        return
    if plan.layout is not None:
        made.note("layout", "name the modules of each stage in parallelism.module_fqns_per_model_part")
        return
    made.cover("account_for")
    if plan.uneven_stages:
        made.note("uneven_stages", "torchtitan deals layers so by itself: stages differ by one at most")
    fewer = COUNTED[plan.account_for] if plan.stages != "given" else _fewer(made, asked)
    made.put("parallelism.pipeline_parallel_first_stage_less_layers", fewer[0], "first_stage_layers")
    made.put("parallelism.pipeline_parallel_last_stage_less_layers", fewer[1], "last_stage_layers")
    if plan.vpp > 1 and layers is not None:
        count, dealt = plan.pp * plan.vpp, layers + sum(fewer)
        each = -(-dealt // count)
        if -(-dealt // each) == count:
            made.put("parallelism.pipeline_parallel_layers_per_stage", each, "vpp")
        elif plan.vpp > 2:  # two a device are the default
            made.note("vpp", f"no number of layers a stage gives {count} stages; name the modules of each")
    elif plan.vpp > 1:
        made.note("vpp", "parallelism.pipeline_parallel_layers_per_stage needs the number of layers; give a model")


def _fewer(made: Sheet, asked: ExportRequest) -> tuple[int, int]:
    """Layers that the first and the last stage have less than the others."""
    plan, first, last = asked.plan, asked.plan.first_stage_layers, asked.plan.last_stage_layers
    if first is None or last is None:
        return 0, 0
    if plan.pp > 2 and asked.layers is not None:
        middle = (asked.layers - first - last) // (plan.pp - 2)
        if first <= middle >= last:
            return middle - first, middle - last
    made.note(
        "first_stage_layers", f"{first} and {last} at the ends: parallelism.module_fqns_per_model_part can say it"
    )
    return 0, 0


def _batch(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.pp > 1:
        made.put("parallelism.pipeline_parallel_microbatch_size", asked.micro_batch, "micro_batch")
        if asked.batch is not None:
            made.put("training.local_batch_size", asked.batch // plan.dp)
        else:
            made.note("micro_batch", "training.local_batch_size is a replica's whole batch; give a batch")
    else:
        made.put("training.local_batch_size", asked.micro_batch, "micro_batch")
    if asked.batch is not None:
        made.put("training.global_batch_size", asked.batch)
    if asked.sequence is not None:
        made.put("training.seq_len", asked.sequence)


def _layers(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    made.put("activation_checkpoint.mode", plan.effective_recompute, "recompute")
    if plan.effective_recompute == "selective":
        made.put("activation_checkpoint.selective_ac_option", "op", "recompute")
        if plan.recompute_modules == "op":
            made.cover("recompute_modules")
        else:
            text = "torchtitan keeps chosen operations and repeats the others, not single modules"
            made.note("recompute", text)
    if plan.recompute_layers is not None:
        made.note("recompute_layers", f"{plan.recompute_layers} of each stage: torchtitan repeats all, or every n-th")
    if {"weights", "optimizer"} <= set(plan.offloads):
        made.put("training.enable_cpu_offload", True, "offload")
    for what in plan.offloads:
        if what == "activations" or "offload" not in made.covered:
            made.note("offload", f"{what} alone on the host: enable_cpu_offload moves weights, gradients and optimizer")


def _numbers(made: Sheet, asked: ExportRequest) -> None:
    plan, precision = asked.plan, asked.precision
    if precision is None:
        made.note("precision", "left open by the plan; torchtitan's default is bfloat16")
    elif precision not in ("bf16", "fp8"):
        made.note("precision", f"{precision} is not in torchtitan")
    else:
        made.put("training.mixed_precision_param", "bfloat16", "precision")
    if precision == "fp8":
        made.put("model.converters", ["float8"], "precision")
    made.note("attention", f"{asked.attention or 'open'} in the plan; torch chooses the kernel of its attention")
    if asked.dropout:
        made.note("dropout", "torchtitan's models have none")
    made.cover("dropout")
    if plan.optimizer == "adam":
        made.put("optimizer.name", "AdamW", "optimizer")
    else:
        made.note("optimizer", f"{plan.optimizer} is not among the optimizers of torchtitan's configuration")
