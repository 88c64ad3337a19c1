"""Names and types of options as the frameworks' own sources have them, written down apart from the emitters."""

from __future__ import annotations

import argparse
import ast
import json
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
    "--fp32-residual-connection": bool,
    "--micro-batch-size": int,
    "--global-batch-size": int,
    "--seq-length": int,
    "--recompute-granularity": ["full", "selective"],
    "--recompute-method": ["uniform", "block"],
    "--recompute-num-layers": int,
    "--recompute-modules": ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"),
    "--use-distributed-optimizer": bool,
    "--use-megatron-fsdp": bool,
    "--data-parallel-sharding-strategy": ["no_shard", "optim", "optim_grads", "optim_grads_params"],
    "--ckpt-format": ["torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor"],
    "--num-distributed-optimizer-instances": int,
    "--overlap-grad-reduce": bool,
    "--overlap-param-gather": bool,
    "--no-overlap-p2p-communication": bool,
    "--bf16": bool,
    "--fp16": bool,
    "--fp8-format": ["e4m3", "hybrid"],
    "--fp4-format": ["e2m1"],
    "--attention-backend": ["flash", "fused", "unfused", "local", "auto"],
    "--attention-dropout": float,
    "--hidden-dropout": float,
    "--cross-entropy-loss-fusion": bool,
    "--make-vocab-size-divisible-by": int,
    "--optimizer": ["adam", "sgd", "muon", "dist_muon"],
    "--optimizer-cpu-offload": bool,
    "--cpu-offloading-num-layers": int,
    "--fine-grained-activation-offloading": bool,
    "--offload-modules": ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act"),
}
VLLM: dict[str, Any] = {
    "--tensor-parallel-size": int,
    "--pipeline-parallel-size": int,
    "--data-parallel-size": int,
    "--enable-expert-parallel": bool,
    "--dtype": ["auto", "half", "float16", "bfloat16", "float", "float32"],
    "--quantization": str,
    "--kv-cache-dtype": ["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla"],
    "--max-num-seqs": int,
    "--gpu-memory-utilization": float,
    "--max-num-batched-tokens": int,
    "--max-model-len": int,
    "--kv-transfer-config": json.loads,
    "--prefill-context-parallel-size": int,
    "--decode-context-parallel-size": int,
    "--enable-eplb": bool,
    "--eplb-config": json.loads,
    "--all2all-backend": [
        "naive",
        "pplx",
        "deepep_high_throughput",
        "deepep_low_latency",
        "mori",
        "allgather_reducescatter",
        "flashinfer_all2allv",
    ],
}
SGLANG: dict[str, Any] = {
    "--tp-size": int,
    "--pp-size": int,
    "--dp-size": int,
    "--ep-size": int,
    "--dcp-size": int,
    "--moe-a2a-backend": ["none", "deepep", "mooncake", "nixl", "mori", "flashinfer", "megamoe", "deepep_v2", "pplx"],
    "--ep-num-redundant-experts": int,
    "--enable-dp-attention": bool,
    "--enable-dp-lm-head": bool,
    "--moe-dense-tp-size": int,
    "--dtype": ["auto", "half", "float16", "bfloat16", "float", "float32"],
    "--quantization": str,
    "--kv-cache-dtype": ["auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16"],
    "--context-length": int,
    "--max-running-requests": int,
    "--mem-fraction-static": float,
    "--chunked-prefill-size": int,
    "--enable-mixed-chunk": bool,
    "--disaggregation-mode": ["null", "prefill", "decode"],
    "--disaggregation-transfer-backend": ["mooncake", "nixl", "ascend", "fake", "mori", "mooncake_tcp"],
}
TRTLLM: dict[str, Any] = {
    "--tp_size": int,
    "--pp_size": int,
    "--ep_size": int,
    "--max_batch_size": int,
    "--free_gpu_memory_fraction": float,
    "--max_num_tokens": int,
    "--max_seq_len": int,
    "--enable_chunked_prefill": bool,
    "--config": str,
}
DYNAMO_TRTLLM: dict[str, Any] = {
    "--model": str,
    "--tensor-parallel-size": int,
    "--pipeline-parallel-size": int,
    "--expert-parallel-size": int,
    "--enable-attention-dp": bool,
    "--max-batch-size": int,
    "--free-gpu-memory-fraction": float,
    "--max-num-tokens": int,
    "--max-seq-len": int,
    "--override-engine-args": ast.literal_eval,
    "--disaggregation-mode": ["agg", "pd", "prefill", "decode", "encode"],
}
DYNAMO: dict[str, dict[str, Any]] = {
    "vllm": {**VLLM, "--model": str, "--disaggregation-mode": ["agg", "prefill", "decode"]},
    "sglang": {**SGLANG, "--model-path": str},
    "trtllm": DYNAMO_TRTLLM,
}
FLAGS = {"megatron": MEGATRON, "vllm": VLLM, "sglang": SGLANG, "trtllm": TRTLLM}


def parse_flags(words: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """The flags of a command, by a parser that knows the documented names and types."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for name, kind in known.items():
        if kind is bool:
            parser.add_argument(name, action="store_true", default=None)
        else:
            choices = kind if isinstance(kind, list | tuple) else None
            several = "*" if isinstance(kind, tuple) else None  # --recompute-modules core_attn mlp
            parser.add_argument(name, nargs=several, type=str if choices else kind, choices=choices)
    return {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}


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
    "activation_checkpointing": {"cpu_checkpointing": bool, "partition_activations": bool},
}
GROUPS = ("model", "train", "optimizer", "ddp", "dataset", "checkpoint", "dist")
"""Groups of Megatron Bridge's configuration."""
