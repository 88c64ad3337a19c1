"""Names and types of options as the frameworks' own sources have them, written down apart from the emitters."""

from __future__ import annotations

from typing import Any

MEGATRON: dict[str, Any] = {
    "--tensor-model-parallel-size": int,
    "--pipeline-model-parallel-size": int,
    "--decoder-first-pipeline-num-layers": int,
    "--decoder-last-pipeline-num-layers": int,
    "--pipeline-model-parallel-layout": str,
    "--num-virtual-stages-per-pipeline-rank": int,
    "--context-parallel-size": int,
    "--cp-comm-type": ["p2p", "a2a", "allgather", "a2a+p2p"],
    "--expert-model-parallel-size": int,
    "--expert-tensor-parallel-size": int,
    "--moe-token-dispatcher-type": ["allgather", "alltoall", "flex"],
    "--use-tp-pp-dp-mapping": bool,
    "--sequence-parallel": bool,
    "--micro-batch-size": int,
    "--global-batch-size": int,
    "--seq-length": int,
    "--recompute-granularity": ["full", "selective"],
    "--recompute-method": ["uniform", "block"],
    "--recompute-num-layers": int,
    "--recompute-modules": ["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"],
    "--use-distributed-optimizer": bool,
    "--use-megatron-fsdp": bool,
    "--data-parallel-sharding-strategy": ["no_shard", "optim", "optim_grads", "optim_grads_params"],
    "--ckpt-format": ["torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor"],
    "--num-distributed-optimizer-instances": int,
    "--overlap-grad-reduce": bool,
    "--overlap-param-gather": bool,
    "--bf16": bool,
    "--fp16": bool,
    "--fp8-format": ["e4m3", "hybrid"],
    "--fp4-format": ["e2m1"],
    "--attention-backend": ["flash", "fused", "unfused", "local", "auto"],
    "--attention-dropout": float,
    "--hidden-dropout": float,
    "--optimizer": ["adam", "sgd", "muon", "dist_muon"],
    "--optimizer-cpu-offload": bool,
    "--cpu-offloading-num-layers": int,
}
VLLM: dict[str, Any] = {
    "--tensor-parallel-size": int,
    "--pipeline-parallel-size": int,
    "--data-parallel-size": int,
    "--enable-expert-parallel": bool,
    "--dtype": ["auto", "half", "float16", "bfloat16", "float", "float32"],
    "--quantization": str,
    "--max-num-seqs": int,
    "--max-model-len": int,
}
TRTLLM: dict[str, Any] = {
    "--tp_size": int,
    "--pp_size": int,
    "--ep_size": int,
    "--max_batch_size": int,
    "--max_seq_len": int,
}
FLAGS = {"megatron": MEGATRON, "vllm": VLLM, "trtllm": TRTLLM}
TORCHTITAN: dict[str, dict[str, type]] = {
    "model": {"converters": list},
    "optimizer": {"name": str},
    "training": {
        "local_batch_size": int,
        "global_batch_size": int,
        "seq_len": int,
        "enable_cpu_offload": bool,
        "mixed_precision_param": str,
    },
    "parallelism": {
        "data_parallel_replicate_degree": int,
        "data_parallel_shard_degree": int,
        "fsdp_reshard_after_forward": str,
        "tensor_parallel_degree": int,
        "pipeline_parallel_degree": int,
        "pipeline_parallel_schedule": str,
        "pipeline_parallel_microbatch_size": int,
        "pipeline_parallel_layers_per_stage": int,
        "pipeline_parallel_first_stage_less_layers": int,
        "pipeline_parallel_last_stage_less_layers": int,
        "context_parallel_degree": int,
        "context_parallel_rotate_method": str,
        "expert_parallel_degree": int,
    },
    "activation_checkpoint": {"mode": str, "selective_ac_option": str},
}
DEEPSPEED: dict[str, Any] = {
    "train_batch_size": int,
    "train_micro_batch_size_per_gpu": int,
    "gradient_accumulation_steps": int,
    "optimizer": {"type": str},
    "bf16": {"enabled": bool},
    "fp16": {"enabled": bool},
    "zero_optimization": {
        "stage": int,
        "overlap_comm": bool,
        "offload_optimizer": {"device": str},
        "offload_param": {"device": str},
    },
    "tensor_parallel": {"autotp_size": int, "tp_overlap_comm": bool},
    "expert_parallel": {"enabled": bool, "autoep_size": int},
    "activation_checkpointing": {"cpu_checkpointing": bool},
}
GROUPS = ("model", "train", "optimizer", "ddp", "dataset", "checkpoint", "dist")
"""Groups of Megatron Bridge's configuration."""
