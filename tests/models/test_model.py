"""Model files and the catalogue: sizes and structure to the last parameter, and one clear line for bad input."""

import copy
import csv
import dataclasses
import json
import math
import pickle
import subprocess
import sys
from functools import partial

import pytest
from support.model_configs import FALCON, LLAMA, MPT, OPT, load_config
from support.paths import GOLDEN, ROOT

import symperf as sf
from symperf.models.model import Model

SIZES = {
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "position_rows",
}


def rows(name):
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def golden_model(name):
    own = GOLDEN / "configs" / f"{name}.json"
    return Model.load(own) if own.exists() else Model.load(name)


def parameters(model):
    """Parameters outside and inside of a layer, counted tensor by tensor and without the package."""
    a, s = model.architecture, model.sizes
    h, f, d = s["hidden_size"], s["intermediate_size"], s["head_dim"]
    query, key_value = s["num_attention_heads"] * d, s["num_key_value_heads"] * d
    norm = h + (h if a.norm_bias else 0)
    layer = h * (query + 2 * key_value) + query * h + a.block_norms * norm
    layer += (query + 2 * key_value if a.qkv_bias else 0) + (h if a.attention_output_bias else 0)
    layer += {"none": 0, "per_head": 2 * d, "full_width": query + key_value}[a.query_key_norm]
    layer += 3 * h * f if a.gated_mlp else 2 * h * f
    layer += (h + f + (f if a.gated_mlp else 0)) if a.mlp_bias else 0
    head = (0 if a.tied_embeddings else h * s["vocab_size"]) + (s["vocab_size"] if a.head_bias else 0)
    outside = h * s["vocab_size"] + h * s["position_rows"] + head + norm * (a.final_norm + a.embedding_norm)
    return outside, layer


def total(model):
    outside, layer = parameters(model)
    return outside + model.sizes["num_layers"] * layer


# Golden numbers: counted by torch on the modules of transformers ------------------------------------------


UNIFORM = [row for row in rows("params.csv") if golden_model(row["model"]).uniform_dense]


@pytest.mark.parametrize("row", UNIFORM, ids=lambda row: row["model"])
def test_golden_parameters(row):
    model = golden_model(row["model"])
    assert model.family == row["model_type"]
    outside, layer = parameters(model)
    assert layer == int(row["params_per_layer"])
    assert outside + model.sizes["num_layers"] * layer == int(row["params_total"])
    assert model.sizes["num_layers"] == int(row["num_layers"])
    assert model.architecture.tied_embeddings == (row["lm_head_tied"] == "True")
    assert model.sizes["position_rows"] * model.sizes["hidden_size"] == int(row["params_position_embedding"])


COUNTED_IN_FULL = [
    row
    for row in rows("flops.csv")
    if row["attn_impl"] == "eager" and "ckpt" not in row["phase"] and golden_model(row["model"]).uniform_dense
]


@pytest.mark.parametrize(
    "row", COUNTED_IN_FULL, ids=lambda row: "-".join(row[k] for k in ("model", "phase", "batch", "kv_len"))
)
def test_golden_flops(row):
    """2mnk of every product; a backward pass has twice the products of its forward pass."""
    model = golden_model(row["model"])
    s = model.sizes
    tokens, keys = int(row["batch"]) * int(row["q_len"]), int(row["kv_len"])
    query, key_value = (s[n] * s["head_dim"] for n in ("num_attention_heads", "num_key_value_heads"))
    per_layer = 2 * tokens * s["num_layers"] * s["hidden_size"]
    counts = {
        "flops_attn_proj": per_layer * (2 * query + 2 * key_value),
        "flops_mlp_dense": per_layer * s["intermediate_size"] * (3 if model.architecture.gated_mlp else 2),
        "flops_lm_head": 2 * tokens * s["hidden_size"] * s["vocab_size"],
        "flops_attn_core": 4 * tokens * keys * query * s["num_layers"],
    }
    if row["phase"] == "decode" and model.sliding_window:
        del counts["flops_attn_core"]  # the cache of a window layer is shorter than the context
    if row["phase"].startswith("train"):
        passes = {"train_fwd": 1, "train_fwd_bwd": 3}[row["phase"]]
        assert int(row["flops_total"]) == passes * sum(counts.values())
    else:
        assert {name: int(row[name]) for name in counts} == counts


