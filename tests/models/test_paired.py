"""Files that tell an encoder and a decoder apart: T5Gemma."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.model import make_model

DATA = json.loads((GOLDEN_2026 / "configs" / "default-t5gemma.json").read_text(encoding="utf-8"))


def changed(**objects: dict[str, Any]) -> sf.Model:
    """The model of the file with some keys of its objects changed."""
    data = {key: {**value, **objects[key]} if key in objects else value for key, value in DATA.items()}
    return make_model("t5gemma", "test", data, "t5gemma.json")


def test_the_decoder_has_its_cross_attention_between_two_norms() -> None:
    """26 layers of each stack, as PyTorch counts them; every second one sees a window."""
    found = sf.inspect(changed())["parameters_per_layer"]
    assert sorted(set(found.values())) == [77_865_984, 92_026_368]
    assert len(found) == 4


def test_windows_are_of_the_decoder_and_of_no_cross_attention() -> None:
    """With windows of 8 tokens the encoder's output is cached and seen whole."""
    small = {"sliding_window": 8}
    model = changed(encoder=small, decoder=small)
    run = sf.inference(model, "h100-sxm", sf.Plan(), batch=2, prompt=512, generate=65, stack="tensorrt-llm")
    layer = 2 * 4 * 256 * 2
    assert run.memory_terms()["kv_cache/cross"] == 2 * 512 * 26 * layer
    assert run.memory_terms()["kv_cache"] == 2 * 13 * (8 + 128) * layer
    train = [sf.training(each, "h100-sxm", sf.Plan(), batch=1, sequence=512) for each in (model, changed())]
    windowed, whole = ({row.name: row.flops for row in each.table()} for each in train)
    for name in ("layer/decoder/cross/flash", "layer/decoder_2/cross/flash"):
        assert windowed[f"{name}/forward"] == whole[f"{name}/forward"] > 0
    assert windowed["layer/encoder/attention/flash/forward"] < whole["layer/encoder/attention/flash/forward"]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({"encoder": {"hidden_size": 3584}}, "decoder: hidden_size is 2304 and the encoder's is 3584"),
        ({"decoder": {"attention_bias": True}}, "decoder: its layers are of another structure"),
        ({"decoder": {"sliding_window": 512}}, "sliding_window is 512, expected 4096"),
        ({"encoder": {"number_of_wings": 3}}, "number_of_wings"),
    ],
    ids=["width", "structure", "window", "unknown"],
)
def test_unequal_stacks_are_refused(objects: dict[str, dict[str, Any]], expected: str) -> None:
    with pytest.raises(sf.InputError, match=expected):
        changed(**objects)
