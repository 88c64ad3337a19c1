"""The YAML of LLaMA-Factory as a plan; names and defaults are those of its `hparams`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from ..models.model import Model
from .hub import OPTIMIZERS, batch_of, fully_sharded, model_of, sharded
from .keys import Keys, flatten
from .profiles import profile_of
from .settings import FrameworkSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SOURCE: Final = (
    "https://github.com/hiyouga/LLaMA-Factory/blob/00577a85775a2a78b14641ff8f68c58c6f46b027/"
    "src/llamafactory/hparams/finetuning_args.py"
)
"""The arguments of LLaMA-Factory at the commit that they were read in."""
ATTENTION: Final = {**dict.fromkeys(("auto", "fa2", "fa3", "sdpa"), "flash"), "disabled": "eager"}
WITHOUT_COST: Final = """
    do_train do_eval do_predict predict_with_generate dataset dataset_dir eval_dataset media_dir template tool_format
    max_samples overwrite_cache preprocessing_* streaming buffer_size mix_strategy interleave_probs tokenized_path
    train_on_prompt mask_history ignore_pad_token_for_loss val_size eval_on_each_dataset eval_num_beams dataloader_*
    output_dir overwrite_output_dir logging_* save_* plot_loss report_to run_name resume_from_checkpoint
    learning_rate num_train_epochs max_steps lr_scheduler_* warmup_* weight_decay max_grad_norm adam_* seed data_seed
    per_device_eval_batch_size eval_* evaluation_strategy metric_for_best_model greater_is_better load_best_model_at_end
    early_stopping_steps compute_accuracy disable_shuffling include_* ddp_* local_rank cache_dir use_fast_tokenizer
    resize_vocab split_special_tokens add_tokens add_special_tokens new_special_tokens_config init_special_tokens
    model_revision low_cpu_mem_usage rope_scaling moe_aux_loss_coef trust_remote_code hf_hub_token ms_hub_token
    om_hub_token print_param_status infer_* use_kv_cache use_cache lora_alpha lora_dropout loraplus_* use_rslora
    pissa_* create_new_adapter adapter_name_or_path adapter_folder use_swanlab swanlab_* remove_unused_columns
    group_by_length neftune_noise_alpha enable_thinking quantization_method quantization_type double_quantization
    quantization_device_map upcast_lmhead_output upcast_layernorm train_from_scratch use_reentrant_gc image_* video_*
    crop_to_patches audio_sampling_rate use_audio_in_video export_* offload_folder use_dft_loss additional_config
    ray_* resources_per_worker placement_strategy fp8_backend push_to_hub hub_*
