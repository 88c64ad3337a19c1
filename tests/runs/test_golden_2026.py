"""Architectures of 2025 and 2026, read from their files, against counts of PyTorch on instantiated modules."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.formulas.kernels import compressed_attention, sparse_selection
from symperf.models.catalogue import CATALOGUE
from symperf.models.model import make_model

NAMES = sorted(path.stem for path in (GOLDEN_2026 / "configs").glob("*.json"))


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with (GOLDEN_2026 / name).open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert found
    return found


@cache
def model(name: str) -> sf.Model:
    """The model of a golden file."""
    return sf.Model.load(GOLDEN_2026 / "configs" / f"{name}.json")


def whole(text: str) -> int:
    """A count; an empty cell is none."""
    return int(text or 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_loads(name: str) -> None:
    assert model(name).sizes["hidden_size"] > 1


def _part(name: str) -> str:
    """What the table of parameters is about: of a language model with encoders, that; else the whole."""
    towers = model(name).towers
    return "language" if towers and not towers[0].grid.apart else "total"


@pytest.mark.parametrize("row", rows("params.csv"), ids=lambda row: row["model"])
def test_parameters(row: dict[str, str]) -> None:
    """Total, tables and active ones; several kinds of layers of equal size may share a row."""
    found = sf.inspect(model(row["model"]))
    assert found["parameters"][_part(row["model"])] == int(row["params_total"])
    if row["model_type"] == "clip":  # whose row has the positions of both towers alone
        sizes, positions = model(row["model"]).sizes, 257 * 1024
        assert found["parameters"]["embedding"] - sizes["vocab_size"] * sizes["hidden_size"] + positions == 322304
        row["params_embedding"] = str(found["parameters"]["embedding"])
    assert found["parameters"]["embedding"] == int(row["params_embedding"])
    if row["model"] == "default-inkling_text":
        # The row takes six of the two shared experts as active too.
        row["params_active_per_token"] = str(int(row["params_active_per_token"]) - 66 * 4 * 3 * 6144 * 3072)
    assert found["parameters"]["active_per_token"] == int(row["params_active_per_token"])


WITHOUT_TOWER = {"default-glm5_next"}
"""Files whose encoder is not modelled yet, as a warning says: the language model alone is counted."""


@pytest.mark.parametrize("row", rows("parts.csv"), ids=lambda row: row["model"])
def test_parameters_of_parts(row: dict[str, str]) -> None:
    """Everything that the checkpoint has, the language model with its head, and the towers with their projectors."""
    answer = sf.inspect(model(row["model"]))
    found = answer["parameters"]
    if row["model"] in WITHOUT_TOWER:
        assert found["total"] == int(row["params_language_model"])
        return
    assert found["total"] == int(row["params_full_model"])
    if model(row["model"]).towers[0].grid.apart:  # their projections are of neither tower
        assert answer["parts"]["vision"]["encoder"] == int(row["params_vision_audio_and_projector"])
        return
    assert found["language"] == int(row["params_language_model"])
    towers = whole(row["params_vision_audio_and_projector"])
    assert (found["vision"] or 0) + (found["audio"] or 0) == towers
    assert found["total"] == found["language"] + towers == found["embedding"] + found["non_embedding"]


def test_heads_of_gemma_4_where_keys_are_not_the_values() -> None:
    """Its layers that see all keys have key-value heads of their own only where the two are one (transformers 5.24)."""
    data = json.loads(CATALOGUE.path("gemma-4-26b-a4b").read_text(encoding="utf-8"))
    assert sf.inspect(sf.Model.load("gemma-4-26b-a4b"))["parameters"]["total"] == 25_805_933_872
    for change in ({"attention_k_eq_v": False}, {}):
        text = {key: value for key, value in data["text_config"].items() if key != "attention_k_eq_v"} | change
        found = sf.inspect(make_model("gemma", "test", {**data, "text_config": text}, "gemma.json"))
        assert found["parameters"]["total"] == 25_906_859_312


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
    # The cache of xLSTM has a counter of positions beside its states.
    counter = 8 if row["model"] == "xlstm-7b" else 0
    assert parts["state_bytes_per_sequence"] + counter == whole(row["constant_state_bytes"])


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
    "other": "flops_other",
    "total": "flops_total",
}
SSM = {"projections": "flops_ssm_proj", "convolution": "flops_ssm_conv", "scan": "flops_ssm_core"}
FLOPS = rows("flops.csv")
OTHER = ("head_transform", "spectrum_embedding", "side_blocks", "side_projections")
PHASES = ("prefill", "encode", "decode", "decode_mla_absorbed", "decode_mla_absorbed_selected")
"""What is counted here; decoding of latents that are expanded at every step is not what any engine does."""


@pytest.mark.parametrize(
    "row", [row for row in FLOPS if row["phase"] in PHASES], ids=lambda r: f"{r['model']}-{r['phase']}-{r['q_len']}"
)
def test_flops_by_class(row: dict[str, str]) -> None:
    """To the last FLOP, with the exceptions of `test_inspection`.

    Of an encoder before a decoder `encode` is the encoder alone.

    In a step of decoding torch pads the convolution's window to k + 1 inputs, two results a token, or convolves and
    scans elementwise (RecurrentGemma, the gated delta rule); and transformers expands the cache of latents anew.
    """
    of = model(row["model"])
    decoding = row["phase"] not in ("prefill", "encode")
    more: dict[str, Any] = (
        {"context": int(row["kv_len"]) - int(row["q_len"]), "absorbed": "absorbed" in row["phase"]} if decoding else {}
    )
    more |= {"encoder_sequence": int(row["enc_len"])} if row["enc_len"] else {}
    found = sf.inspect(first_stack(of, row["phase"]), batch=int(row["batch"]), sequence=int(row["q_len"]), **more)
    found["flops_forward"]["other"] = sum(found["flops_forward"].get(name, 0) for name in OTHER)
    flops, counted = found["flops_forward"], {name: whole(row[column]) for name, column in CLASSES.items()}
    parts = {name: whole(row[column]) for name, column in SSM.items()}
    if found["flops_ssm"] and decoding:
        assert parts["convolution"] in (0, 2 * found["flops_ssm"].get("convolution", 0))
        assert parts["scan"] in (0, found["flops_ssm"].get("scan", 0))
        counted["total"] -= parts["convolution"] + parts["scan"]
        counted["total"] += sum(found["flops_ssm"].get(name, 0) for name in ("convolution", "scan"))
    elif found["flops_ssm"]:
        assert {name: found["flops_ssm"].get(name, 0) for name in SSM} == parts
    if row["phase"] == "decode" and of.architecture.has("latent_attention"):
        sizes = of.sizes
        width = sizes["num_attention_heads"] * (sizes["qk_nope_head_dim"] + sizes["v_head_dim"])
        layers = sum(sizes[kind.count] for kind in of.architecture.kinds if kind.mixer == "latent_attention")
        again = 2 * (int(row["kv_len"]) - 1) * layers * sizes["kv_lora_rank"] * width
        counted["projections"] -= again
        counted["total"] -= again
    if row["phase"] == "decode" and row["model"] == "default-recurrent_gemma":
        # Its step was counted without the keys that were there before.
        seen = (min(int(row["kv_len"]), of.sliding_window or 0) - 1) * counted["attention_scores"]
        counted = counted | {name: counted[name] + seen for name in ("attention_scores", "total")}
    if "convolutions" in flops:
        flops, counted = joined(flops, counted, decoding)
    assert {name: flops.get(name, 0) for name in CLASSES} == counted


NEAR = ("projections", "distance_biases", "convolutions", "mlp", "other")


def joined(flops: dict[str, int], counted: dict[str, int], decoding: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Classes of Inkling that torch counts elsewhere: convolutions, biases by distance, and shared experts.

    Torch has those of keys and values with the projections, that behind experts with the MLP, and that behind attention
    with what is other; and the two shared experts, one batched product, with the routed ones.
    """
    flops = dict(flops)
    if decoding:  # two results a token, as of all convolutions
        flops["total"] += flops["convolutions"]
        flops["convolutions"] *= 2
    for of in (flops, counted):
        of["projections"] = sum(of.get(name, 0) for name in NEAR)
        of |= {"experts": of["experts"] + of["shared_experts"], "shared_experts": 0, "mlp": 0, "other": 0}
    return flops, counted


