"""Tables of whole attention modules of DeepSeek-V4: with selected compressed entries (CSA), and with all (HCA).

A row has new tokens after a context, and a device's share of heads and of groups of the output. What is not in its
columns is that of its model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .formats import LeftOutError, cache_of, precision_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...systems.system import System
    from .operation import Arrays

FLASH: Final[Mapping[str, float]] = {"hidden_size": 4096, "q_lora_rank": 1024, "index_top_keys": 512}
PRO: Final[Mapping[str, float]] = {"hidden_size": 7168, "q_lora_rank": 1536, "index_top_keys": 1024}
"""Sizes in which the two models differ beside their heads: config.json of DeepSeek-V4-Flash and DeepSeek-V4-Pro."""
PLAIN: Final = ("rtx-pro-6000",)
"""Devices that the software has no kernels of compressed attention for."""
HEADS_OF_A_GROUP: Final = 8
"""Heads of a group of the output: 64 in 8 groups, 128 in 16."""
KINDS: Final = {"csa": "selected_entries", "hca": "all_entries"}


def _modules(kind: str, phase: str) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        if system.name in PLAIN:
            raise LeftOutError("no kernels for this device: a path 10 to 100 times as long as those of others")
        name = texts["model"].rpartition("/")[2]
        sizes = next((each for word, each in (("V4-Flash", FLASH), ("V4-Pro", PRO)) if word in name), None)
        if sizes is None:
            raise LeftOutError(f"{name}: no model whose sizes are known")
        form = Form(f"compressed_{phase}_{kind}", "deepseek-v4-flash", "compressed_attention", phase=phase)
        products, kv = texts["gemm_type"], texts["kv_cache_dtype"]
        setting = Setting(system, software, precision_of(products, system), cache_of(kv))
        return Sort("", f"{products}/{kv.partition('_')[0]}", form, setting, sizes)

    return sort


def _sizes(rows: Arrays) -> Arrays:
    sizes = {name: rows[name] for name in (*FLASH, "compress_ratio")}
    return sizes | {
        "micro_batch": rows["batch_size"],
        "num_attention_heads": rows["num_heads"],
        "output_groups": rows["num_heads"] / HEADS_OF_A_GROUP,
    }


def _new(rows: Arrays) -> Arrays:
    """Sizes of new tokens after a context."""
    return _sizes(rows) | {"prompt": rows["isl"], "row/before": rows["step"]}


def _one(rows: Arrays) -> Arrays:
    """Sizes of one token after a context, which the last of its keys belongs to."""
    return _sizes(rows) | {"row/context": rows["isl"] + rows["step"]}


TEXTS: Final = ("model", "kv_cache_dtype", "gemm_type")
SHAPE: Final = ("num_heads", "batch_size", "isl", "step")
OPERATIONS: Final = {
    f"dsv4_{kind}_{word}_module": Operation(TEXTS, (*SHAPE, "compress_ratio"), SHAPE, _modules(kind, phase), sizes)
    for kind in KINDS
    for word, phase, sizes in (("context", "prefill", _new), ("generation", "decode", _one))
}
"""By the name of the table."""
