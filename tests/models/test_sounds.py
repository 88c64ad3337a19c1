"""Encoders of sound beside language models: tokens of recordings, and what their pass takes."""

from __future__ import annotations

from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.sounds import Sound, parse_media, parse_sounds
from symperf.models.towers import Image
from symperf.runs.encoding import encode

FRAMES = (50, 99, 100, 101, 1234, 2500, 3000, 12345)
NAMES = ("qwen2-audio", "qwen2.5-omni", "qwen3-omni", "voxtral")


def model(name: str) -> sf.Model:
    """A file with one layer of text and whole towers."""
    return sf.Model.load(GOLDEN_2026 / "towers" / f"{name}.json")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen2-audio", [12, 25, 25, 25, 308, 625, 750]),
        ("qwen2.5-omni", [12, 25, 25, 25, 308, 625, 750, 3086]),
        ("qwen3-omni", [7, 13, 13, 14, 161, 325, 390, 1605]),
        ("voxtral", [375] * 7 + [5 * 375]),
    ],
    ids=NAMES,
)
def test_tokens_are_those_of_the_classes(name: str, expected: list[int]) -> None:
    """`_get_feat_extract_output_lengths` of transformers 5.24; Voxtral's processor fills half minutes up."""
    found = model(name)
    frames = FRAMES[: len(expected)]
    assert [encode(found, Sound(1, each)).tokens for each in frames] == expected


def test_a_conformer_makes_a_token_of_80_ms_and_sees_40_s() -> None:
    """Phi-4: eight spectra become one position, whose attention is in pieces of 500."""
    phi = sf.Model.load(GOLDEN_2026 / "configs" / "default-phi4_multimodal.json")
    found = [encode(phi, Sound(1, each)) for each in (1, 8, 9, 4000, 4001)]
    assert [each.tokens for each in found] == [1, 1, 2, 500, 501]
    assert [(each.sequences, each.positions) for each in found[3:]] == [(1, 500), (2, 500)]


def test_windows_are_read_apart() -> None:
    """Whisper's encoder reads half a minute, Qwen2.5's two seconds, and Qwen3's layers join eight windows of one."""
    found = {name: encode(model(name), Sound(1, 2500)) for name in NAMES}
    seen = {name: (each.sequences, each.positions, each.windows) for name, each in found.items()}
    assert seen == {
        "qwen2-audio": (1, 1500, 1),
        "qwen2.5-omni": (13, 100, 13),
        "qwen3-omni": (4, 104, 25),
        "voxtral": (1, 1500, 1),
    }


def test_a_pass_runs_the_products_that_the_classes_have() -> None:
    """Of two sequences with a recording of 25 s each: rows of convolutions, and the tokens in the prompt."""
    run = sf.inference(model("qwen3-omni"), "h100-sxm", sf.Plan(), batch=2, prompt=10, generate=2, frames=2500)
    encoding = run.encoding
    assert encoding is not None
    assert run.work.prompt == 10 + 325
    tower = encoding.towers[0]
    rows = {product.name: product.times for product in tower.stem if product.rows == "windows"}
    assert rows == {"convolution_1": 64 * 50, "convolution_2": 32 * 25, "convolution_3": 16 * 13}
    assert 0 < sum(encoding.sizes[0].products_s.values()) < encoding.time_s
    whole = sf.inspect(run.model)["parts"]["audio"]
    assert encoding.weight_bytes == 2 * (whole["encoder"] + whole["projector"])


def test_images_and_sound_are_read_by_their_own_encoders() -> None:
    both: dict[str, Any] = {"images": ["1x448x448"], "sounds": ["2x2500"]}
    found = model("qwen3-omni")
    run = sf.inference(found, "h100-sxm", sf.Plan(), batch=1, prompt=10, generate=2, **both)
    assert run.work.prompt == 10 + 196 + 2 * 325
    assert run.encoding is not None
    told = run.encoding.to_dict()
    assert told["part"] == "vision and audio"
    parts = sf.inspect(found)["parts"]
    assert told["weight_bytes"] == 2 * (parts["full_model"] - parts["language_model"])
    assert told["encode_s"] == pytest.approx(sum(size["encode_s"] for size in told["sizes"]))


def test_what_is_no_sound_is_refused() -> None:
    assert parse_media(["1x448x448"], 4) == (Image(1, 448, 448, 4),)
    assert parse_media([], 1) == ()
    for text in ("3000", "0x10", "1x0", "axb", "1x-2", ""):
        with pytest.raises(sf.InputError, match="expected COUNTxFRAMES"):
            parse_sounds([text])
    with pytest.raises(sf.InputError, match="frames: found 3001, expected at most 3000"):
        encode(model("qwen2-audio"), Sound(1, 3001))
    with pytest.raises(sf.InputError, match="expected enough for a token"):
        encode(model("qwen2-audio"), Sound(1, 1))
    with pytest.raises(sf.InputError, match="has no encoder of sound"):
        encode(model("llava-next"), Sound(1, 100))
    with pytest.raises(sf.InputError, match="has no encoder of images"):
        encode(model("voxtral"), Image(1, 448, 448))