# Totals that the publishers show for their checkpoints ------------------------------------------------------


@pytest.mark.parametrize("row", rows("published.csv"), ids=lambda row: row["model"])
def test_published_parameters(row):
    """Equal in all digits that the source prints."""
    digits = len(row["parameters"].partition(".")[2])
    assert f"{total(Model.load(row['model'])) / float(row['unit']):.{digits}f}" == row["parameters"]


# Rules of the families --------------------------------------------------------------------------------------


@pytest.fixture
def load(tmp_path):
    return partial(load_config, tmp_path)


@pytest.mark.parametrize(
    ("config", "key_value_heads", "norms", "parallel"),
    [
        (FALCON | {"num_kv_heads": 4}, 1, 1, True),
        (FALCON | {"multi_query": False}, 4, 1, True),
        (FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}, 2, 2, True),
        (FALCON | {"new_decoder_architecture": True}, 4, 2, True),
        (FALCON | {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}, 4, 1, True),
        (FALCON | {"parallel_attn": False, "multi_query": False}, 4, 2, False),
    ],
)
def test_falcon(load, config, key_value_heads, norms, parallel):
    model = load(config)
    assert model.sizes["num_key_value_heads"] == key_value_heads
    assert (model.architecture.block_norms, model.architecture.parallel_block) == (norms, parallel)
    assert model.warnings == ()


def test_falcon_with_alibi_and_biases(load):
    architecture = load(FALCON | {"alibi": True, "bias": True}).architecture
    assert architecture.positions == "alibi"
    assert architecture.qkv_bias
    assert architecture.attention_output_bias
    assert architecture.mlp_bias
    assert architecture.tied_embeddings


@pytest.mark.parametrize(
    ("config", "positions", "table"),
    [
        (MPT, "alibi", 0),
        (MPT | {"attn_config": {"alibi": True}, "learned_pos_emb": True}, "alibi", 0),
        (MPT | {"attn_config": {"alibi": False}}, "learned", 32),
        (MPT | {"attn_config": {"alibi": False}, "learned_pos_emb": False}, "none", 0),
        (MPT | {"attn_config": {"alibi": False, "rope": True}}, "rotary", 0),
    ],
)
def test_mpt_positions(load, config, positions, table):
    model = load(config)
    assert (model.architecture.positions, model.sizes["position_rows"]) == (positions, table)


def test_mpt_attention_and_biases(load):
    grouped = load(MPT | {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 2}, "no_bias": False})
    assert grouped.sizes["num_key_value_heads"] == 2
    assert grouped.architecture.norm_bias
    assert grouped.architecture.mlp_bias
    single = load(MPT | {"attn_config": {"attn_type": "multiquery_attention"}, "expansion_ratio": 3})
    assert (single.sizes["num_key_value_heads"], single.sizes["intermediate_size"]) == (1, 192)


def test_opt(load):
    model = load(OPT)
    assert model.sizes["position_rows"] == 34
    assert model.architecture.final_norm
    assert not load(OPT | {"do_layer_norm_before": False}).architecture.final_norm


def test_class_defaults_tie_embeddings_where_the_key_is_absent(load):
    assert not load(LLAMA).architecture.tied_embeddings
    for family in ("gemma", "gemma2", "cohere", "starcoder2"):
        assert load(LLAMA | {"model_type": family, "num_key_value_heads": 2}).architecture.tied_embeddings


def test_head_width_is_not_always_hidden_by_heads(load):
    assert load(LLAMA).sizes["head_dim"] == 16
    assert load(LLAMA | {"head_dim": 24}).sizes["head_dim"] == 24
    assert load(LLAMA | {"model_type": "qwen3", "num_key_value_heads": 4}).sizes["head_dim"] == 128
    assert load(LLAMA | {"model_type": "gemma2"}).sizes["head_dim"] == 256


