"""The catalogue of models and its names, and models as files and folders."""

import json

import pytest
from support.model_configs import LLAMA
from support.paths import GOLDEN

from symperf.models.catalogue import BENCHMARKS, CATALOGUE
from symperf.models.families import FAMILIES
from symperf.models.families.older import OLDER
from symperf.models.model import Model, resolve

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


def golden_model(name):
    own = GOLDEN / "configs" / f"{name}.json"
    return Model.load(own) if own.exists() else Model.load(name)


# Catalogue and paths ------------------------------------------------------------------------------------------


def test_catalogue_shows_every_family():
    assert len(CATALOGUE.names()) >= 45
    parts = {name for name in FAMILIES if name.endswith("_text") and name != "gemma3_text"}
    missing = set(FAMILIES) - parts - FROM_FILES - {Model.load(name).family for name in CATALOGUE.names()}
    assert missing == set()


FROM_FILES = {
    *OLDER,
    *("diffllama", "gemma3n", "glm5_next", "mimo_v2_flash", "step3p5"),
    "deepseek_ref",
    "deepseek_v32",
    "deepseek_v4",
    "glm_moe_dsa",
    "minimax_m3",
    "minimax_m3_vl",
    *("blenderbot", "blenderbot-small", "camembert", "dinov2", "distilbert", "m2m_100", "marian", "mbart"),
    *("modernbert", "pegasus", "xlm-roberta"),
    *("clip_vision_model", "deberta-v2", "phi4_multimodal", "pixtral", "siglip_vision_model", "whisper"),
    "afmoe",
    "apertus",
    "arcee",
    "bailing_moe_v2",
    "cohere2",
    "deepseek",
    "dots1",
    "ernie4_5",
    "exaone4",
    "falcon_h1",
    "flex_olmo",
    "glm4_moe_lite",
    "granite",
    "granitemoe",
    "hunyuan_v1_dense",
    "lfm2",
    *("minicpm3", "minimax", "minimax_m1", "minimax_text_01"),
    "ministral",
    "ministral3",
    "mistral4",
    "mt5",
    *("olmo", "olmo_hybrid", "recurrent_gemma"),
    *("solar_open", "zamba2"),
}
"""Families that are read from files alone."""


@pytest.mark.parametrize("catalogue", [CATALOGUE, BENCHMARKS], ids=["catalogue", "benchmarks"])
def test_catalogue_is_complete_and_consistent(catalogue):
    assert catalogue.names() == sorted(path.stem for path in catalogue.folder.glob("*.json"))
    for name, row in catalogue.entries.items():
        assert name == name.lower()
        assert row["kind"]
        assert row["source"]
        model = Model.load(name)
        assert model.name == name
        assert set(model.sizes) >= SIZES
        assert set(model.sizes) - SIZES <= {"num_multi_token_layers"} or not model.uniform_dense or model.sliding_window
        assert sum(model.sizes[kind.count] for kind in model.architecture.kinds) == model.sizes["num_layers"]


def test_no_alias_stands_for_two_models():
    claimed = {}
    for name, row in (CATALOGUE.entries | BENCHMARKS.entries).items():
        for alias in {name, row["hub_id"].lower(), *row["aliases"].split("|")} - {""}:
            assert claimed.setdefault(alias, name) == name
    assert not CATALOGUE.entries.keys() & BENCHMARKS.entries.keys()
    for catalogue in (CATALOGUE, BENCHMARKS):
        assert set(catalogue.aliases.values()) == set(catalogue.names())


NAMES_OF_BENCHMARKS = [
    *(name for row in BENCHMARKS.entries for name in (row, row.upper())),
    *("Grok-1 proxy (16 layers)", "Llama-3.1-405B proxy (62 layers)", "BERT-6B (encoder)"),
]


@pytest.mark.parametrize("name", NAMES_OF_BENCHMARKS)
def test_a_model_of_benchmarks_loads_by_name_and_is_not_listed(name):
    """Rows of measurements, and whoever repeats one, name it as they always did."""
    found = Model.load(name)
    assert found.name in BENCHMARKS.names()
    assert found.name not in CATALOGUE.names()


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("Llama-2-7B", "llama-2-7b"),
        ("LLAMA_2_7B", "llama-2-7b"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("GPT-22B", "gpt-22b"),
        ("GPT-175B", "gpt3-175b"),
        ("GPT-3 175B", "gpt3-175b"),
        ("GPT-310B", "gpt-310b"),
        ("GPT-530B", "gpt-530b"),
        ("GPT-530B / MT-NLG", "gpt-530b"),
        ("GPT-1T", "gpt-1t"),
        ("Mistral-7B", "mistral-7b-v0.1"),
        ("BLOOM-176B", "bloom-176b"),
        ("DeepSeek-V3", "deepseek-v3"),
        ("Mixtral-8x22B", "mixtral-8x22b"),
        ("Grok-1-314B", "grok-1"),
        ("Llama-4-Maverick-17B-128E", "llama-4-maverick"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4-scout"),
        ("NemotronH-56B", "nemotron-h-56b"),
        ("GPT-OSS-120B", "gpt-oss-120b"),
    ],
)
def test_aliases(alias, name):
    assert resolve(alias) == name
    assert Model.load(alias).name == name


def test_the_catalogue_gpt3_is_the_one_of_megatron():
    assert Model.load("gpt3-175b").sizes["vocab_size"] == 51200
    assert Model.load("gpt3-175b").sizes["position_rows"] == 2048
    assert golden_model("gpt3-175b").sizes["vocab_size"] == 50257


def test_a_file_and_a_folder_are_the_same_model(tmp_path):
    folder = tmp_path / "My Model"
    folder.mkdir()
    (folder / "config.json").write_text("\ufeff" + json.dumps(LLAMA), encoding="utf-8")
    by_folder, by_file, by_text = Model.load(folder), Model.load(folder / "config.json"), Model.load(str(folder))
    assert by_folder == by_file == by_text
    assert by_folder.name == "My Model"
    assert by_folder.source.endswith("config.json")
