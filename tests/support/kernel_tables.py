"""Small tables of measured kernels in the columns of aiconfigurator's collectors."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
HEAD: Row = {"system": "h100_sxm", "framework": "TRTLLM", "version": "1.3.0", "kernel_source": "torch_flow"}
GEMM = HEAD | {"gemm_dtype": "bfloat16", "m": 512, "n": 4096, "k": 4096, "latency": 0.05}
PROMPT = HEAD | {
    "attn_dtype": "bfloat16",
    "kv_cache_dtype": "bfloat16",
    "batch_size": 4,
    "isl": 300,
    "num_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "window_size": 0,
    "latency": 0.05,
}
GENERATION = PROMPT | {"isl": 1, "step": 300}
MLA = HEAD | {
    "mla_dtype": "bfloat16",
    "kv_cache_dtype": "bfloat16",
    "num_heads": 16,
    "batch_size": 16,
    "isl": 300,
    "latency": 0.1,
}
BMM = HEAD | {"op_name": "mla_gen_pre", "bmm_dtype": "bfloat16", "num_tokens": 16, "num_heads": 16, "latency": 0.01}
MOE = HEAD | {
    "moe_dtype": "bfloat16",
    "distribution": "balanced",
    "num_tokens": 128,
    "hidden_size": 7168,
    "inter_size": 2048,
    "topk": 8,
    "num_experts": 256,
    "moe_tp_size": 1,
    "moe_ep_size": 8,
    "latency": 1.0,
}
NCCL = HEAD | {
    "kernel_source": "NCCL",
    "op_name": "all_reduce",
    "nccl_dtype": "half",
    "num_gpus": 8,
    "message_size": 1 << 20,
    "latency": 0.05,
}


def write_table(folder: Path, name: str, rows: list[Row]) -> Path:
    """Write rows as a CSV file of a folder; the columns are those of the first row."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder
