"""`inspect` against numbers that PyTorch counted on real architectures, to the last digit."""

from __future__ import annotations

import csv
import json
import math
from typing import Any

import pytest
import sympy
from support.paths import GOLDEN

import symperf as sf
from symperf.formulas.kernels import windows
from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.models import counts


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a golden table."""
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def golden_model(name: str) -> sf.Model:
    """The model as it was counted; its config is beside the tables where the catalogue's is another."""
    own = GOLDEN / "configs" / f"{name}.json"
    return sf.Model.load(own if own.exists() else name)


def whole(text: str) -> int:
    """A count; an empty cell is none."""
    return int(text or 0)


PART_OF = {"gemma4": "gemma4_text", "llama4": "llama4_text", "kimi_k2": "deepseek_v3"}
"""What the row calls a family: its language model's name, or the class that it was counted with."""


@pytest.mark.parametrize("row", rows("params.csv"), ids=lambda row: row["model"])
def test_parameters(row: dict[str, str]) -> None:
    """Total, tables, the rest, active and per layer."""
    model = golden_model(row["model"])
    found = sf.inspect(model)
    parts = found["parameters"]
    beside = sum(parts[name] or 0 for name in ("vision", "audio")) if model.towers else 0
    part = "vision" if model.architecture.patches else "language"
    assert {name: parts[name] for name in (part, "embedding", "active_per_token", "per_layer")} == {
        part: int(row["params_total"]),
        "embedding": int(row["params_embedding"]),
        "active_per_token": int(row["params_active_per_token"]),
        "per_layer": int(row["params_per_layer"]) if row["params_per_layer"] else None,
    }
    assert parts["total"] == int(row["params_total"]) + beside == parts["embedding"] + parts["non_embedding"]
    assert PART_OF.get(found["family"], found["family"]) == row["model_type"]
    assert sum(layer["count"] for layer in found["layers"]) == int(row["num_layers"]) == model.sizes["num_layers"]


@pytest.mark.parametrize("row", rows("params.csv"), ids=lambda row: row["model"])
def test_parameters_of_each_kind_of_layer(row: dict[str, str]) -> None:
    """Layers of one size are as many, and as large, as torch has them.

    In T5 the first layer of a stack holds the table of relative positions; here it is counted with the embeddings.
    """
    model = golden_model(row["model"])
    found = sf.inspect(model)
    counted: dict[int, int] = {}
    for group in json.loads(row["layer_groups_json"]).values():
        for entry in group:
            table = model.sizes.get("relative_rows", 0) * model.sizes["num_attention_heads"]
            size = entry["params"] - (table if entry["layers"] == 1 and table else 0)
            counted[size] = counted.get(size, 0) + entry["layers"]
    ours: dict[int, int] = {}
    for layer in found["layers"]:
        size = found["parameters_per_layer"][layer["kind"]]
        ours[size] = ours.get(size, 0) + layer["count"]
    assert ours == counted


def test_layers_that_predict_further_tokens_are_apart() -> None:
    """DeepSeek-V3 has 14B parameters more on disk (its README); two norms' worth of a table are shared."""
    found = sf.inspect(sf.Model.load("deepseek-v3"))
    assert 11.5e9 < found["multi_token_parameters"] < 14e9
    assert sf.inspect(sf.Model.load("kimi-k2"))["multi_token_parameters"] == 0


@pytest.mark.parametrize("row", rows("kv.csv"), ids=lambda row: row["model"])
def test_kv_bytes_per_token(row: dict[str, str]) -> None:
    """Bytes of a token in the caches of all layers while no window is full, and their parts.

    Falcon-40B's row is the exception that its note tells: transformers caches keys and values of all query heads.
    """
    found = sf.inspect(golden_model(row["model"]))
    parts = found["kv_cache"]
    assert row["cache_dtype"] == "bfloat16"
    growing = whole(row["bytes_per_token_theory_shapes"]) or int(row["bytes_per_token_growing"])
    assert parts["growing_bytes_per_token"] == growing
    assert parts["window_bytes_per_token"] == int(row["bytes_per_token_within_window"])
    assert found["kv_bytes_per_token"] == growing + int(row["bytes_per_token_within_window"])
    assert parts["state_bytes_per_sequence"] == int(row["constant_state_bytes"])
    assert parts["cross_bytes_per_encoder_token"] == whole(row["cross_attention_bytes_per_encoder_token"])