"""
CHOICES: Final = ("enable_liger_kernel", "use_unsloth", "use_unsloth_gc", "use_v1_kernels", "torch_compile")
REFUSED: Final = {
    "use_galore": "GaLore is not modelled",
    "use_apollo": "APOLLO is not modelled",
    "use_badam": "BAdam is not modelled",
    "use_adam_mini": "Adam-mini is not modelled",
    "use_llama_pro": "expanded blocks are not modelled",
    "use_mca": "its options of Megatron-Core are not read here; give those",
    "shift_attn": "shifted short attention is not modelled",
    "mixture_of_depths": "mixtures of depths are not modelled",
    "additional_target": "whole modules trained beside adapters are not modelled",
    "pure_bf16": "state without a copy in 32 bits is set by --set optimizer_bytes=4",
    "fp8_enable_fsdp_float8_all_gather": "parameters that are gathered in 8 bits are not modelled",
}


METHODS = {"rm": "reward", "dpo": "dpo", "ppo": "ppo"}
"""Stages -> methods of `symperf train`; pairs are what a batch counts in both."""


def read(data: Mapping[str, Any], label: str, ignore: Iterable[str], folder: Path) -> FrameworkSettings:
    """The settings of the keys of a file, beside which a file of DeepSpeed may lie."""
    keys = Keys("llama-factory", label, {k: v for k, v in flatten(data).items() if v not in ({}, "", None)}, ignore)
    for name, why in REFUSED.items():
        keys.refuse(name, why)
    liger = keys.data.get("enable_liger_kernel") is True
    for name in CHOICES:
        keys.drop(name, "a choice of kernels, which the profile (--stack) tells")
    base = keys.take("model_name_or_path", str)
    stage = keys.take("stage", str, choices=("pt", "sft", "rm", "ppo", "dpo", "kto")) or "sft"
    if stage == "kto":
        keys.fail("stage", "pt, sft, rm, dpo or ppo: pairs that are none are not modelled")
    inner = sharded(keys, "deepspeed", folder)
    fields: dict[str, Any] = {"zero": 0, "overlap_dp": 1.0}
    options = keys.data.get("fsdp")
    if isinstance(options, str):
        keys.data["fsdp"] = options.split()
    if keys.data.get("fsdp"):
        fields |= fully_sharded(keys, keys.take("fsdp", list), "fsdp_config")
    fields["cp"] = keys.count("sequence_parallel_size") or 1
    fields["attention"] = keys.word("flash_attn", ATTENTION) or "flash"
    batch_of(keys, fields, keys.count("per_device_train_batch_size") or 8, inner)
    accumulation = keys.count("gradient_accumulation_steps") or 1
    fields |= _numbers(keys)
    if not keys.flag("disable_gradient_checkpointing"):
        fields["recompute"] = "full"
        keys.note("recompute: full, which LLaMA-Factory turns on unless disable_gradient_checkpointing")
    keys.drop("gradient_checkpointing", "LLaMA-Factory turns it on by itself")
    model = None if base is None else model_of(base, folder)
    fields |= _adapters(keys, fields, model)
    fields["loss"] = "fused-linear" if liger else "unfused"
    sequence = keys.count("cutoff_len") or 2048
    packs = [keys.flag(name) for name in ("packing", "neat_packing")]
    if not any(packs) and stage != "pt":
        keys.note(
            f"data: every sequence is taken as full, {sequence} tokens; the file does not pack them (--lengths with "
            "--pad-to-longest tells what they are)"
        )
    keys.finish(WITHOUT_COST)
    return FrameworkSettings(
        "llama-factory",
        label,
        fields,
        model,
        accumulation=accumulation,
        sequence=sequence,
        stack=profile_of("liger") if liger else None,
        flags={"method": METHODS[stage]} if stage in METHODS else {},
        read=keys.read,
        ignored=keys.ignored,
        notes=tuple(keys.notes),
    )


def _numbers(keys: Keys) -> dict[str, Any]:
    bf16, fp16 = keys.flag("bf16"), keys.flag("fp16")
    whole = "tf32" if keys.flag("tf32") else "fp32"
    precision = "fp8" if keys.flag("fp8") else "bf16" if bf16 else "fp16" if fp16 else whole
    muon, optimizer = keys.flag("use_muon"), keys.word("optim", OPTIMIZERS)
    return {"precision": precision, "optimizer": "muon" if muon else optimizer or "adam"}


TOWERS: Final = (
    ("freeze_vision_tower", ("vision", "audio"), True),
    ("freeze_multi_modal_projector", ("projector",), True),
    ("freeze_language_model", ("language",), False),
)
"""Keys that freeze parts of a model of images or sound, the parts, and the values of keys that are not there."""


def _frozen(keys: Keys, model: str | None, kind: str) -> list[str]:
    """Parts of a model with encoders that are not trained, whether the file says so or says nothing.

    Beside what is not frozen LLaMA-Factory puts adapters (`patch_target_modules` of `model/model_utils/visual.py`).
    """
    asked = {name: keys.take(name, bool) for name, *_ in TOWERS}
    known = model is not None
    try:
        towers = Model.load(model).towers if model else ()
    except InputError:
        towers, known = (), False
    there = {"language", "projector", *(tower.part for tower in towers)} if towers else set()
    found = []
    for name, parts, usual in TOWERS:
        held = [part for part in parts if part in there]
        if kind == "lora" and asked[name] is False and usual and (held or not known):
            keys.fail(name, "true: adapters beside layers of encoders are not modelled")
        if held and (usual if asked[name] is None else asked[name]):
            found += held
            if asked[name] is None:
                keys.note(f"freeze: {', '.join(held)}, which LLaMA-Factory does unless {name} is false")
    return found


def _adapters(keys: Keys, fields: dict[str, Any], model: str | None) -> dict[str, Any]:
    kind = keys.take("finetuning_type", str, choices=("lora", "full", "freeze", "oft")) or "lora"
    rank, targets = keys.count("lora_rank") or 8, keys.take("lora_target", list)
    dora, bits = keys.flag("use_dora"), keys.take("quantization_bit", int, choices=(4, 8))
    frozen = _frozen(keys, model, kind)
    if frozen and kind == "full":
        fields["freeze"] = ",".join(frozen)
    if kind in ("freeze", "oft"):
        keys.fail("finetuning_type", "lora or full; parts that are not trained are named by --freeze")
    if kind == "full":
        if bits is not None:
            keys.fail("quantization_bit", "none with finetuning_type full")
        return {}
    if "language" in frozen:
        keys.fail("freeze_language_model", "false: adapters of encoders alone are not modelled")
    found: dict[str, Any] = {"lora_rank": rank}
    found["lora_targets"] = "all-linear" if targets in (None, ["all"]) else ",".join(map(str, targets))
    if dora:
        found["dora"] = True
    if bits is not None:
        found["base_precision"] = "nf4" if bits == 4 else "int8"
    return found
