"""The JSON configuration of DeepSpeed as a plan; names and defaults are those of its page (`export.deepspeed.PAGE`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from .keys import Keys, flatten
from .profiles import profile_of
from .settings import FrameworkSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPTIMIZERS: Final = {
    **dict.fromkeys(("Adam", "AdamW", "adam", "adamw", "FusedAdam", "DeepSpeedCPUAdam"), "adam"),
    **dict.fromkeys(("Muon", "muon"), "muon"),
    **dict.fromkeys(("SGD", "sgd"), "sgd-momentum"),
}
WITHOUT_COST: Final = """
    optimizer.params optimizer.params.* scheduler scheduler.* gradient_clipping prescale_gradients
    gradient_predivide_factor steps_per_print wall_clock_breakdown dump_state tensorboard tensorboard.* wandb wandb.*
    csv_monitor csv_monitor.* comet comet.* flops_profiler flops_profiler.* comms_logger comms_logger.* monitor.*
    fp16.loss_scale fp16.loss_scale_window fp16.hysteresis fp16.min_loss_scale fp16.initial_scale_power
    fp16.consecutive_hysteresis fp16.auto_cast fp16.fp16_master_weights_and_grads bf16.immediate_grad_update
    bf16.check_grad_overflow zero_allow_untested_optimizer zero_force_ds_cpu_optimizer checkpoint checkpoint.*
    data_types.params_dtype elasticity elasticity.* autotuning autotuning.* communication_data_type
    zero_optimization.allgather_partitions zero_optimization.allgather_bucket_size zero_optimization.reduce_scatter
    zero_optimization.reduce_bucket_size zero_optimization.contiguous_gradients zero_optimization.sub_group_size
    zero_optimization.stage3_* zero_optimization.round_robin_gradients zero_optimization.ignore_unused_parameters
    zero_optimization.load_from_fp32_weights zero_optimization.elastic_checkpoint
    zero_optimization.override_module_apply
    zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_optimizer.buffer_count
    zero_optimization.offload_optimizer.fast_init zero_optimization.offload_optimizer.pipeline*
    zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.pin_memory
    zero_optimization.offload_param.buffer_count zero_optimization.offload_param.buffer_size
    zero_optimization.offload_param.max_in_cpu zero_optimization.offload_param.nvme_path
    zero_optimization.param_persistence_threshold zero_optimization.model_persistence_threshold
    zero_optimization.memory_efficient_linear zero_optimization.use_multi_rank_bucket_allreduce
    zero_optimization.log_trace_cache_warnings activation_checkpointing.number_checkpoints
    activation_checkpointing.contiguous_memory_optimization activation_checkpointing.synchronize_checkpoint_boundary
    activation_checkpointing.profile use_data_before_expert_parallelism disable_allgather
    seq_parallel_communication_data_type
    tensor_parallel.tp_grain_size expert_parallel.* data_efficiency.* timers.* aio aio.* dataloader_drop_last