@pytest.mark.parametrize("row", rows("kv.csv"), ids=lambda row: row["model"])
@pytest.mark.parametrize("length", [2048, 8192])
def test_kv_bytes_of_a_sequence(row: dict[str, str], length: int) -> None:
    """Windows stop the growth: they hold `window` tokens here, one less between two steps in transformers."""
    if not row[f"kv_bytes_at_{length}"]:
        return
    found = sf.inspect(golden_model(row["model"]), sequence=length)["kv_cache"]
    counted = int(row[f"kv_bytes_at_{length}"])
    if row["bytes_per_token_theory_shapes"]:
        counted = counted // int(row["bytes_per_token_growing"]) * int(row["bytes_per_token_theory_shapes"])
    full = found["window_tokens"] is not None and length >= found["window_tokens"]
    assert found["bytes_per_sequence"] == counted + (found["window_bytes_per_token"] if full else 0)


CLASSES = {
    "lm_head": "flops_lm_head",
    "projections": "flops_attn_proj",
    "attention_scores": "flops_attn_core",
    "mlp": "flops_mlp_dense",
    "router": "flops_router",
    "experts": "flops_moe_routed",
    "shared_experts": "flops_moe_shared",
    "cross_projections": "flops_cross_attn_proj",
    "cross_attention_scores": "flops_cross_attn_core",
    "patch_embedding": "flops_patch_embed",
    "head_transform": "flops_other",
    "total": "flops_total",
}
SSM = {"projections": "flops_ssm_proj", "convolution": "flops_ssm_conv", "scan": "flops_ssm_core"}
EAGER = [row for row in rows("flops.csv") if row["attn_impl"] != "fused flash op" and "ckpt" not in row["phase"]]
TWO_STACKS = ("t5-base", "bart-large-cnn")


def _of(*phases: str) -> list[dict[str, str]]:
    found = [row for row in EAGER if row["phase"] in phases]
    assert found
    return found


def _fields(row: dict[str, str]) -> str:
    return "-".join(row[key] for key in ("model", "phase", "batch", "q_len", "kv_len"))


def _inspected(row: dict[str, str], **more: Any) -> dict[str, Any]:
    encoder = {"encoder_sequence": int(row["enc_len"])} if row["enc_len"] else {}
    work: dict[str, Any] = {"batch": int(row["batch"]), "sequence": int(row["q_len"])}
    return sf.inspect(golden_model(row["model"]), **work, **encoder, **more)


def _counted(row: dict[str, str]) -> dict[str, int]:
    counted = {name: whole(row[column]) for name, column in CLASSES.items()}
    return counted | {"ssm": sum(whole(row[column]) for column in SSM.values())}


def _always(flops: dict[str, int]) -> dict[str, int]:
    """FLOPs by class, with 0 for classes that the model does not have."""
    assert all(flops[name] > 0 for name in flops.keys() - {"attention_scores", "projections", "mlp", "lm_head"})
    return {name: flops.get(name, 0) for name in (*CLASSES, "ssm")}


@pytest.mark.parametrize("row", _of("prefill", "train_fwd"), ids=_fields)
def test_forward_flops_by_class(row: dict[str, str]) -> None:
    """Every class of products of a forward pass, and their total; attention counted in full."""
    found = _inspected(row)
    assert _always(found["flops_forward"]) == _counted(row)
    assert found["flops_ssm"] == ({n: int(row[c]) for n, c in SSM.items()} if whole(row["flops_ssm_proj"]) else None)


@pytest.mark.parametrize("row", [r for r in _of("encode") if r["model"] not in TWO_STACKS], ids=_fields)
def test_encoders(row: dict[str, str]) -> None:
    """BERT with its head for masked tokens, ViT with its patches and its classifier of one token an image."""
    assert _always(_inspected(row)["flops_forward"]) == _counted(row)