def first_stack(of: sf.Model, phase: str) -> sf.Model:
    """The encoder alone of a model that has a decoder too, where that is asked for."""
    encoder = tuple(kind for kind in of.architecture.kinds if kind.encoder)
    if phase != "encode" or len(encoder) == len(of.architecture.kinds):
        return of
    layers = tuple((place, count) for place, count in of.layers if place < len(encoder))
    return replace(of, architecture=replace(of.architecture, kinds=encoder, head="none"), layers=layers)


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


@pytest.mark.parametrize("name", ["default-glm5_next"])
def test_runs_of_pooled_indexes_are_refused(name: str) -> None:
    """Counts are exact; a time that took them for dense attention would be silently another model's."""
    of, system = model(name), sf.System.load("h200-sxm")
    with pytest.raises(sf.InputError, match="not modelled yet"):
        sf.training(of, system, sf.Plan(), batch=8, sequence=128)
    with pytest.raises(sf.InputError, match="not modelled yet"):
        sf.inference(of, system, sf.Plan(precision="bf16"), batch=1, prompt=128, generate=8)
    with pytest.raises(sf.InputError, match="not modelled yet"):
        sf.serving(of, system, sf.Plan(precision="bf16"), prompt=128, generate=8)


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


@pytest.mark.parametrize("length", [5, 64, 100, 301, 320])
def test_pooled_indexers_select_whole_pools_and_the_tail(length: int) -> None:
    """Of each query the keys one by one: all of the best pools that are whole, and those behind the last of them."""
    pool, top, d = 16, 64, json.loads((GOLDEN_2026 / "configs" / "default-glm5_next.json").read_text(encoding="utf-8"))
    of = make_model("glm", "test", d | {"text_config": d["text_config"] | {"index_topk": top}}, "glm.json")
    pairs = sum(min(t // pool, top // pool) * pool + t % pool for t in range(1, length + 1))
    found = sf.inspect(of, sequence=length, causal_half=True)["flops_forward"]["attention_scores"]
    assert found == 11 * 2 * 64 * (256 + 256) * pairs


def test_words_of_a_file_with_linear_attention_apart_are_the_same_model() -> None:
    d = json.loads((GOLDEN_2026 / "configs" / "default-glm5_next.json").read_text(encoding="utf-8"))
    text = {key: value for key, value in d["text_config"].items() if not key.startswith("linear_")}
    text["linear_attn_config"] = {"num_heads": 64, "head_dim": 128, "short_conv_kernel_size": 4}
    text["layer_types"] = None
    told = make_model("glm", "test", d | {"text_config": text}, "glm.json")
    assert (told.sizes, told.layers) == (model("default-glm5_next").sizes, model("default-glm5_next").layers)
