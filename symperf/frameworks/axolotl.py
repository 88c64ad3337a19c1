"""The YAML of axolotl as a plan; names and defaults are those of its `utils/schemas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError
from .hub import FSDP, OPTIMIZERS, batch_of, fully_sharded, model_of, sharded
from .keys import Keys, flatten
from .profiles import profile_of
from .settings import FrameworkSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SOURCE: Final = (
    "https://github.com/axolotl-ai-cloud/axolotl/blob/002a637c86864c8acf451757ee45040b5ea5e25f/"
    "src/axolotl/utils/schemas/config.py"
)
"""The keys of axolotl at the commit that they were read in."""
KERNELS: Final = {
    "flash_attention": "flash",
    "sdp_attention": "flash",
    "xformers_attention": "flash",
    "flex_attention": "flash",
    "eager_attention": "eager",
}
ATTENTION: Final = {
    **dict.fromkeys(("flash", "sdpa", "flash_attention_2", "flash_attention_3", "flex", "xformers"), "flash"),
    **dict.fromkeys(("flex_attention", "kernels-community/flash-attn", "flash_attn"), "flash"),
    "eager": "eager",
}
WITHOUT_COST: Final = f"""
    {FSDP} base_model_config model_type cls_model_config tokenizer_* processor_type trust_remote_code strict datasets
    datasets.* test_datasets test_datasets.* dataset_* shuffle_merged_datasets skip_prepare_dataset dataloader_*
    val_set_size output_dir hub_* wandb_* mlflow_* comet_* use_* gradio_* num_epochs max_steps warmup_* eval_* evals_*
    save_* saves_* logging_* early_stopping_patience load_best_model_at_end learning_rate lr_* cosine_* adam_*
    optim_args optim_args.* weight_decay max_grad_norm train_on_inputs group_by_length resume_from_checkpoint
    auto_resume_from_checkpoints local_rank debug seed special_tokens special_tokens.* tokens chat_template
    chat_template_jinja default_system_message eot_tokens plugins gradient_checkpointing_kwargs
    gradient_checkpointing_kwargs.* lora_alpha lora_dropout lora_fan_in_fan_out lora_model_dir lora_on_cpu
    peft_use_rslora peft_init_lora_weights loraplus_* merge_* sample_packing_* multipack_real_batches
    curriculum_sampling
    pretrain_multipack_* min_sample_len ddp_* device_map push_dataset_to_hub hf_use_auth_token is_*_derived_model
    neftune_noise_alpha remove_unused_columns include_tokens_per_second profiler_steps gc_steps loss_watchdog_* do_*
    bench_* metric_for_best_model greater_is_better torchdistx_path low_cpu_mem_usage embedding_lr*
    fix_untrained_tokens added_tokens_overrides added_tokens_overrides.* rl_beta experimental_* model_revision
    revision_of_model ddp sync_module_states fsdp_final_state_dict_type qlora_sharded_model_loading
    tensor_parallel overrides_of_model_config.rope_* accelerator_config accelerator_config.* ring_attn_func
    heads_k_stride datasets_* message_* field_* roles_* train_on_eos