@pytest.mark.parametrize("row", [r for r in _of("encode") if r["model"] in TWO_STACKS], ids=_fields)
def test_encoders_of_two_stacks(row: dict[str, str]) -> None:
    """The encoder alone: what a forward pass has beyond the decoder's work on cached keys and values.

    Generation with a context of the same tokens runs the decoder only; the keys and values of cross-attention are
    the rest, which the encoder's row does not have.
    """
    whole_pass = _inspected(row)["flops_forward"]
    decoder = _inspected(row, context=0)["flops_forward"]
    cross = whole_pass["cross_projections"] - decoder["cross_projections"]
    classes = {name: whole_pass[name] - decoder[name] for name in ("projections", "attention_scores", "mlp", "lm_head")}
    assert classes == {name: whole(row[CLASSES[name]]) for name in classes}
    assert whole_pass["total"] - decoder["total"] - cross == int(row["flops_total"])


@pytest.mark.parametrize("row", _of("decode", "decode_mla_expanded_cache", "decode_mla_absorbed"), ids=_fields)
def test_flops_of_generation(row: dict[str, str]) -> None:
    """One token after a cache, by class.

    Three rows' worth of exceptions, all of the plain code that was counted: torch pads the convolution's window to
    k + 1 inputs, two results a token; the gated delta rule steps elementwise; and transformers expands the whole
    cache of latents at every step, which both rows of our two ways do not.
    """
    found = _inspected(
        row, context=int(row["kv_len"]) - int(row["q_len"]), absorbed=row["phase"] == "decode_mla_absorbed"
    )
    flops, counted = _always(found["flops_forward"]), _counted(row)
    if found["flops_ssm"]:
        parts = {name: int(row[column]) for name, column in SSM.items()}
        assert 2 * found["flops_ssm"]["convolution"] == parts["convolution"]
        assert found["flops_ssm"]["projections"] == parts["projections"]
        if row["model"] == "qwen3-next-80b-a3b":
            sizes = golden_model(row["model"]).sizes
            width = sizes["linear_num_value_heads"] * sizes["linear_value_head_dim"]
            layers = sizes["num_linear_attention_experts_layers"]
            assert found["flops_ssm"]["scan"] == 3 * 2 * layers * width * sizes["linear_key_head_dim"]
            assert parts["scan"] == 0
        else:
            assert found["flops_ssm"]["scan"] == parts["scan"]
        for name in ("ssm", "total"):
            counted[name] += found["flops_forward"]["ssm"] - sum(parts.values())
    if row["phase"] == "decode" and golden_model(row["model"]).architecture.has("latent_attention"):
        sizes = golden_model(row["model"]).sizes
        width = sizes["num_attention_heads"] * (sizes["qk_nope_head_dim"] + sizes["v_head_dim"])
        again = 2 * (int(row["kv_len"]) - 1) * sizes["num_layers"] * sizes["kv_lora_rank"] * width
        counted["projections"] -= again
        counted["total"] -= again
    assert flops == counted


@pytest.mark.parametrize("row", _of("train_fwd_bwd"), ids=_fields)
def test_training_flops(row: dict[str, str]) -> None:
    """With its backward pass three times a forward pass.

    Qwen3-Next is the exception: its rows hold the products that the backward pass of two triangular solves makes,
    7 c^2 d FLOPs a chunk and head of keys and values of one width; the solves themselves are no products.
    """
    total = 3 * _inspected(row)["flops_forward"]["total"]
    if row["model"] == "qwen3-next-80b-a3b":
        sizes = golden_model(row["model"]).sizes
        chunks = int(row["q_len"]) // 64 * sizes["linear_num_value_heads"]
        chunks *= sizes["num_linear_attention_experts_layers"]
        total += 7 * chunks * 64 * 64 * sizes["linear_key_head_dim"] // 2
    assert total == int(row["flops_total"])


RECOMPUTED = [row for row in rows("flops.csv") if row["phase"] == "train_ckpt_reentrant"]


