"""Plans as overrides of Megatron Bridge: what Megatron-LM's flags are there, by the project's own table."""

from __future__ import annotations

from typing import Final

from . import megatron
from .bridge_adapters import MODULES, modules_of
from .lines import flag
from .lines import overrides as text
from .sheet import ExportRequest, Option, Sheet

__all__ = ["OPTIONS", "sheet", "text"]

ROOT: Final = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/"
TABLE: Final = f"{ROOT}167ba2ad3210652cee2044630b4791741b0e431b/docs/megatron-lm-to-megatron-bridge.md"
PARALLEL: Final = f"{ROOT}0026ec18706925001415cfb297834e77a375c925/docs/parallelisms.md"
RECOMPUTE: Final = f"{ROOT}0026ec18706925001415cfb297834e77a375c925/docs/training/activation-recomputation.md"
PRECISION: Final = f"{ROOT}05097809102de3cbe888267e7d701868165153d8/src/megatron/bridge/training/mixed_precision.py"
PRECISIONS: Final = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
}
"""Recipes by precision; Megatron-LM's own default for 8 bits is delayed scaling."""
PEFT: Final = f"{ROOT}153c9bf9add0bc76e2c7825176699b2ba6c82192/docs/training/peft.md"
"""Its guide to adapters; overrides of a recipe for fine-tuning are written so (`peft.dim=16`)."""

OPTIONS: Final[dict[str, Option]] = {
    "model.tensor_model_parallel_size": Option(int, TABLE),
    "model.pipeline_model_parallel_size": Option(int, TABLE),
    "model.context_parallel_size": Option(int, TABLE),
    "model.virtual_pipeline_model_parallel_size": Option(int, PARALLEL),
    "model.expert_model_parallel_size": Option(int, PARALLEL),
    "model.expert_tensor_parallel_size": Option(int, PARALLEL),
    "model.moe_token_dispatcher_type": Option(str, TABLE, ("alltoall", "flex")),
    "dist.use_tp_pp_dp_mapping": Option(bool, TABLE),
    "model.sequence_parallel": Option(bool, TABLE),
    "model.seq_length": Option(int, TABLE),
    "dataset.seq_length": Option(int, TABLE),
    "model.recompute_granularity": Option(str, RECOMPUTE, ("full", "selective")),
    "model.recompute_method": Option(str, RECOMPUTE, ("uniform", "block")),
    "model.recompute_num_layers": Option(int, RECOMPUTE),
    "model.recompute_modules": Option(list, RECOMPUTE),
    "model.attention_backend": Option(str, TABLE),
    "model.attention_dropout": Option(float, TABLE),
    "model.hidden_dropout": Option(float, TABLE),
    "train.micro_batch_size": Option(int, TABLE),
    "train.global_batch_size": Option(int, TABLE),
    "ddp.use_distributed_optimizer": Option(bool, TABLE),
    "optimizer.use_distributed_optimizer": Option(bool, TABLE),
    "optimizer.optimizer": Option(str, PARALLEL),
    "ddp.overlap_grad_reduce": Option(bool, TABLE),
    "ddp.overlap_param_gather": Option(bool, TABLE),
    "checkpoint.ckpt_format": Option(str, TABLE, ("torch_dist", "zarr", "fsdp_dtensor")),
    "mixed_precision": Option(str, PRECISION),
    "peft.dim": Option(int, PEFT),
    "peft.target_modules": Option(list, PEFT),
}
SAME: Final[dict[str, tuple[str, ...]]] = {
    "--tensor-model-parallel-size": ("model.tensor_model_parallel_size",),
    "--pipeline-model-parallel-size": ("model.pipeline_model_parallel_size",),
    "--context-parallel-size": ("model.context_parallel_size",),
    "--num-virtual-stages-per-pipeline-rank": ("model.virtual_pipeline_model_parallel_size",),
    "--expert-model-parallel-size": ("model.expert_model_parallel_size",),
    "--expert-tensor-parallel-size": ("model.expert_tensor_parallel_size",),
    "--moe-token-dispatcher-type": ("model.moe_token_dispatcher_type",),
    "--use-tp-pp-dp-mapping": ("dist.use_tp_pp_dp_mapping",),
    "--sequence-parallel": ("model.sequence_parallel",),
    "--seq-length": ("model.seq_length", "dataset.seq_length"),
    "--recompute-granularity": ("model.recompute_granularity",),
    "--recompute-method": ("model.recompute_method",),
    "--recompute-num-layers": ("model.recompute_num_layers",),
    "--recompute-modules": ("model.recompute_modules",),
    "--attention-dropout": ("model.attention_dropout",),
    "--hidden-dropout": ("model.hidden_dropout",),
    "--micro-batch-size": ("train.micro_batch_size",),
    "--global-batch-size": ("train.global_batch_size",),
    "--use-distributed-optimizer": ("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"),
    "--overlap-grad-reduce": ("ddp.overlap_grad_reduce",),
    "--overlap-param-gather": ("ddp.overlap_param_gather",),
    "--ckpt-format": ("checkpoint.ckpt_format",),
}
"""What a flag of Megatron-LM is here."""
ELSEWHERE: Final = {
    "--cp-comm-type": "cp_kind",
    "--pipeline-model-parallel-layout": "layout",
    "--account-for-embedding-in-pipeline-split": "account_for",
    "--account-for-loss-in-pipeline-split": "account_for",
    "--decoder-first-pipeline-num-layers": "first_stage_layers",
    "--decoder-last-pipeline-num-layers": "last_stage_layers",
    "--use-megatron-fsdp": "zero",
    "--data-parallel-sharding-strategy": "zero",
    "--num-distributed-optimizer-instances": "zero_shards",
    "--optimizer-cpu-offload": "offload",
    "--cpu-offloading-num-layers": "offload",
    "--fine-grained-activation-offloading": "offload",
    "--offload-modules": "offload",
    "--cross-entropy-loss-fusion": "loss",
    "--make-vocab-size-divisible-by": "vocab_multiple",
    "--no-overlap-p2p-communication": "overlap_pp",
    "--fp32-residual-connection": "fp32_residual",
}
"""Flags of Megatron-LM that the pages of Megatron Bridge do not translate, with the field that each is of."""
PRODUCTS: Final = ("--bf16", "--fp16", "--fp8-format", "--fp4-format")