"""
CHOICES: Final = (
    *("flash_attn_cross_entropy", "flash_attn_rms_norm", "flash_attn_fuse_qkv", "flash_attn_fuse_mlp"),
    *("unsloth_cross_entropy_loss", "unsloth_lora_mlp", "unsloth_lora_qkv", "unsloth_lora_o", "unsloth_rms_norm"),
    *("unsloth_rope", "lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "torch_compile", "torch_compile_backend"),
    *("torch_compile_mode", "liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_swiglu", "liger_layer_norm"),
    *("liger_cross_entropy", "liger_fused_linear_cross_entropy", "cut_cross_entropy", "use_kernels"),
)
METHODS: Final = {"dpo": "dpo", "ipo": "dpo", "grpo": "grpo"}
"""Words of `rl` -> methods of `symperf train`; IPO differs from DPO by its loss alone."""
REFUSED: Final = {
    "qat": "quantization-aware training is not modelled",
    "relora": "ReLoRA is not modelled",
    "process_reward_model": "scores of single steps are not modelled",
    "s2_attention": "shifted sparse attention is not modelled",
    "unfrozen_parameters": "parts that are trained are named by --freeze",
    "lisa_n_layers": "LISA is not modelled",
    "peft_layers_to_transform": "adapters of some layers only are not modelled",
    "lora_target_parameters": "adapters of single parameters are not modelled",
    "lora_modules_to_save": "whole modules trained beside adapters are not modelled",
    "gptq": "checkpoints of GPTQ are not trained here",
    "use_pose": "PoSE is not modelled",
}


def read(data: Mapping[str, Any], label: str, ignore: Iterable[str], folder: Path) -> FrameworkSettings:
    """The settings of the keys of a file, beside which a file of DeepSpeed may lie."""
    flat = {k: v for k, v in flatten(data).items() if v not in ({}, "", None)}
    keys = Keys("axolotl", label, flat, ignore)
    for name, why in REFUSED.items():
        keys.refuse(name, why)
    liger = any(keys.data.get(name) for name in CHOICES if name.startswith("liger_"))
    fields: dict[str, Any] = {"zero": 0, "overlap_dp": 1.0} | _kernels(keys)
    for name in CHOICES:
        if name not in keys.read:
            keys.drop(name, "a choice of kernels, which the profile (--stack) tells")
    keys.drop("pretraining_dataset", "it costs nothing in a step")
    keys.drop("resize_token_embeddings_to_32x", "vocabularies are taken as they are")
    base = keys.take("base_model", str)
    inner = sharded(keys, "deepspeed", folder)
    options = keys.take("fsdp", list)
    if options or any(name.startswith("fsdp_config.") for name in keys.data):
        if inner is not None:
            raise InputError(f"{label}: found deepspeed and fsdp, expected one of them")
        fields |= fully_sharded(keys, options, "fsdp_config")
    fields["tp"] = keys.count("tensor_parallel_size") or 1
    fields["cp"] = keys.count("context_parallel_size", "sequence_parallel_degree") or 1
    shards, copies = keys.count("dp_shard_size"), keys.count("dp_replicate_size") or 1
    if shards is not None:
        fields["dp"] = shards * copies
    batch_of(keys, fields, keys.count("micro_batch_size"), inner)
    accumulation, batch = keys.count("gradient_accumulation_steps") or 1, keys.count("batch_size")
    fields |= _numbers(keys) | _checkpoints(keys, fields)
    fields["attention"] = _attention(keys)
    fields |= adapters(keys)
    sequence = keys.count("sequence_len") or 512
    if not keys.flag("sample_packing") and not keys.flag("pad_to_sequence_len"):
        keys.note(
            f"data: every sequence is taken as full, {sequence} tokens; the file neither packs nor pads them "
            "(--lengths with --pad-to-longest tells what they are)"
        )
    keys.flag("pad_to_sequence_len")
    method = "reward" if keys.flag("reward_model") else keys.word("rl", METHODS)
    keys.finish(WITHOUT_COST)
    return FrameworkSettings(
        "axolotl",
        label,
        fields,
        None if base is None else model_of(base, folder),
        batch,
        accumulation,
        sequence,
        copies=copies if shards is not None else 1,
        stack=profile_of("liger") if liger else None,
        flags={"method": method} if method else {},
        read=keys.read,
        ignored=keys.ignored,
        notes=tuple(keys.notes),
    )


def _numbers(keys: Keys) -> dict[str, Any]:
    """Formats as axolotl chooses them (`utils/config/__init__.py`, `resolve_dtype`).

    They are BF16 where `bf16`, by itself "auto", or `bfloat16` is on; "auto" is off beside `fp16` (since its pull
    request 2620), but not beside `float16`. Else they are FP16 by `fp16`, `float16` or weights in 8 bits, else 32-bit.
    It reads `float32` nowhere.
    """
    if keys.data.get("bf16") in (None, "auto"):
        keys.data["bf16"] = not keys.data.get("fp16")
        if keys.data["bf16"] and keys.data.get("float16"):
            keys.note('precision: bf16, which is "auto" and wins over float16; bf16: false leaves it to float16')
    elif keys.data["bf16"] == "full":
        keys.data["bf16"] = True
    if keys.data.get("tf32") == "auto":  # on wherever a device has it
        keys.data["tf32"] = True
    sixteen = [keys.flag(name) for name in ("bf16", "bfloat16")], [keys.flag(name) for name in ("fp16", "float16")]
    rounded = keys.flag("tf32")
    if keys.flag("fp8"):
        precision = "fp8"
    elif any(sixteen[0]):
        precision = "bf16"
    elif any(sixteen[1]) or keys.data.get("load_in_8bit"):
        precision = "fp16"
    else:
        precision = "tf32" if rounded else "fp32"
    if keys.flag("float32") and not precision.endswith("32"):
        keys.note(f"precision: {precision}; axolotl reads float32 nowhere, bf16: false asks for 32 bits")
    optimizer = keys.word("optimizer", OPTIMIZERS)
    return {"precision": precision, "optimizer": optimizer or "adam"}


def _checkpoints(keys: Keys, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Recomputation, and activations on the host: of recomputed layers their inputs, else all that is kept."""
    found: dict[str, Any] = {}
    name, again = "activation_offloading", keys.data.get("gradient_checkpointing")
    if again == "offload_disk":
        keys.fail("gradient_checkpointing", "true, false or offload: disks are not modelled")
    if again == "offload":
        keys.data |= {"gradient_checkpointing": True, name: True}
    if keys.data.get(name) == "disk":
        keys.fail(name, "true, false or legacy: disks are not modelled")
    if keys.data.get(name) == "legacy":
        keys.data[name] = True
    if keys.flag(name):
        kept = [each for each in (fields.get("offload") or "").split(",") if each]
        found["offload"] = ",".join([*kept, "activations"])
    if keys.flag("gradient_checkpointing"):
        found["recompute"] = "full"
    return found