@pytest.mark.parametrize("row", RECOMPUTED, ids=_fields)
def test_full_recomputation(row: dict[str, str]) -> None:
    """Every layer's products once more; the ends are outside of the layers.

    The rows of non-reentrant checkpoints are left out: PyTorch stops early in them, which no kernel model should copy.
    """
    model = golden_model(row["model"])
    again = strip_units(counts.recomputed_flops(model.architecture, "full"))
    work = {"batch": int(row["batch"]), "sequence": int(row["q_len"]), "encoder_sequence": whole(row["enc_len"])}
    again = again.xreplace({SYMBOLS[name].symbol: sympy.Integer(n) for name, n in {**model.sizes, **work}.items()})
    training = next(
        other for other in rows("flops.csv") if other["phase"] == "train_fwd_bwd" and other["model"] == row["model"]
    )
    assert int(training["flops_total"]) + again == int(row["flops_total"])


FUSED = [row for row in rows("flops.csv") if row["attn_impl"] == "fused flash op" and "ckpt" not in row["phase"]]


@pytest.mark.parametrize("row", FUSED, ids=_fields)
def test_flash_attention_trains_with_five_products_for_two(row: dict[str, str]) -> None:
    """The fused backward kernel is charged 5/2 of the forward scores, as `flash_backward_time` has it."""
    flops = _inspected(row)["flops_forward"]
    scores = flops["attention_scores"]
    backward = 2 * (flops["total"] - scores) + 5 * scores // 2
    assert flops["total"] + (backward if row["phase"] == "train_fwd_bwd" else 0) == int(row["flops_total"])


@pytest.mark.parametrize("row", rows("masks.csv"), ids=lambda row: f"{row['model']}-{row['layer_type']}-{row['seq']}")
def test_pairs_of_real_masks(row: dict[str, str]) -> None:
    """Unmasked pairs of one layer: causal, windows, chunks."""
    sequence, window = int(row["seq"]), whole(row["window_or_chunk"])
    kinds = {
        "full_attention": lambda: windows.causal_pairs(sequence),
        "sliding_attention": lambda: windows.window_pairs(sequence, window),
        "chunked_attention": lambda: windows.chunk_pairs(sequence, window),
    }
    assert kinds[row["layer_type"]]() == int(row["pairs_unmasked"])
    model = golden_model(row["model"])
    assert model.sliding_window == window or row["layer_type"] == "full_attention"
    mixer = "attention" if row["layer_type"] == "full_attention" else "local_attention"
    layers = sum(model.sizes[k.count] for k in model.architecture.kinds if k.mixer == mixer)
    assert layers == int(row["layers"])


VISIBLE = [row for row in _of("prefill") if row["flops_attn_core_unmasked"] and row["model"] not in TWO_STACKS]


@pytest.mark.parametrize("row", VISIBLE, ids=_fields)
def test_causal_half(row: dict[str, str]) -> None:
    """With the causal half only the pairs count that the real masks leave: causal, windows and chunks."""
    found = _inspected(row, causal_half=True)["flops_forward"]
    assert found["attention_scores"] == int(row["flops_attn_core_unmasked"])
    assert found["total"] == sum(value for name, value in found.items() if name != "total")


def test_the_answer_is_json_of_whole_numbers() -> None:
    """Every count is an exact integer, however large, and the object is JSON."""

    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [n for v in value.values() for n in numbers(v)]
        if isinstance(value, list):
            return [n for v in value for n in numbers(v)]
        return [value] if isinstance(value, int | float) else []

    found = sf.inspect(sf.Model.load("llama-3.1-405b"), batch=10**6 + 1, sequence=10**6 + 3)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(isinstance(number, int) for number in numbers(found))
    scores = found["flops_forward"]["attention_scores"]
    assert scores == 4 * (10**6 + 1) * (10**6 + 3) ** 2 * 128 * 128 * 126
    assert math.log2(scores) > 64


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"sequence": -1},
        {"batch": 1.5},
        {"sequence": True},
        {"encoder_sequence": 0},
        {"context": -1},
        {"context": 1.5},
        {"causal_half": True, "context": 4},
    ],
)
def test_bad_sizes_are_refused(wrong: dict[str, Any]) -> None:
    """Lengths are positive whole numbers, and go together."""
    with pytest.raises(sf.InputError, match=f"{next(iter(wrong))}: found"):
        sf.inspect(sf.Model.load("gpt2"), **wrong)
