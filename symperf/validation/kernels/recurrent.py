"""Tables of recurrent layers: delta rules and Mamba-2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


def _recurrent(model: str, mixer: str) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        kernel = texts["kernel_source"]
        if kernel not in _SCANS:
            raise LeftOutError(f"{kernel}: no closed form")
        name, *paths = _SCANS[kernel]
        phase = "prefill" if name == "scan" else "decode"
        return Sort(kernel, "bfloat16", Form(name, model, mixer, "", phase, tuple(paths)), Setting(system, software))

    return sort


def _recurrent_sizes(rows: Arrays) -> Arrays:
    sizes = {"micro_batch": rows["batch_size"], "prompt": rows["seq_len"], "conv_kernel": rows["d_conv"]}
    return sizes | {"hidden_size": rows["d_model"]}


def _delta_sizes(rows: Arrays) -> Arrays:
    return _recurrent_sizes(rows) | {
        "linear_num_key_heads": rows["num_k_heads"],
        "linear_num_value_heads": rows["num_v_heads"],
        "linear_key_head_dim": rows["head_k_dim"],
        "linear_value_head_dim": rows["head_v_dim"],
    }


def _mamba_sizes(rows: Arrays) -> Arrays:
    return _recurrent_sizes(rows) | {
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
        (), (*RECURRENT, *DELTA), DELTA, _recurrent("qwen3-next-80b-a3b", "linear_attention"), _delta_sizes
    ),
    "kda": Operation(
        (), (*RECURRENT, *DELTA), DELTA, _recurrent("qwen3-next-80b-a3b", "linear_attention"), _delta_sizes
    ),
    "mamba2": Operation((), (*RECURRENT, *MAMBA), MAMBA, _recurrent("mamba2-2.7b", "ssm"), _mamba_sizes),
}
"""By the name of the table."""
