"""A configuration with one key removed, renamed or doubled is the same model, the right other one, or refused."""

import csv
import json

import pytest
from support.effort import some
from support.mutations import QUANTIZATION, change, configurations, doubled, holding, keys, read, renamed, without
from support.paths import GOLDEN_2026

from symperf.models.families import FAMILIES
from symperf.models.families.multimodal import FLAT
from symperf.models.families.paired import PAIRED
from symperf.models.families.two_towers import TWO_TOWERS
from symperf.models.keys import BESIDE_THE_LANGUAGE_MODEL, without_cost

CONFIGURATIONS = configurations()
SHARE = 0.2
NAMES = some(CONFIGURATIONS, SHARE)

WITHOUT_PRODUCTS = (
    "init_config",
    "rope_parameters",
    "rope_scaling",
    "id2label",
    "label2id",
    "auto_map",
    "task_specific_params",
)
"""Objects whose keys change no product, save the number of labels."""


def unread(path):
    """Whether a key stands in an object that says nothing about the language model's cost."""
    above = path[:-1]
    return bool({*WITHOUT_PRODUCTS, "vision_config", "audio_config"}.intersection(above)) or (
        path[0] in BESIDE_THE_LANGUAGE_MODEL
    )


def told(text, path, *values):
    """Whether a refusal names the key, an object that holds it, or the value that contradicts another."""
    return any(key in text for key in path[-2:] if key != "text_config") or any(str(value) in text for value in values)


@pytest.mark.parametrize("name", NAMES)
def test_a_key_with_a_slip_in_its_name_is_refused(name):
    data = CONFIGURATIONS[name]
    for path, value in keys(data):
        found = read(change(data, path, renamed))
        if isinstance(found, str):
            assert told(found, path) or found == read(change(data, path, without)), path
        elif unread(path):
            assert found == read(data), path
        else:
            assert value is None or without_cost(f"{path[-1]}_renamed"), path
            assert found == read(change(data, path, without)), path


CLASS_DEFAULTS = list(csv.reader((GOLDEN_2026 / "class_defaults.csv").read_text(encoding="utf-8").splitlines()))[1:]
"""Model, key, and the value that the class of transformers 5.24 gives the key where the file leaves it out."""

OF_OTHER_CODE = {("falcon-40b", "num_hidden_layers")}
"""Keys that have a second name in files for the checkpoint's own code, which the class does not read."""


@pytest.mark.parametrize("name", some(sorted({row[0] for row in CLASS_DEFAULTS if row[0] in CONFIGURATIONS}), 0.5))
def test_a_key_left_out_is_the_default_of_its_class_or_is_refused(name):
    data = CONFIGURATIONS[name]
    for model, key, value in CLASS_DEFAULTS:
        path = tuple(key.split("."))
        if model != name or (name, key) in OF_OTHER_CODE:
            continue
        found = read(change(data, path, without))
        if isinstance(found, str):
            assert told(found, path) or found == read(change(data, path, holding(json.loads(value)))), key
        else:
            assert found == read(change(data, path, holding(json.loads(value)))), key


NAMED_BY_OTHERS = {
    "layer_types": ("full_attention_interval", "global_attn_every_n_layers"),
    "no_rope_layers": ("no_rope_layer_interval",),
    "moe_layers": ("interleave_moe_layer_step",),
    "new_decoder_architecture": ("multi_query",),
    "attn_config": ("learned_pos_emb",),
    "encoder_layers": ("num_hidden_layers",),
}
"""Keys -> others that they overrule."""

SWITCHED = {"use_sliding_window": ("sliding_window",)}
"""Switches -> keys that count only where they are on."""

HARMLESS = {
    # Only whether there is a cap counts; a second name of the context; the last layer is the last at most.
    "final_logit_softcapping", "attn_logit_softcapping", "max_position_embeddings", "n_ctx", "moe_layer_end_index",
    # The family is an encoder and a decoder; its keys and values are one head (falcon-7b).
    "is_encoder_decoder", "num_kv_heads",
    # Heads of latent attention have keys of their own; the width is the sum of its parts.
    "num_key_value_heads", "head_dim", "qk_head_dim",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_doubled_size_counts_or_is_refused_by_name(name):
    data = CONFIGURATIONS[name]
    model = read(data)
    for path, value in keys(data):
        key = path[-1]
        if not isinstance(value, int) or not value or path[0] in QUANTIZATION or unread(path):
            continue
        found = read(change(data, path, doubled))
        if isinstance(found, str):
            assert told(found, path, doubled({key: value}, key)[key]), (path, found)
        elif found == model and not without_cost(key):
            assert key in harmless_keys(data, path), path


def harmless_keys(data, path):
    """Keys of a file whose doubling is known to leave the model as it is."""
    inner = data if len(path) == 1 else data[path[0]]
    two = {name: tower.layers for name, tower in TWO_TOWERS.items()}
    flat = {outer: FAMILIES[kind] for outer, kind in FLAT.items()}
    kinds = {**two, **PAIRED, **flat, **FAMILIES}
    family = kinds.get(inner.get("model_type")) or kinds[data["model_type"]]
    known = HARMLESS | set(family.harmless)
    known |= {key for switch, keys in SWITCHED.items() if not inner.get(switch) for key in keys}
    return known | {key for listed, others in NAMED_BY_OTHERS.items() if inner.get(listed) for key in others}
