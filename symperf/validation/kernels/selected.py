"""Tables of whole attention modules whose keys an indexer selects: of latents, and of blocks of keys and values.

A row has new tokens after a context; its module ends with the projection of the results. Rows of a device's share of
the heads have an indexer that is whole beside latents, and one index head at least beside grouped heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from .formats import LeftOutError, cache_of, precision_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...systems.system import System
    from .operation import Arrays

MODELS: Final = {"DeepseekV32ForCausalLM": "deepseek-v3.2", "GlmMoeDsaForCausalLM": "glm-5"}
"""Architectures of latent attention, as tables name them: the model whose sizes their rows have."""
MSA: Final = "minimax-m3"
GROUPS: Final = 16
"""Query heads of a key-value head of MiniMax-M3."""


def _latents(phase: str) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        if texts["architecture"] not in MODELS:
            raise LeftOutError(f"{texts['architecture']}: no model of the catalogue has its sizes")
        kernel, name = texts["kernel_source"], f"selected_{phase}"
        label = "" if "skip_indexer" not in texts["op_name"] else "reused index"
        if "dense_mha" in kernel:
            raise LeftOutError("prompts that end before the selection starts, by kernels of attention to all keys")
        if software == "vLLM" and kernel == "default":
            raise LeftOutError("kernels of older releases, which multiply in 8 bits")
        form = Form(f"{name}_reused" if label else name, MODELS[texts["architecture"]], "latent_attention", phase=phase)
        return Sort(label, _format(texts), form, _setting(texts, software, system))

    return sort


def _blocks(phase: str) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        if software == "TensorRT-LLM" and texts["kernel_source"] == "default":
            raise LeftOutError("no kernel of the software for selected blocks: a path whose time grows with all pairs")
        if software == "TensorRT-LLM" and phase == "prefill":
            raise LeftOutError("times of a host that plans each call: 8,192 tokens take 18 times as long as 65,536")
        form = Form(f"selected_{phase}", MSA, "attention", "experts", phase=phase)
        return Sort("", _format(texts), form, _setting(texts, software, system))

    return sort


def _format(texts: dict[str, str]) -> str:
    return f"{texts['gemm_type']}/{texts['kv_cache_dtype']}"


def _setting(texts: dict[str, str], software: str, system: System) -> Setting:
    return Setting(system, software, precision_of(texts["gemm_type"], system), cache_of(texts["kv_cache_dtype"]))


def _new(rows: Arrays) -> Arrays:
    """Sizes of new tokens after a context."""
    sizes = {"micro_batch": rows["batch_size"], "num_attention_heads": rows["num_heads"]}
    return sizes | {"prompt": rows["isl"], "row/before": rows["step"]}


def _one(rows: Arrays) -> Arrays:
    """Sizes of one token after a context, which the last of its keys belongs to."""
    sizes = {"micro_batch": rows["batch_size"], "num_attention_heads": rows["num_heads"]}
    return sizes | {"row/context": rows["isl"] + rows["step"]}


def _grouped(sizes: Callable[[Arrays], Arrays]) -> Callable[[Arrays], Arrays]:
    def found(rows: Arrays) -> Arrays:
        groups = np.maximum(1, rows["num_heads"] // GROUPS)
        return sizes(rows) | {"num_key_value_heads": groups, "index_num_heads": groups}

    return found


TEXTS: Final = ("op_name", "architecture", "mla_dtype", "kv_cache_dtype", "gemm_type")
SHAPE: Final = ("num_heads", "batch_size", "isl", "step")
OPERATIONS: Final = {
    "dsa_context_module": Operation(TEXTS, SHAPE, SHAPE, _latents("prefill"), _new),
    "dsa_generation_module": Operation(TEXTS, SHAPE, SHAPE, _latents("decode"), _one),
    "msa_context_module": Operation(TEXTS, SHAPE, SHAPE, _blocks("prefill"), _grouped(_new)),
    "msa_generation_module": Operation(TEXTS, SHAPE, SHAPE, _blocks("decode"), _grouped(_one)),
}
"""By the name of the table."""
