"""The TOML of torchtitan as a plan.

Names and defaults are those of its `config/job_config.py` (`export.torchtitan.CONFIG`), and what 0.2 added later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from .keys import Keys, flatten
from .profiles import profile_of
from .settings import FrameworkSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MODELS: Final = {
    ("llama3", "8B"): "llama-3.1-8b",
    ("llama3", "70B"): "llama-3.1-70b",
    ("llama3", "405B"): "llama-3.1-405b",
    ("llama4", "17bx16e"): "llama-4-scout",
    ("llama4", "17bx128e"): "llama-4-maverick",
    ("deepseek_v3", "671B"): "deepseek-v3",
    ("deepseek_v3", "16B"): "deepseek-v2-lite",
    **{("qwen3", size): f"qwen3-{size.lower()}" for size in ("0.6B", "1.7B", "4B", "8B", "14B", "32B")},
    **{("qwen3", size): f"qwen3-{size.lower()}" for size in ("30B-A3B", "235B-A22B")},
}
"""Models of the catalogue by name and flavor of torchtitan."""
SCHEDULES: Final = {
    "1F1B": "1f1b",
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved",
    "ZBVZeroBubble": None,
    "InterleavedZeroBubble": None,
    "LoopedBFS": None,
    "DualPipeV": None,
}
ROTATE: Final = {"alltoall": "ring", "allgather": "all-gather"}
OPTIMIZERS: Final = {"AdamW": "adam", "Adam": "adam"}
WITHOUT_COST: Final = """
    job.* profiling.* metrics.* checkpoint.* comm.* memory_estimation.* validation.* lr_scheduler.* debug.* eval.*
    model.tokenizer_path model.print_after_conversion model.hf_assets_path optimizer.lr optimizer.beta1 optimizer.beta2
    optimizer.eps optimizer.weight_decay optimizer.implementation training.dataset training.dataset_path
    training.max_norm training.steps training.gc_freq training.gc_debug training.seed training.deterministic
    training.debug_moe_force_load_balance experimental.custom_import experimental.custom_args_module
    parallelism.disable_loss_parallel float8.filter_fqns
    float8.recipe_name float8.precompute_float8_dynamic_scale_for_fsdp float8.emulate mx.* float8.moe_fqns*
    activation_checkpoint.per_op_sac* activation_checkpoint.early_stop
    activation_checkpoint.preserve_rng_state activation_checkpoint.determinism_check activation_checkpoint.debug
    quantize.linear.float8.filter_fqns quantize.linear.float8.recipe_name
    quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp fault_tolerance.*
"""
REFUSED: Final = {
    "fault_tolerance.enable": "replica groups of TorchFT are not modelled",
    "fault_tolerance.semi_sync_method": "steps that are synchronised now and then are not modelled",
    "parallelism.pipeline_parallel_split_points": "stages are read by their number of layers",
    "parallelism.module_fqns_per_model_part": "stages are read by their number of layers",
    "parallelism.pipeline_parallel_module_fqns_per_model_part": "stages are read by their number of layers",
    "parallelism.pipeline_parallel_schedule_csv": "a schedule of your own is not modelled",
    "parallelism.expert_parallel_comm_backend": "exchanges by another backend are those of a profile (--stack)",
    "float8.force_recompute_fp8_weight_in_bwd": "weights that are cast again are not modelled",
    "float8.enable_fsdp_float8_all_gather": "parameters that are gathered in 8 bits are not modelled",
    "quantize.linear.float8.enable_fsdp_float8_all_gather": "parameters that are gathered in 8 bits are not modelled",
}
KERNELS: Final = (
    *("training.compile", "compile.enable", "compile.components", "compile.backend", "compile.model_backend_override"),
    *("parallelism.enable_async_tensor_parallel", "parallelism.enable_compiled_autograd", "compile.graph_passes"),
)


def read(data: Mapping[str, Any], label: str, ignore: Iterable[str]) -> FrameworkSettings:
    """The settings of the tables of a file."""
    keys = Keys("torchtitan", label, {k: v for k, v in flatten(data).items() if v != {}}, ignore)
    for name, why in REFUSED.items():
        keys.refuse(name, why)
    compiled = keys.data.get("compile.enable") is True or keys.data.get("training.compile") is True
    joined = keys.data.get("compile.components") or ("model", "loss")
    for name in KERNELS:
        keys.drop(name, "a choice of kernels, which the profile (--stack) tells")
    fields, deal = _stages(keys)
    tp = keys.count("parallelism.tensor_parallel_degree") or 1
    cp = keys.count("parallelism.context_parallel_degree") or 1
    rotate = keys.word("parallelism.context_parallel_rotate_method", ROTATE)
    fields |= {"tp": tp, "cp": cp, "cp_kind": rotate or "all-gather", "sequence_parallel": tp > 1, "overlap_tp": 0.0}
    fields |= {"ep": keys.count("parallelism.expert_parallel_degree") or 1, "dropout": False, "attention": "flash"}
    fields["expert_tp"] = keys.count("parallelism.expert_tensor_parallel_degree")
    # The loss is a component of what is compiled, unless the file names others.
    fields |= {"compiled": compiled, "loss": "fused" if compiled and "loss" in joined else "unfused"}
    sharding, copies = _sharding(keys, cp)
    fields |= sharding | _layers(keys) | _numbers(keys)
    every = fields.pop("every", 1)
    deal |= {"every": every} if every > 1 else {}
    batch, accumulation = _batch(keys, fields)
    sequence = keys.count("training.seq_len") or 2048
    model = _model(keys)
    keys.finish(WITHOUT_COST)
    return FrameworkSettings(
        "torchtitan",
        label,
        fields,
        model,
        batch,
        accumulation,
        sequence,
        copies=copies,
        deal=deal,
        stack=profile_of("torchtitan-compiled" if compiled else "torchtitan"),
        read=keys.read,
        ignored=keys.ignored,
        notes=tuple(keys.notes),
    )


def _model(keys: Keys) -> str | None:
    name, flavor = keys.take("model.name", str), keys.take("model.flavor", str)
    if name is None and flavor is None:
        return None
    if (name, flavor) in MODELS:
        return MODELS[name, flavor]
    keys.note(f"model: the catalogue has none for {name} {flavor}")
    return None


def _stages(keys: Keys) -> tuple[dict[str, Any], dict[str, int]]:
    """Stages and their schedule, and how layers are dealt to them."""
    pp = keys.count("parallelism.pipeline_parallel_degree") or 1
    schedule = keys.word("parallelism.pipeline_parallel_schedule", SCHEDULES)
    if pp > 1 and schedule is None and "parallelism.pipeline_parallel_schedule" in keys.read:
        keys.fail("parallelism.pipeline_parallel_schedule", "1F1B, GPipe or Interleaved1F1B: others are not modelled")
    each = keys.count("parallelism.pipeline_parallel_layers_per_stage")
    fewer = [
        keys.take(f"parallelism.pipeline_parallel_{end}_stage_less_layers", int, least=0) for end in ("first", "last")
    ]
    found: dict[str, Any] = {"pp": pp, "schedule": (schedule or "1f1b") if pp > 1 else None}
    first, last = (1 if less is None else less for less in fewer)
    return found, {"first": first, "last": last} | ({} if each is None else {"each": each})


def _sharding(keys: Keys, cp: int) -> tuple[dict[str, Any], int]:
    """ZeRO stage and number of replicas, and the copies of the state."""
    copies = keys.count("parallelism.data_parallel_replicate_degree") or 1
    shards = keys.take("parallelism.data_parallel_shard_degree", int, least=-1)
    shards = -1 if shards is None else shards
    if shards == 0:
        keys.fail("parallelism.data_parallel_shard_degree", "-1 (what is left), or 1 or more")
    policy = keys.take("parallelism.fsdp_reshard_after_forward", str, choices=("default", "always", "never"))
    whole = shards == 1 and cp == 1
    keeps = policy == "never"
    if policy in (None, "default") and not whole:
        keys.note("weights are gathered again in the backward pass, as without a pipeline by default")
    zero = 0 if whole else 2 if keeps else 3
    found: dict[str, Any] = {"zero": zero, "overlap_dp": 1.0, "overlap_gather": 1.0, "overlap_parameters": 1.0}
    if shards > 0:
        found["dp"] = copies * shards
    return found, 1 if whole else copies


def _batch(keys: Keys, fields: dict[str, Any]) -> tuple[int | None, int | None]:
    """The global batch and the micro-batches of a replica."""
    local = keys.count("training.local_batch_size", "training.batch_size") or 8
    batch = keys.take("training.global_batch_size", int, least=-1)
    batch = None if batch is None or batch < 1 else batch
    if fields["pp"] == 1:
        fields["micro_batch"] = local
        return batch, None if batch else 1
    each = keys.count("parallelism.pipeline_parallel_microbatch_size") or 1
    if local % each:
        raise InputError(f"{keys.label}: local_batch_size {local} is not divisible by a micro-batch of {each}")
    fields["micro_batch"] = each
    return batch, None if batch else local // each


def _layers(keys: Keys) -> dict[str, Any]:
    mode = keys.take("activation_checkpoint.mode", str, choices=("selective", "full", "none", "memory_budget"))
    option = keys.data.get("activation_checkpoint.selective_ac_option")
    if mode in ("full", "none"):
        keys.drop("activation_checkpoint.selective_ac_option", "it means nothing in this mode")
    keys.take("activation_checkpoint.selective_ac_option", str)
    if "activation_checkpoint.mode" in keys.ignored:
        mode = "none"
    kept = {"offload": "optimizer,weights" if keys.flag("training.enable_cpu_offload") else None}
    if mode in (None, "selective") and option == "op":
        return kept | {"recompute": "selective", "recompute_modules": "op"}
    if mode in (None, "selective"):
        option = "2" if option is None else str(option)
        if not option.isdecimal():
            keys.fail("activation_checkpoint.selective_ac_option", "op, or of how many layers one is computed again")
        return kept | {"recompute": "full", "every": max(int(option), 1)}
    if mode == "memory_budget":
        keys.fail("activation_checkpoint.mode", "full, none or selective: what a compiler chooses is not modelled")
    return kept | {"recompute": mode}


def _numbers(keys: Keys) -> dict[str, Any]:
    parameters = keys.take("training.mixed_precision_param", str, choices=("bfloat16", "float32"))
    reduced = keys.take("training.mixed_precision_reduce", str, choices=("float32", "bfloat16"))
    if reduced == "bfloat16":
        keys.fail("training.mixed_precision_reduce", "float32; others are set by --set gradient_bytes=2")
    if keys.take("training.dtype", str, choices=("float32", "bfloat16")) == "bfloat16":
        keys.fail("training.dtype", "float32: state without a copy in 32 bits is set by --set optimizer_bytes=4")
    precision = "fp32" if parameters == "float32" else "bf16"
    converters = keys.take("model.converters", list) or []
    for each in converters:
        if each not in ("float8", "quantize.linear.float8"):
            keys.fail("model.converters", "float8, or none")
        precision = "fp8"
    name, early = keys.word("optimizer.name", OPTIMIZERS), keys.flag("optimizer.early_step_in_backward")
    return {"precision": precision, "optimizer": name or "adam", "optimizer_in_backward": early}
