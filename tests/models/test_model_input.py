"""Model files: one clear line for every kind of bad input, and never another exception."""

import json
import math
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model_configs import (
    DEEPSEEK,
    FALCON,
    JAMBA,
    LLAMA,
    LLAMA4,
    MAMBA2,
    MIXTRAL,
    MPT,
    NEMOTRON_H,
    OPT,
    QWEN3_NEXT,
    T5,
    VIT,
    load_config,
)

from symperf.common.errors import InputError
from symperf.models.families import FAMILIES, NOT_YET
from symperf.models.model import Model, resolve


@pytest.fixture
def load(tmp_path):
    return partial(load_config, tmp_path)


def message(call):
    with pytest.raises(InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 2500
    return text


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"hidden_size": "64"}, ["hidden_size is '64'", "positive integer"]),
        ({"hidden_size": True}, ["hidden_size is True", "positive integer"]),
        ({"hidden_size": 64.0}, ["hidden_size is 64.0", "positive integer"]),
        ({"hidden_size": None}, ["hidden_size is None", "positive integer"]),
        ({"hidden_size": [64]}, ["hidden_size is [64]", "positive integer"]),
        ({"hidden_size": math.nan}, ["hidden_size is nan", "positive integer"]),
        ({"vocab_size": math.inf}, ["vocab_size is inf", "positive integer"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers is 0", "positive integer"]),
        ({"intermediate_size": -5}, ["intermediate_size is -5", "positive integer"]),
        ({"vocab_size": 10**13}, ["vocab_size is 10000000000000", "at most"]),
        ({"max_position_embeddings": "long"}, ["max_position_embeddings is 'long'"]),
        ({"num_attention_heads": 5}, ["64", "5 attention heads", "head_dim"]),
        ({"num_key_value_heads": 3}, ["4 attention heads", "3 key-value heads"]),
        ({"num_key_value_heads": 8}, ["4 attention heads", "8 key-value heads"]),
        ({"tie_word_embeddings": "no"}, ["tie_word_embeddings is 'no'", "true or false"]),
        ({"attention_bias": 1}, ["attention_bias is 1", "true or false"]),
        ({"num_local_experts": 8}, ["num_local_experts is 8", "mixture-of-experts"]),
        ({"is_encoder_decoder": True}, ["is_encoder_decoder is True", "encoders"]),
        ({"model_type": "lama"}, ["unknown model_type 'lama'", "did you mean llama", "qwen3"]),
        ({"model_type": "longcat_flash"}, ["'longcat_flash'", "mixture of experts", "not supported yet", "mixtral"]),
        ({"model_type": "electra"}, ["'electra'", "encoder", "not supported yet"]),
        ({"model_type": 7}, ["model_type is 7"]),
        ({"model_type": "x\ny" * 1000}, ["unknown model_type"]),
        (
            {"model_type": "mpt", "attn_config": 3, **{k: v for k, v in MPT.items() if k != "model_type"}},
            ["attn_config"],
        ),
        ({"model_type": "gemma3"}, ["text_config is missing"]),
        ({"model_type": "gemma3", "text_config": {"model_type": "llama"}}, ["text_config", "gemma3_text"]),
    ],
)
def test_bad_values(load, change, parts):
    text = message(lambda: load(LLAMA | change))
    assert "tiny.json" in text
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("config", "change", "parts"),
    [
        (MIXTRAL, {"num_local_experts": 0}, ["num_local_experts is 0", "positive integer"]),
        (MIXTRAL, {"num_experts_per_tok": 9}, ["passes 9 of 4 experts"]),
        (MIXTRAL, {"layer_types": ["full_attention"]}, ["layer_types has 1 entries", "2 layers"]),
        (MIXTRAL, {"layer_types": ["full_attention", "odd"]}, ["layer_types", "expected only full_attention"]),
        (MIXTRAL, {"layer_types": "full_attention"}, ["layer_types", "list of words"]),
        (MIXTRAL, {"num_hidden_layers": 10**9, "sliding_window": 8}, ["1000000000 layers", "at most 100000"]),
        (DEEPSEEK, {"kv_lora_rank": None}, ["kv_lora_rank is None", "positive integer"]),
        (DEEPSEEK, {"first_k_dense_replace": -1}, ["first_k_dense_replace is -1", "0 or more"]),
        (DEEPSEEK, {"n_shared_experts": "one"}, ["n_shared_experts is 'one'"]),
        (LLAMA4, {"no_rope_layers": [1]}, ["no_rope_layers is [1]", "2 layers"]),
        (LLAMA4, {"no_rope_layers": [1, 2]}, ["no_rope_layers", "integers from 0 to 1"]),
        (MAMBA2, {"num_heads": 3}, ["3 heads of 32", "expanded width 128"]),
        (MAMBA2, {"state_size": 0}, ["state_size is 0"]),
        (JAMBA, {"attn_layer_period": 0}, ["attn_layer_period is 0"]),
        (JAMBA, {"mamba_dt_rank": "some"}, ["mamba_dt_rank is 'some'"]),
        (JAMBA, {"sliding_window": 8}, ["sliding_window is 8"]),
        (
            LLAMA,
            {"model_type": "minimax_m2", "num_local_experts": 2, "num_experts_per_tok": 1},
            ["num_key_value_heads is miss"],
        ),
        (MPT, {"attn_config": {"alibi_": True}}, ["attn_config", "'alibi_'", "did you mean alibi"]),
        (MPT, {"attn_config": {"qk_ln": True}}, ["attn_config", "qk_ln is True"]),
        (OPT, {"hidden_size": None}, ["hidden_size is None"]),
        ({"model_type": "arctic"}, {}, ["parallel_attn_mlp_res is missing", "the class takes false"]),
        (
            {"model_type": "llava", "text_config": LLAMA, "quantization_confi": {}},
            {},
            ["did you mean quantization_config"],
        ),
        (
            {"model_type": "llava", "tie_word_embeddings": True, "text_config": LLAMA | {"tie_word_embeddings": False}},
            {},
            ["tie_word_embeddings is False", "expected true as the file around it says"],
        ),
        (NEMOTRON_H, {"hybrid_override_pattern": "M-"}, ["2 entries for 4 layers"]),
        (NEMOTRON_H, {"hybrid_override_pattern": "M-*Q"}, ["letters of M - * E"]),
        (NEMOTRON_H, {"hybrid_override_pattern": "M-*E"}, ["no layer of experts"]),
        (NEMOTRON_H, {"hybrid_override_pattern": 7}, ["letters of M - * E"]),
        (QWEN3_NEXT, {"full_attention_interval": 0}, ["full_attention_interval is 0"]),
        (QWEN3_NEXT, {"mlp_only_layers": [99]}, ["mlp_only_layers is [99]", "0 to 4"]),
        (T5, {"num_decoder_layers": 0}, ["num_decoder_layers is 0"]),
        (T5, {"feed_forward_proj": 3}, ["feed_forward_proj is 3"]),
        (VIT, {"patch_size": 500}, ["image_size is 224", "at least the patch_size 500"]),
        ({"model_type": "llava"}, {}, ["text_config is missing"]),
        ({"model_type": "llava", "text_config": LLAMA}, {"text_config": {"model_type": "llava"}}, ["language model"]),
        ({"model_type": "llava", "text_config": 3}, {}, ["text_config is 3", "an object"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_values_of_other_kinds(load, config, change, parts):
    text = message(lambda: load(config | change))
    assert "tiny.json" in text
    for part in parts:
        assert part in text


@pytest.mark.parametrize("key", list(LLAMA))
def test_missing_keys(load, key):
    text = message(lambda: load({k: v for k, v in LLAMA.items() if k != key}))
    assert f"tiny.json: {key} is missing" in text


def test_two_names_of_one_size_have_to_agree(load):
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 9, "n_positions": 16}
    assert load(gpt2 | {"num_hidden_layers": 2}).sizes["num_layers"] == 2
    assert "num_hidden_layers is 3, expected 2 as n_layer says" in message(
        lambda: load(gpt2 | {"num_hidden_layers": 3})
    )
    assert "word_embed_proj_dim is 32" in message(lambda: load(OPT | {"word_embed_proj_dim": 32}))
    assert "n_layer (or num_hidden_layers) is missing" in message(
        lambda: load({k: v for k, v in gpt2.items() if k != "n_layer"})
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "line 1, column 1: invalid JSON"),
        ('{"model_type": "llama",\n "hidden_size": }', "line 2"),
        ("[1, 2]", "expected an object"),
        ("null", "expected an object"),
        ('{"model_type": "llama", "model_type": "gpt2"}', "'model_type' comes twice"),
        ('{"model_type": "mpt", "attn_config": {"a": 1, "a": 2}}', "'a' comes twice"),
        ("[" * 100_000, "invalid JSON"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "invalid JSON"),
        ("{" + " " * 10_000_001 + "}", "larger than"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_json(load, text, part):
    found = message(lambda: load(text))
    assert "tiny.json" in found
    assert part in found


def test_bad_paths(tmp_path):
    assert "no config.json" in message(lambda: Model.load(tmp_path))
    assert "no such file" in message(lambda: Model.load(tmp_path / "none.json"))
    (tmp_path / "config.json").mkdir()
    assert "folder" in message(lambda: Model.load(tmp_path))
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"a": "\xe9"}')
    assert "UTF-8" in message(lambda: Model.load(latin))
    for empty in ("", "  "):
        assert "empty" in message(lambda empty=empty: Model.load(empty))
    for strange in ("a\0b", "x" * 5000, "line\nbreak"):
        message(lambda strange=strange: Model.load(strange))
    for wrong in (None, 7, b"gpt2"):
        assert "expected a catalogue name" in message(lambda wrong=wrong: Model.load(wrong))


BESIDE = {
    "tokenizer.json": ({"version": "1.0", "added_tokens": [], "model": {"type": "BPE"}}, "is a tokenizer"),
    "tokenizer_config.json": ({"tokenizer_class": "GPT2Tokenizer"}, "settings of a tokenizer"),
    "special_tokens_map.json": ({"eos_token": "</s>"}, "special tokens"),
    "model.safetensors.index.json": ({"metadata": {}, "weight_map": {}}, "list of a checkpoint's tensors"),
    "pytorch_model.bin.index.json": ({"weight_map": {}}, "list of a checkpoint's tensors"),
    "generation_config.json": ({"_from_model_config": True, "eos_token_id": 2}, "defaults of generation"),
    "adapter_config.json": ({"peft_type": "LORA", "r": 8}, "an adapter"),
    "preprocessor_config.json": ({"image_processor_type": "CLIPImageProcessor"}, "prepares images or sound"),
    "processor_config.json": ({"processor_class": "LlavaProcessor"}, "prepares images or sound"),
    "hf_quant_config.json": ({"producer": {}, "quantization": {}}, "how a checkpoint is quantized"),
    "params.json": ({"dim": 4096, "n_heads": 32, "n_layers": 32}, "Meta's or Mistral's own code"),
    "model.safetensors": ({}, "a file of weights"),
    "model-Q4_K_M.gguf": ({}, "a file of weights"),
}


@pytest.mark.parametrize("name", list(BESIDE))
def test_files_that_lie_beside_a_configuration_are_told(tmp_path, name):
    """By their names, or under another name by what is in them; the right file is named where it is there."""
    data, what = BESIDE[name]
    (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
    text = message(lambda: Model.load(tmp_path / name))
    assert f"{name}: is" in text
    assert what in text
    assert text.endswith("expected the config.json of the model")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    assert f"which lies beside it ({tmp_path / 'config.json'})" in message(lambda: Model.load(tmp_path / name))
    if data:
        renamed = tmp_path / "other.json"
        renamed.write_text(json.dumps(data), encoding="utf-8")
        assert what in message(lambda: Model.load(renamed))


LLAVA = {"model_type": "llava", "text_config": LLAMA}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {**LLAMA, "model_type": "gemma3_text", "head_dim": 16, "num_key_value_heads": 2},
}


@pytest.mark.parametrize("whole", [LLAVA, GEMMA3], ids=["wrapped", "of its own"])
def test_a_language_model_told_twice_has_to_agree(load, whole):
    """Beside its object, as transformers 4 saved some files; or in an object within its object, which is a slip."""
    text = whole["text_config"]
    flat = {key: value for key, value in text.items() if key != "model_type"}
    assert load({**flat, **whole}).sizes == load(whole).sizes
    assert "hidden_size is 128, expected 64 as the language model's own object says" in message(
        lambda: load({**flat, **whole, "hidden_size": 128})
    )
    for twice in ({"text_config": text}, whole):
        assert "text_config: holds another text_config, expected the language model's own keys" in message(
            lambda twice=twice: load({**whole, "text_config": twice})
        )
    assert "text_config is missing, expected an object; its keys stand at the top" in message(
        lambda: load({**flat, "model_type": whole["model_type"]})
    )


@pytest.mark.parametrize("whole", [LLAVA, GEMMA3], ids=["wrapped", "of its own"])
def test_a_language_model_given_alone_is_one(load, whole):
    """As a file of its own; under its key it needs the kind of the whole file."""
    assert load(whole["text_config"]).sizes == load(whole).sizes
    text = message(lambda: load({"text_config": whole["text_config"]}))
    assert "model_type is missing beside text_config" in text
    assert f"it is a {whole['text_config']['model_type']!r}" in text
    assert "hidden_size is missing, expected a positive integer; text_config has hidden_size" in message(
        lambda: load({**whole, "model_type": "llama"})
    )


@pytest.mark.parametrize(
    ("kind", "name", "other"),
    [
        ("llama", "Qwen2ForCausalLM", "qwen2"),
        ("llama", "GPT2LMHeadModel", "gpt2"),
        ("llama", "LlavaForConditionalGeneration", "llava"),
        ("mistral", "LlamaForCausalLM", "llama"),
    ],
)
def test_a_class_of_another_family_is_refused(load, kind, name, other):
    data = {**LLAMA, "model_type": kind, "num_key_value_heads": 4, "architectures": [name]}
    text = message(lambda: load(data))
    assert f"model_type is {kind!r}, but architectures names {name!r}, expected model_type {other!r}" in text
    assert load(data, ("architectures",)).family == kind


@pytest.mark.parametrize(
    "name", ["LlamaForCausalLM", "LLaMAForCausalLM", "LlamaModel", "MyOwnForCausalLM", "", 7, None]
)
def test_a_class_of_the_family_or_of_none_is_no_contradiction(load, name):
    assert load({**LLAMA, "architectures": [name]}).family == "llama"
    assert load({**LLAMA, "architectures": name}).family == "llama"


def test_keys_left_out_are_told_with_the_class_default_that_was_taken(load):
    """Only those that decide a count; what the file says is none of them, and null is the file's word."""
    assert dict(load(LLAMA).defaults) == {"num_key_value_heads": 4, "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": False}  # fmt: skip
    given = {"num_key_value_heads": None, "attention_bias": False, "mlp_bias": True, "tie_word_embeddings": True}
    assert load(LLAMA | given).defaults == ()
    nested = dict(load({**LLAVA, "text_config": {"model_type": "llama"}}).defaults)
    assert nested["text_config.hidden_size"] == 4096
    assert nested["text_config.num_key_value_heads"] == 32
    assert {key.partition(".")[0] for key in nested} == {"text_config"}
    tower = load({**LLAVA, "vision_config": {"model_type": "clip_vision_model", "patch_size": 14}})
    assert dict(tower.defaults)["vision_config.num_hidden_layers"] == 12
    assert dict(tower.defaults)["multimodal_projector_bias"] is True


def test_a_configuration_by_another_name_is_one(tmp_path):
    path = tmp_path / "params.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert Model.load(path).sizes["hidden_size"] == LLAMA["hidden_size"]


def test_unknown_names_list_the_nearest():
    assert "llama-2-7b" in message(lambda: Model.load("llama-2-7bb"))
    assert "llama-2-7b" in message(lambda: resolve("lama-2-7b"))


def test_a_device_is_no_file():
    assert "device" in message(lambda: Model.load(Path("/dev/zero")))


def test_every_planned_type_is_refused_by_name(load):
    for names in NOT_YET.values():
        for name in names.split():
            assert name not in FAMILIES
            assert f"{name!r}" in message(lambda name=name: load(LLAMA | {"model_type": name}))


SMALLEST = [LLAMA, FALCON, MPT, OPT, MIXTRAL, DEEPSEEK, LLAMA4, MAMBA2, JAMBA, NEMOTRON_H, QWEN3_NEXT, T5, VIT]
MORE = {"attn_config", "head_dim", "text_config", "layer_types", "sliding_window", "mlp_only_layers", "id2label"}
KEYS = st.sampled_from(sorted({key for config in SMALLEST for key in config} | MORE))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(sorted(FAMILIES)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)


@settings(deadline=None, max_examples=300)
@given(base=st.sampled_from(SMALLEST), changes=st.dictionaries(KEYS, VALUES, max_size=3))
def test_any_config_is_a_model_or_one_clear_line(tmp_path_factory, base, changes):
    path = tmp_path_factory.getbasetemp() / "fuzz.json"
    path.write_text(json.dumps(base | changes), encoding="utf-8")
    model, text = attempt(path)
    if model:
        assert all(type(size) is int and size >= 0 for size in model.sizes.values())
    else:
        assert "fuzz.json" in text


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=40))
def test_any_text_is_a_model_or_one_clear_line(name):
    attempt(name)


def attempt(source):
    try:
        return Model.load(source), ""
    except InputError as error:
        text = str(error)
    assert text
    assert len(text.splitlines()) == 1
    return None, text