"""
REFUSED: Final = {
    "fp32_allreduce": "the format of reductions is set as gradient_bytes (--set)",
    "sparse_gradients": "sparse gradients are not modelled",
    "sparse_attention": "sparse attention is not modelled",
    "amp.enabled": "products of NVIDIA Apex AMP are not modelled",
    "compression_training": "compressed training is not modelled",
    "pipeline.stages": "stages of a pipeline are an argument in Python; give --pp",
    "data_efficiency.enabled": "shorter sequences and dropped tokens are not modelled",
    "progressive_layer_drop": "dropped layers are not modelled",
    "zero_optimization.zero_hpz_partition_size": "secondary copies of parameters (ZeRO++) are not modelled",
    "zero_optimization.zero_quantized_weights": "gathering in 8 bits (ZeRO++) is not modelled",
    "zero_optimization.zero_quantized_gradients": "reducing in 4 bits (ZeRO++) is not modelled",
    "zero_optimization.zenflow": "ZenFlow is not modelled",
    "zero_optimization.zeropp_loco_param": "compensated quantization is not modelled",
    "zero_optimization.offload_optimizer.ratio": "the part of it is --offload optimizer=F",
    "sequence_parallel_size": "parts of a sequence are an argument in Python; give --cp and --cp-kind all-to-all",
    "hybrid_engine.enabled": "generation between steps is not modelled",
    "model_parameters": "it is of another framework",
}


def read(data: Mapping[str, Any], label: str, ignore: Iterable[str]) -> FrameworkSettings:
    """The settings of the object of a file."""
    keys = Keys("deepspeed", label, {k: v for k, v in flatten(data).items() if v != {}}, ignore)
    for key in [key for key, value in keys.data.items() if value == "auto"]:
        keys.ignored[key] = "auto: what starts DeepSpeed decides it"
        del keys.data[key]
    keys.refuse(
        "zero_optimization.offload_optimizer.ratio", REFUSED["zero_optimization.offload_optimizer.ratio"], off=(1,)
    )
    keys.refuse(
        "zero_optimization.zero_hpz_partition_size", REFUSED["zero_optimization.zero_hpz_partition_size"], off=(1,)
    )
    for name, why in REFUSED.items():
        keys.refuse(name, why)
    zero = keys.take("zero_optimization.stage", int, choices=(0, 1, 2, 3)) or 0
    fields: dict[str, Any] = (
        {"zero": zero, "attention": None, "dropout": None} | _degrees(keys) | _numbers(keys) | _activations(keys)
    )
    overlap = keys.take("zero_optimization.overlap_comm", bool)
    if overlap is None:
        overlap = zero == 3  # deepspeed/runtime/zero/config.py: where it is left out, so it is in stage 3 alone
    fields |= {"overlap_dp": float(bool(overlap and zero)), "overlap_gather": 1.0, "overlap_parameters": 0.0}
    offload = [name for name in ("activations",) if fields.pop("cpu_checkpointing")]
    drives: list[str] = []
    for what, part in (("optimizer", "offload_optimizer"), ("weights", "offload_param")):
        device = keys.take(f"zero_optimization.{part}.device", str, choices=("none", "cpu", "nvme"))
        drives += [what] if device == "nvme" else []
        if device in ("cpu", "nvme"):
            offload.append(what)
    fields["offload"] = ",".join(offload) or None
    fields["nvme"] = ",".join(drives) or None
    mics = keys.count("zero_optimization.mics_shard_size")
    batch, accumulation = keys.count("train_batch_size"), keys.count("gradient_accumulation_steps")
    micro_batch = keys.count("train_micro_batch_size_per_gpu")
    if mics is not None and mics > 1:
        fields["zero_shards"] = mics
    if micro_batch is not None:
        fields["micro_batch"] = micro_batch
    elif batch is not None:
        raise InputError(f"{label}: train_batch_size needs train_micro_batch_size_per_gpu beside it, found none")
    if accumulation is None and (batch is None or micro_batch is None):
        accumulation = 1
    keys.finish(WITHOUT_COST)
    keys.note("attention and dropout are those of the model: DeepSpeed's file does not say them")
    return FrameworkSettings(
        "deepspeed",
        label,
        fields,
        batch=batch,
        accumulation=accumulation,
        stack=profile_of("deepspeed"),
        read=keys.read,
        ignored=keys.ignored,
        notes=tuple(keys.notes),
    )


def _degrees(keys: Keys) -> dict[str, Any]:
    tp = keys.count("tensor_parallel.autotp_size") or 1
    beside = keys.take("tensor_parallel.tp_overlap_comm", bool)
    deals = keys.flag("expert_parallel.enabled")
    ep = keys.count("expert_parallel.autoep_size") or 1
    return {"tp": tp, "overlap_tp": float(bool(beside)) if tp > 1 else 1.0, "ep": ep if deals else 1}


def _numbers(keys: Keys) -> dict[str, Any]:
    bf16, fp16 = keys.flag("bf16.enabled", "bfloat16.enabled"), keys.flag("fp16.enabled")
    if bf16 and fp16:
        raise InputError(f"{keys.label}: found bf16.enabled and fp16.enabled, expected one of them")
    found: dict[str, Any] = {"precision": "bf16" if bf16 else "fp16" if fp16 else None}
    told = any(
        name in keys.read or name in keys.ignored for name in ("bf16.enabled", "bfloat16.enabled", "fp16.enabled")
    )
    if (
        found["precision"] is None
        and told
        and not any(name in keys.ignored for name in ("bf16.enabled", "fp16.enabled"))
    ):
        found["precision"] = "fp32"
    elif found["precision"] is None:
        keys.note("precision: that of the system, which the file leaves open")
    found["optimizer"] = keys.word("optimizer.type", OPTIMIZERS) or "adam"
    if "optimizer.type" not in keys.read:
        keys.note("optimizer: adam, which the file leaves to what starts DeepSpeed")
    gradients = keys.take("data_types.grad_accum_dtype", str, choices=("fp32", "bf16", "fp16"))
    if gradients in ("bf16", "fp16"):
        keys.fail("data_types.grad_accum_dtype", "fp32; others are set by --set gradient_bytes=2")
    return found


def _activations(keys: Keys) -> dict[str, Any]:
    """What the section of checkpointing says: it is there where the model's code calls it."""
    there = any(name.startswith("activation_checkpointing.") for name in keys.data)
    keys.refuse("activation_checkpointing.partition_activations", "saved activations split over tp are not modelled")
    kept = keys.flag("activation_checkpointing.cpu_checkpointing")
    keys.note(
        "recompute: full, since the file has a section for checkpointing, which the model's code calls"
        if there
        else "recompute: none; --recompute full where the model's code checkpoints its layers"
    )
    return {"recompute": "full" if there else "none", "cpu_checkpointing": kept}
