"""Tables of recurrent layers: delta rules and Mamba-2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from . import caches
from .formats import LeftOutError
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...systems.system import System
    from .operation import Arrays

_SCANS: Final = {
    "causal_conv1d_fn": ("scan", "convolution"),
    "causal_conv1d_update": ("step", "convolution_update"),
    "chunk_gated_delta_rule": ("scan", "qk_norm", "scan"),
    "chunk_gated_delta_rule_flashinfer": ("scan", "qk_norm", "scan"),
    "chunk_gated_delta_rule_triton": ("scan", "qk_norm", "scan"),
    "fused_recurrent_gated_delta_rule": ("step", "state_update"),
    "fused_recurrent_gated_delta_rule_packed_decode": ("step", "state_update"),
    **dict.fromkeys(("chunk_kda", "chunk_kda_with_fused_gate", "flashkda_fwd"), ("scan", "qk_norm", "scan")),
    "causal_conv1d_fn_qkv3": ("scan", "convolution"),
    **dict.fromkeys(
        (
            "fused_kda_decode",
            "fused_kda_decode_mtp_dspark",
            "fused_recurrent_kda",
            "fused_recurrent_kda_packed_decode",
            "fused_sigmoid_gating_delta_rule_update",
            "kda_fused_decode",
        ),
        ("step", "state_update"),
    ),
    "mamba_chunk_scan_combined": ("scan", "scan"),
}
"""Kernels: the function of `kernels` that has their operations, and how their paths end."""


def _recurrent(model: str, mixer: str, table: str) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        kernel = texts["kernel_source"]
        if kernel not in _SCANS:
            raise LeftOutError(f"{kernel}: no closed form")
        name, *paths = _SCANS[kernel]
        phase = "prefill" if name == "scan" else "decode"
        form = Form(name, model, mixer, "", phase, tuple(paths))
        values = {"convolves": float("convolution" in paths[0]), "steps": float(name == "step")}
        # The collector for this software convolves as many channels as keys have.
        values["keys_alone"] = float(table == "gdn" and software == "TensorRT-LLM" and values["convolves"])
        capacity, share = caches.load().get(texts["system"], (0.0, 1.0))
        values |= {"near_bytes": capacity, "near_share": share, "far": system.quantities["memory_bandwidth"].value}
        return Sort(kernel, "bfloat16", form, Setting(system, software), values)

    return sort


def _recurrent_sizes(rows: Arrays, channels: Arrays, state: Arrays) -> Arrays:
    """Sizes of any table: the bandwidth is that of the cache where repetitions find their operands there.

    Args:
        rows: columns of the table, and values of the sort.
        channels: that the convolution runs over.
        state: elements of the states of a sequence.
    """
    batch, tokens = rows["batch_size"], rows["seq_len"]
    if rows["convolves"]:
        # A step shifts its window, and writes its results, in place.
        held = 2 * batch * channels * (rows["d_conv"] - 1 + tokens if rows["steps"] else 2 * tokens)
    else:
        # Chunks of a scan pass through kernels one after the other, whatever the cache holds.
        held = 4 * batch * tokens * state if rows["steps"] else np.full(np.shape(batch), np.inf)
    near = np.where(held <= rows["near_bytes"], rows["near_share"], 1.0)
    sizes = {"micro_batch": batch, "prompt": tokens, "conv_kernel": rows["d_conv"], "hidden_size": rows["d_model"]}
    return sizes | {"memory_bandwidth": rows["far"] / near}


def _delta_sizes(rows: Arrays) -> Arrays:
    keys, values = rows["num_k_heads"] * rows["head_k_dim"], rows["num_v_heads"] * rows["head_v_dim"]
    channels = keys if rows["keys_alone"] else 2 * keys + values
    alone = 0.5 if rows["keys_alone"] else 1.0
    return _recurrent_sizes(rows, channels, values * rows["head_k_dim"]) | {
        "linear_num_key_heads": alone * rows["num_k_heads"],
        "linear_num_value_heads": (0 if rows["keys_alone"] else 1) * rows["num_v_heads"],
        "linear_key_head_dim": rows["head_k_dim"],
        "linear_value_head_dim": rows["head_v_dim"],
    }


def _mamba_sizes(rows: Arrays) -> Arrays:
    inner, shared = rows["nheads"] * rows["head_dim"], 2 * rows["n_groups"] * rows["d_state"]
    return _recurrent_sizes(rows, inner + shared, inner * rows["d_state"]) | {
        "ssm_num_heads": rows["nheads"],
        "ssm_head_dim": rows["head_dim"],
        "ssm_state_size": rows["d_state"],
        "ssm_groups": rows["n_groups"],
        "ssm_chunk_size": rows["chunk_size"],
    }


DELTA: Final = ("d_model", "d_conv", "num_k_heads", "head_k_dim", "num_v_heads", "head_v_dim")
MAMBA: Final = ("d_model", "d_state", "d_conv", "nheads", "head_dim", "n_groups", "chunk_size")


RECURRENT: Final = ("batch_size", "seq_len")
OPERATIONS: Final = {
    "gdn": Operation(
        (), (*RECURRENT, *DELTA), DELTA, _recurrent("qwen3-next-80b-a3b", "linear_attention", "gdn"), _delta_sizes
    ),
    # Few models were measured: whole sizes of a call are kept apart, not whole models.
    "kda": Operation(
        (),
        (*RECURRENT, *DELTA),
        (*RECURRENT, *DELTA),
        _recurrent("kimi-linear-48b-a3b", "linear_attention", "kda"),
        _delta_sizes,
    ),
    "mamba2": Operation(
        (), (*RECURRENT, *MAMBA), (*RECURRENT, *MAMBA), _recurrent("mamba2-2.7b", "ssm", "mamba2"), _mamba_sizes
    ),
}
"""By the name of the table."""
