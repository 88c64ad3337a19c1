"""Tables of attention over keys and values, and over latents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .formats import LeftOutError, cache_of, precision_of
from .forms import Form, Setting
from .operation import Operation, Sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...systems.system import System
    from .operation import Arrays

WINDOWED: Final = Form("prompt", "gemma-2-9b", "local_attention", paths=("flash",))
FULL: Final = Form("prompt", "vit-base-p16-224", paths=("flash",))
CACHED: Final = Form("over_cache", phase="decode")
IN_PASSES: Final = Form("over_cache_in_passes", phase="decode")


def _attention(form: Form) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        kv, products = texts.get("kv_cache_dtype", ""), texts["attn_dtype"]
        narrow = precision_of(products, system) if "8" in products else None
        setting = Setting(system, software, narrow, cache_of(kv) if kv else None)
        name = "/".join(filter(None, (products, kv)))
        together = setting.stack.group_reads.groups
        if form is CACHED and together:
            return Sort("", name, IN_PASSES, setting, {"together": float(max(together))})
        return Sort("", name, form, setting)

    return sort


def _heads(rows: Arrays) -> Arrays:
    heads = {"micro_batch": rows["batch_size"], "num_attention_heads": rows["num_heads"], "head_dim": rows["head_dim"]}
    return heads | {"num_key_value_heads": rows.get("num_key_value_heads", rows["num_heads"])}


def _windows(rows: Arrays) -> Any:
    """Keys that a token attends to at most; infinite where a row has no window."""
    return np.where(rows["window_size"] > 0, rows["window_size"], np.inf)


def _prompt_sizes(rows: Arrays) -> Arrays:
    return _heads(rows) | {"prompt": rows["isl"], "sliding_window": np.minimum(_windows(rows), rows["isl"])}


def _cached_sizes(rows: Arrays) -> Arrays:
    """Sizes of attention over a cache; a group of more heads than go together has a pass for each of them."""
    sizes = _heads(rows) | {"row/context": np.minimum(rows["isl"] + rows["step"], _windows(rows))}
    if "together" in rows:
        group = np.ceil(sizes["num_attention_heads"] / sizes["num_key_value_heads"])
        sizes["row/passes"] = np.where(group <= rows["together"], 1.0, group)
    return sizes


ENCODED: Final = ("isl", "num_heads", "head_dim", "batch_size")
HEADS: Final = ("num_heads", "num_key_value_heads", "head_dim", "window_size")


# --- latent attention


def _latent(form: Form) -> Callable[[dict[str, str], str, System], Sort]:
    def sort(texts: dict[str, str], software: str, system: System) -> Sort:
        kv = texts["kv_cache_dtype"]
        if software == "vLLM" and "gemm_type" not in texts:
            raise LeftOutError("times of the host, which launches each kernel by itself: none is under 100 us")
        products = texts.get("gemm_type", texts["mla_dtype"])
        narrow = "gemm_type" not in texts and "fp8" in kv and "fp8" in system.matrix_rates
        # A kernel over a cache in 8 bits multiplies in 8 bits; the products of a module have the format it says.
        setting = Setting(system, software, "fp8" if narrow else precision_of(products, system), cache_of(kv))
        if form is EXPANDED and software == "SGLang" and texts["kernel_source"] in ABSORBING:
            return Sort("absorbed", f"{products}/{kv}", ABSORBED_PROMPT, setting)
        return Sort("", f"{products}/{kv}", form, setting)

    return sort


def _latent_form(name: str, phase: str, *paths: str) -> Form:
    return Form(name, "deepseek-v3", "latent_attention", phase=phase, paths=paths)


def _latent_prompt(rows: Arrays) -> Arrays:
    sizes = {"micro_batch": rows["batch_size"], "num_attention_heads": rows["num_heads"]}
    return sizes | {"prompt": rows["isl"]}


def _latent_cached(rows: Arrays) -> Arrays:
    sizes = {"micro_batch": rows["batch_size"], "num_attention_heads": rows["num_heads"]}
    return sizes | {"row/context": rows["isl"] + rows["step"]}


EXPANDED: Final = _latent_form("prompt", "prefill", "flash")
ABSORBED_PROMPT: Final = _latent_form("absorbed_prompt", "prefill")
ABSORBING: Final = ("flash_attention", "triton")
"""SGLang's kernels that its collector calls with latents: the server does so after a short prefix, and expands others
(python/sglang/srt/models/deepseek_common/attention_backend_handler.py)."""
ABSORBED: Final = {
    "mla_gen_pre": _latent_form("absorbed", "decode", "absorb_key"),
    "mla_gen_post": _latent_form("absorbed", "decode", "absorb_value"),
}


def _absorbed(texts: dict[str, str], software: str, system: System) -> Sort:
    name, dtype = texts["op_name"], texts["bmm_dtype"]
    if name not in ABSORBED:
        raise LeftOutError(f"{name}: not a product of absorbed attention")
    blocks = dtype == "fp8" and "block" in texts["kernel_source"]
    precision = precision_of("fp8_block" if blocks else dtype, system)
    return Sort(name, dtype, ABSORBED[name], Setting(system, software, precision))


def _absorbed_sizes(rows: Arrays) -> Arrays:
    sizes = {"micro_batch": rows["num_tokens"], "num_attention_heads": rows["num_heads"]}
    return sizes | {"row/context": 1.0}


LATENT: Final = ("mla_dtype", "kv_cache_dtype")
MODULE: Final = (*LATENT, "gemm_type")
OPERATIONS: Final = {
    "context_attention": Operation(
        ("attn_dtype", "kv_cache_dtype"),
        ("batch_size", "isl", *HEADS[:3]),
        HEADS,
        _attention(WINDOWED),
        _prompt_sizes,
        ("window_size",),
    ),
    "generation_attention": Operation(
        ("attn_dtype", "kv_cache_dtype"),
        ("batch_size", "isl", "step", *HEADS[:3]),
        HEADS,
        _attention(CACHED),
        _cached_sizes,
        ("window_size",),
    ),
    "encoder_attention": Operation(
        ("attn_dtype",),
        ENCODED,
        ("num_heads", "head_dim"),
        _attention(FULL),
        lambda rows: _heads(rows) | {"prompt": rows["isl"]},
    ),
    "context_mla": Operation(
        LATENT,
        ("num_heads", "batch_size", "isl"),
        ("num_heads",),
        _latent(EXPANDED),
        _latent_prompt,
    ),
    "generation_mla": Operation(
        LATENT,
        ("num_heads", "batch_size", "isl", "step"),
        ("num_heads",),
        _latent(_latent_form("over_cache", "decode")),
        _latent_cached,
    ),
    "mla_bmm": Operation(
        ("op_name", "bmm_dtype"), ("num_tokens", "num_heads"), ("num_heads",), _absorbed, _absorbed_sizes
    ),
    "mla_context_module": Operation(
        MODULE,
        ("num_heads", "batch_size", "isl"),
        ("num_heads",),
        _latent(_latent_form("prompt_module", "prefill")),
        _latent_prompt,
    ),
    "mla_generation_module": Operation(
        MODULE,
        ("num_heads", "batch_size", "isl", "step"),
        ("num_heads",),
        _latent(_latent_form("cache_module", "decode")),
        _latent_cached,
    ),
}
"""By the name of the table."""
