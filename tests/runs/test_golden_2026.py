"""Architectures of 2025 and 2026, read from their files, against counts of PyTorch on instantiated modules."""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf

WAITING = {
    *("clip-vit-large-patch14", "deberta-v3-large", "dinov2-giant", "modernbert-large", "whisper-large-v3"),
    *("default-t5gemma", "default-phi4_multimodal", "default-gemma3n_text"),
    *("deepseek-v3.2", "glm-5", "deepseek-v4-flash", "deepseek-v4-flash-sgl-fp8", "resaved-deepseek-v4-flash"),
    *("minimax-m3-vl", "default-glm5_next", "default-inkling_text", "default-diffllama", "mimo-v2-flash"),
    *("default-kimi_linear", "kimi-k3", "falcon-h1-34b", "xlstm-7b", "default-zamba2"),
    *("default-recurrent_gemma", "default-olmo_hybrid", "default-minimax", "step-3.7-flash"),
}
"""Files that are refused: their mixers or towers are not modelled yet."""
NAMES = sorted(path.stem for path in (GOLDEN_2026 / "configs").glob("*.json"))


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table whose model loads."""
    with (GOLDEN_2026 / name).open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if row["model"] not in WAITING]
    assert found
    return found


@cache
def model(name: str) -> sf.Model:
    """The model of a golden file."""
    return sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json")


def whole(text: str) -> int:
    """A count; an empty cell is none."""
    return int(text or 0)


def test_files_that_wait_are_refused_and_no_other_is() -> None:
    assert set(NAMES) >= WAITING
    for name in WAITING:
        with pytest.raises(sf.InputError):
            model(name)
    for name in set(NAMES) - WAITING:
        assert model(name).sizes["hidden_size"] > 1


@pytest.mark.parametrize("row", rows("params.csv"), ids=lambda row: row["model"])
def test_parameters(row: dict[str, str]) -> None:
    """Total, tables and active ones; several kinds of layers of equal size may share a row."""
    found = sf.inspect(model(row["model"]))
    assert found["parameters"]["total"] == int(row["params_total"])
    assert found["parameters"]["embedding"] == int(row["params_embedding"])
    assert found["parameters"]["active_per_token"] == int(row["params_active_per_token"])


def test_a_search_over_shapes_gives_the_size_of_its_checkpoint() -> None:
    """Every layer has its own shape: 49,867,145,216 parameters in the hub's checkpoint."""
    (row,) = [row for row in rows("published_only.csv") if row["model"] == "nemotron-super-49b"]
    found = sf.inspect(model("nemotron-super-49b"))
    assert found["parameters"]["total"] == int(row["exact_total"]) == 49_867_145_216
    widths = {28672: 49, 17920: 1, 14336: 6, 7168: 10, 5632: 8, 2816: 6}
    counted: dict[int, int] = {}
    for kind in model("nemotron-super-49b").architecture.kinds:
        sizes = model("nemotron-super-49b").sizes
        width = sizes[kind.size("intermediate_size")]
        counted[width] = counted.get(width, 0) + sizes[kind.count]
    assert counted == widths


@pytest.mark.parametrize("row", rows("kv.csv"), ids=lambda row: row["model"])
def test_cache_and_state(row: dict[str, str]) -> None:
    parts = sf.inspect(model(row["model"]))["kv_cache"]
    assert parts["growing_bytes_per_token"] == int(row["bytes_per_token_growing"])
    assert parts["window_bytes_per_token"] == whole(row["bytes_per_token_within_window"])
    assert parts["state_bytes_per_sequence"] == whole(row["constant_state_bytes"])


CLASSES = {
    "lm_head": "flops_lm_head",
    "projections": "flops_attn_proj",
    "attention_scores": "flops_attn_core",
    "mlp": "flops_mlp_dense",
    "router": "flops_router",
    "experts": "flops_moe_routed",
    "shared_experts": "flops_moe_shared",
    "expert_projections": "flops_moe_latent",
    "cross_projections": "flops_cross_attn_proj",
    "cross_attention_scores": "flops_cross_attn_core",
    "patch_embedding": "flops_patch_embed",
    "head_transform": "flops_other",
    "total": "flops_total",
}
SSM = {"projections": "flops_ssm_proj", "convolution": "flops_ssm_conv", "scan": "flops_ssm_core"}
FLOPS = rows("flops.csv")
PHASES = ("prefill", "decode", "decode_mla_absorbed")
"""What is counted here; decoding of latents that are expanded at every step is not what any engine does."""


@pytest.mark.parametrize(
    "row", [row for row in FLOPS if row["phase"] in PHASES], ids=lambda r: f"{r['model']}-{r['phase']}-{r['q_len']}"
)
def test_flops_by_class(row: dict[str, str]) -> None:
    """To the last FLOP, with the exceptions of `test_inspection`.

    In a step of decoding torch pads the convolution's window to k + 1 inputs, two results a token; the gated delta rule
    steps elementwise there; and transformers expands the cache of latents anew.
    """
    of = model(row["model"])
    decoding = row["phase"] != "prefill"
    more: dict[str, Any] = (
        {"context": int(row["kv_len"]) - int(row["q_len"]), "absorbed": "absorbed" in row["phase"]} if decoding else {}
    )
    found = sf.inspect(of, batch=int(row["batch"]), sequence=int(row["q_len"]), **more)
    flops, counted = found["flops_forward"], {name: whole(row[column]) for name, column in CLASSES.items()}
    parts = {name: whole(row[column]) for name, column in SSM.items()}
    if found["flops_ssm"] and decoding:
        assert parts["convolution"] == 2 * found["flops_ssm"]["convolution"]
        assert parts["scan"] in (0, found["flops_ssm"].get("scan", 0))
        counted["total"] -= parts["convolution"] + parts["scan"]
        counted["total"] += sum(found["flops_ssm"].get(name, 0) for name in ("convolution", "scan"))
    elif found["flops_ssm"]:
        assert {name: found["flops_ssm"].get(name, 0) for name in SSM} == parts
    if row["phase"] == "decode" and of.architecture.has("latent_attention"):
        sizes = of.sizes
        width = sizes["num_attention_heads"] * (sizes["qk_nope_head_dim"] + sizes["v_head_dim"])
        again = 2 * (int(row["kv_len"]) - 1) * sizes["num_layers"] * sizes["kv_lora_rank"] * width
        counted["projections"] -= again
        counted["total"] -= again
    assert {name: flops.get(name, 0) for name in CLASSES} == counted