def test_windows(load):
    qwen = LLAMA | {"model_type": "qwen2", "num_key_value_heads": 4, "sliding_window": 8}
    assert load(qwen).sliding_window is None
    windowed = qwen | {"use_sliding_window": True}
    assert load(windowed | {"max_window_layers": 0}).sliding_window == 8
    assert load(windowed | {"max_window_layers": 1}).sizes["num_attention_dense_layers"] == 1
    assert load(windowed).sliding_window is None  # only layers from the 28th on have one
    mistral = LLAMA | {"model_type": "mistral", "num_key_value_heads": 4}
    assert load(mistral).sliding_window == 4096
    assert load(mistral | {"sliding_window": None}).sliding_window is None
    inert = load(mistral | {"max_position_embeddings": 4096})
    assert not inert.warnings
    assert not load(mistral | {"max_position_embeddings": 8192}).warnings  # windows are modelled
    full = load(LLAMA | {"model_type": "olmo3", "layer_types": ["full_attention"] * 2})
    assert full.sliding_window is None


def test_gemma3_reads_the_language_part_with_class_defaults(load):
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240, "model_type": "gemma3_text"}
    vision = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
    vision |= {"patch_size": 14, "image_size": 896}
    model = load({"model_type": "gemma3", "text_config": text, "vision_config": vision})
    assert model.sizes["sliding_window"] == 4096
    assert dict(model.sizes) | {"sliding_window": 1024} == dict(Model.load("gemma-3-4b").sizes)
    assert model.architecture.tied_embeddings
    assert [tower.part for tower in model.towers] == ["vision"]
    untied = load({"model_type": "gemma3", "text_config": text, "tie_word_embeddings": False})
    assert not untied.architecture.tied_embeddings


def test_query_and_key_norms(load):
    kinds = {"stablelm": "qk_layernorm", "cohere": "use_qk_norm"}
    for family, key in kinds.items():
        config = LLAMA | {"model_type": family, "num_key_value_heads": 4}
        assert load(config).architecture.query_key_norm == "none"
        assert load(config | {key: True}).architecture.query_key_norm == "full_width"


def test_unknown_keys_are_refused_and_harmless_ones_are_not(load):
    noise = {
        "rms_norm_eps": 1e-5,
        "eos_token_id": [1, 2],
        "attention_dropout": 0.0,
        "_name_or_path": "x",
        "vision": None,
    }
    assert load(LLAMA | noise).warnings == ()
    assert load(LLAMA | {"number_of_wings": None}).warnings == ()
    with pytest.raises(sf.InputError, match=r"number_of_wings.* --ignore-key number_of_wings"):
        load(LLAMA | {"number_of_wings": False})


def test_a_key_is_ignored_when_asked(tmp_path):
    """Wherever it stands, as if it were not there; one that is nowhere in the file is refused."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"number_of_wings": 3, "rope_scaling": {"feathers": 2}}))
    model = Model.load(path, ignore_keys=["number_of_wings", "feathers"])
    assert model.warnings == tuple(f"the key '{key}' is ignored, as asked" for key in ("number_of_wings", "feathers"))
    with pytest.raises(sf.InputError, match="no key 'number_of_wing' in the file; did you mean number_of_wings"):
        Model.load(path, ignore_keys=["number_of_wing"])


def test_how_a_checkpoint_stores_its_weights(load):
    stored = load(LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64}}).quantization
    assert [form.name for form in stored.stored(("attention", "mlp"))] == ["int4-weight"]
    assert stored.stored(("mlp",))[0].weight == 0.5 + 2 / 64
    with pytest.raises(sf.InputError, match="quant_method is None, expected fp8 or"):
        load(LLAMA | {"quantization_config": {"bits": 4}})


def test_infinity_may_stand_where_nothing_reads_it(load):
    assert load(json.dumps(LLAMA | {"initializer_range": math.inf})).sizes["vocab_size"] == 100


# The object -------------------------------------------------------------------------------------------------


def test_model_is_a_value():
    model, again = Model.load("gpt2"), Model.load("gpt2")
    assert model == again
    assert hash(model) == hash(again)
    assert model != Model.load("gpt2-medium")
    assert copy.deepcopy(model) == model
    assert pickle.loads(pickle.dumps(model)) == model
    assert set(model.sizes) == SIZES
    assert "hidden_size=768" in repr(model)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "other"
    with pytest.raises(TypeError):
        model.sizes["hidden_size"] = 1
    assert json.loads(json.dumps(dataclasses.asdict(model.architecture)))["positions"] == "learned"


def test_start_up_needs_no_heavy_package():
    code = (
        "import sys; from symperf.models.model import Model; Model.load('llama-2-7b')\n"
        "heavy = {'sympy', 'numpy', 'numba', 'rich', 'jinja2'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT)})