LOSSES: Final = {
    "cut_cross_entropy": "cut",
    "liger_fused_linear_cross_entropy": "fused-linear",
    "liger_cross_entropy": "fused",
    "flash_attn_cross_entropy": "fused",
    "unsloth_cross_entropy_loss": "fused",
}


def _kernels(keys: Keys) -> dict[str, Any]:
    """What follows the head, and what a compiler joins."""
    loss = next((kind for name, kind in LOSSES.items() if keys.flag(name)), "unfused")
    return {"loss": loss, "compiled": keys.flag("torch_compile")}


def _attention(keys: Keys) -> str | None:
    told = keys.word("attn_implementation", ATTENTION, "attention")
    on = [name for name in KERNELS if keys.flag(name)]
    kinds = {KERNELS[name] for name in on} | ({told} if told else set())
    if len(kinds) > 1:
        raise InputError(f"{keys.label}: found {' and '.join(on)}, expected one kernel of attention")
    return next(iter(kinds), "flash")


def adapters(keys: Keys) -> dict[str, Any]:
    """The fields of low-rank adapters over a base that may be stored in 4 bits."""
    kind = keys.take("adapter", str, choices=("lora", "qlora", ""))
    rank, targets = keys.count("lora_r"), keys.take("lora_target_modules", list)
    every, dora = keys.flag("lora_target_linear"), keys.flag("peft_use_dora")
    four, eight = keys.flag("load_in_4bit"), keys.flag("load_in_8bit")
    if not kind:
        if four or eight:
            raise InputError(f"{keys.label}: load_in_4bit and load_in_8bit need an adapter, found none")
        return {}
    if rank is None:
        raise InputError(f"{keys.label}: adapter {kind} needs lora_r, found none")
    found: dict[str, Any] = {"lora_rank": rank}
    if targets:
        found["lora_targets"] = ",".join(map(str, targets))
    elif every:
        found["lora_targets"] = "all-linear"
    if dora:
        found["dora"] = True
    if four or kind == "qlora":
        found["base_precision"] = "nf4"
    elif eight:
        found["base_precision"] = "int8"
    return found
