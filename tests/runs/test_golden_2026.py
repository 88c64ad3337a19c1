"""Architectures of 2025 and 2026, read from their files, against counts of PyTorch on instantiated modules."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels import compressed_attention, sparse_selection
from symperf.models.model import make_model

WAITING = {
    *("clip-vit-large-patch14", "deberta-v3-large", "whisper-large-v3"),
    *("default-t5gemma", "default-phi4_multimodal", "default-gemma3n_text"),
    *("default-glm5_next", "default-inkling_text", "default-diffllama", "mimo-v2-flash"),
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
    "indexer_projections": "flops_indexer_proj",
    "indexer_scores": "flops_indexer_core",
    "compressor": "flops_compressor",
    "hyper_connections": "flops_hyper_conn",
    "patch_embedding": "flops_patch_embed",
    "head_transform": "flops_other",
    "total": "flops_total",
}
SSM = {"projections": "flops_ssm_proj", "convolution": "flops_ssm_conv", "scan": "flops_ssm_core"}
FLOPS = rows("flops.csv")
PHASES = ("prefill", "encode", "decode", "decode_mla_absorbed", "decode_mla_absorbed_selected")
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
    decoding = row["phase"] not in ("prefill", "encode")
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


SPARSE = [row for row in FLOPS if row["phase"] == "prefill" and any(row[f"flops_{name}"] != "0" for name in (
    "indexer_core", "compressor"))]  # fmt: skip


@pytest.mark.parametrize("row", SPARSE, ids=lambda row: f"{row['model']}-{row['q_len']}")
def test_selected_pairs(row: dict[str, str]) -> None:
    """Scores of the pairs alone that causal masks, windows and selection leave, to the last FLOP."""
    lengths = {"batch": int(row["batch"]), "sequence": int(row["q_len"])}
    found = sf.inspect(model(row["model"]), **lengths, causal_half=True)
    assert found["flops_forward"]["attention_scores"] == int(row["flops_attn_core_unmasked"])


STEPS = [row for row in FLOPS if row["phase"] == "decode" and row["model"] in ("deepseek-v4-flash", "minimax-m3-vl")]


@pytest.mark.parametrize("row", STEPS, ids=lambda row: f"{row['model']}-{row['kv_len']}")
def test_keys_that_a_step_sees(row: dict[str, str]) -> None:
    """Scores of one query with its window and selected entries, or with its selected blocks, to the last FLOP."""
    sizes, tokens = model(row["model"]).sizes, int(row["kv_len"])
    keys = 0
    for kind in model(row["model"]).architecture.kinds:
        if "block_index" in kind.traits:
            seen = sparse_selection.block_keys(tokens, sizes["index_top_blocks"], sizes["index_block_size"])
        elif kind.mixer == "attention":
            seen = tokens
        else:
            ratio, top = sizes[kind.size("compress_ratio")], sizes["index_top_keys"]
            entries = {
                "window_only": 0,
                "selected_entries": compressed_attention.selected_entries(tokens, ratio, top),
                "all_entries": compressed_attention.compressed_entries(tokens, ratio),
            }
            seen = min(tokens, sizes["sliding_window"]) + entries[kind.traits[0]]
        keys += sizes[kind.count] * seen
    assert 4 * sizes["num_attention_heads"] * sizes["head_dim"] * keys == int(row["flops_attn_core_unmasked"])


def test_reference_words_of_a_file_give_the_same_model() -> None:
    names = ("deepseek-v4-flash", "deepseek-v4-flash-sgl-fp8", "resaved-deepseek-v4-flash")
    first, *others = (model(name) for name in names)
    for other in others:
        assert (other.sizes, other.architecture) == (first.sizes, first.architecture)


def test_layers_that_share_an_indexer_have_none() -> None:
    """GLM-5.2 has 21 indexers in 78 layers: words and the period with its offset say the same."""
    data = json.loads((GOLDEN_2026 / "configs" / "glm-5.json").read_text(encoding="utf-8"))
    shared = [max(layer - 2, 0) % 4 != 0 for layer in range(78)]
    words = ["shared" if each else "full" for each in shared]
    letters = "".join("S" if each else "F" for each in shared)
    ways = ({"indexer_types": words}, {"index_topk_pattern": letters},
            {"index_topk_freq": 4, "index_skip_topk_offset": 3})  # fmt: skip
    every, *others = (sf.inspect(make_model("glm", "test", {**data, **way}, "glm.json")) for way in ({}, *ways))
    indexer = 2048 * 32 * 128 + 6144 * (128 + 32) + 2 * 128
    for found in others:
        assert every["parameters"]["total"] - found["parameters"]["total"] == 57 * indexer
        growing = [answer["kv_cache"]["growing_bytes_per_token"] for answer in (every, found)]
        assert growing[0] - growing[1] == 57 * 128 * 2
        assert found["flops_forward"]["indexer_scores"] * 78 == every["flops_forward"]["indexer_scores"] * 21


def test_block_selection_in_the_words_of_transformers_5_is_the_same_model() -> None:
    data = json.loads((GOLDEN_2026 / "configs" / "minimax-m3-vl.json").read_text(encoding="utf-8"))
    text = data["text_config"]
    nested = text.pop("sparse_attention_config")
    text["layer_types"] = [
        "minimax_m3_sparse" if each else "full_attention" for each in nested["sparse_attention_freq"]
    ]
    text["mlp_layer_types"] = ["sparse" if each else "dense" for each in text.pop("moe_layer_freq")]
    text |= {"index_n_heads": 4, "index_head_dim": 128, "index_topk_blocks": 16, "index_block_size": 128}
    found = make_model("minimax-m3-vl", "test", data, "minimax-m3-vl.json")
    assert (found.sizes, found.architecture) == (model("minimax-m3-vl").sizes, model("minimax-m3-vl").architecture)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("glm-5", {"indexer_types": ["shared"] * 78}),
        ("glm-5", {"indexer_types": ["full"] * 77}),
        ("glm-5", {"index_topk_pattern": "FX" * 39}),
        ("deepseek-v3.2", {"index_topk": None}),
        ("deepseek-v3.2", {"index_head_dim": 0}),
        ("deepseek-v4-flash", {"compress_ratios": [0, 8] * 22}),
        ("deepseek-v4-flash", {"compress_ratios": [4]}),
        ("deepseek-v4-flash", {"compress_ratios": None}),
        ("deepseek-v4-flash", {"num_key_value_heads": 2}),
        ("resaved-deepseek-v4-flash", {"mlp_layer_types": ["dense"] * 43}),
        ("resaved-deepseek-v4-flash", {"layer_types": ["full_attention"] * 43}),
    ],
)
def test_faults_of_sparse_attention_name_their_key(name: str, change: dict[str, Any]) -> None:
    data = json.loads((GOLDEN_2026 / "configs" / f"{name}.json").read_text(encoding="utf-8"))
    with pytest.raises(sf.InputError, match="|".join({*change, "index_n_heads"})):
        make_model(name, "test", {**data, **change}, f"{name}.json")


@pytest.mark.parametrize(
    "change",
    [
        {"use_sparse_attention": False},
        {"sparse_init_block": 1},
        {"sparse_topk_block": 8},
        {"sparse_index_dim": 0},
        {"sparse_attention_freq": [1]},
    ],
)
def test_faults_of_block_selection_name_their_key(change: dict[str, Any]) -> None:
    data = json.loads((GOLDEN_2026 / "configs" / "minimax-m3-vl.json").read_text(encoding="utf-8"))
    data["text_config"]["sparse_attention_config"] |= change
    with pytest.raises(sf.InputError, match=f"sparse_attention_config: .*{next(iter(change))}"):
        make_model("minimax-m3-vl", "test", data, "minimax-m3-vl.json")


@pytest.mark.parametrize(
    ("name", "experts", "attention", "fp8"),
    [
        ("deepseek-v4-flash", "mxfp4-weight", "fp8-block", 43 * 106954752 + 21 * 1024 * 64 * 128),
        ("deepseek-v4-flash-sgl-fp8", "fp8-block", "fp8-block", 43 * 106954752 + 21 * 1024 * 64 * 128),
    ],
)
def test_checkpoints_of_compressed_attention(name: str, experts: str, attention: str, fp8: int) -> None:
    """Attention and the queries of indexers in blocks of FP8; routed experts as `expert_dtype` says."""
    rows = {row["module_class"]: row for row in sf.inspect(model(name))["checkpoint"]["classes"]}
    assert (rows["routed_experts"]["format"], rows["attention"]["format"]) == (experts, attention)
    assert rows["attention"]["parameters"] == rows["attention"]["weight_bytes"] == fp8
    assert rows["routed_experts"]["parameters"] == 43 * 256 * 3 * 4096 * 2048
    assert (
        rows["routed_experts"]["weight_bytes"] * (2 if experts == "mxfp4-weight" else 1) == 43 * 256 * 3 * 4096 * 2048
    )