def sheet(asked: ExportRequest) -> Sheet:
    """The settings: those of Megatron-LM, translated."""
    source = megatron.sheet(asked)
    made = Sheet("megatron-bridge", OPTIONS, covered=set(source.covered))
    for name, value in source.settings.items():
        for same in SAME.get(name, ()):
            made.put(same, value)
        if name in ELSEWHERE:
            told = f"{flag(name, value)} of Megatron-LM is not in the pages that translate its flags"
            made.note(ELSEWHERE[name], told)
    _rest(made, source, asked)
    for name, words in source.notes:
        made.note(
            name, words.replace("Megatron-LM", "Megatron Bridge").replace("megatron sets", "megatron-bridge sets")
        )
    return made


def _rest(made: Sheet, source: Sheet, asked: ExportRequest) -> None:
    if "--use-tp-pp-dp-mapping" in source.settings and asked.plan.zero > 1:
        made.note(
            "rank_order", "Megatron Bridge refuses use_tp_pp_dp_mapping with Megatron-FSDP, which zero = 2 and 3 run"
        )
    precision = asked.precision
    if precision in PRECISIONS:
        made.put("mixed_precision", PRECISIONS[precision], "precision")
    elif any(flag in source.settings for flag in PRODUCTS):
        made.note("precision", f"{precision} has no recipe among those of Megatron Bridge that were read")
    if asked.attention == "flash":
        made.put("model.attention_backend", "flash", "attention")
    elif asked.attention is not None:
        made.note("attention", f"the pages name no backend that is {asked.attention}")
    _adapters(made, asked)
    optimizer = source.settings.get("--optimizer")
    if optimizer == "adam":
        made.put("optimizer.optimizer", "adam", "optimizer")
    elif optimizer is not None:
        made.note("optimizer", f"{asked.plan.optimizer} is not among the optimizers that the pages name")


def _adapters(made: Sheet, asked: ExportRequest) -> None:
    plan = asked.plan
    if plan.lora_rank is None:
        return
    modules = modules_of(plan, asked.model)
    if modules is None:
        made.note("lora_targets", f"Megatron Bridge has adapters of {', '.join(MODULES)}, each as a whole")
        return
    made.put("peft.dim", plan.lora_rank, "lora_rank", "lora_targets")
    made.put("peft.target_modules", modules, "lora_rank", "lora_targets")
    if plan.dora:
        made.note("dora", "--peft dora of Megatron Bridge's script for fine-tuning; overrides do not tell it")
