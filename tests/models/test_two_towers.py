"""Encoders of images and of texts beside each other: CLIP and SigLIP."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from support.paths import GOLDEN_2026

import symperf as sf
from symperf.models.model import encoder_of, make_model

CLIP = sf.Model.load(GOLDEN_2026 / "configs" / "clip-vit-large-patch14.json")
LARGE = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}


def made(kind: str, text: dict[str, Any], vision: dict[str, Any], **more: Any) -> sf.Model:
    """The model of a file of two towers."""
    data = {"model_type": kind, "text_config": text, "vision_config": vision, **more}
    return make_model(kind, "test", data, "config.json")


@pytest.mark.parametrize(
    ("model", "total", "vision"),
    [
        (made("clip", {}, {}), 151_277_313, 2_398_464 + 1_536 + 85_054_464 + 1_536),
        (made("siglip", {}, {}), 203_155_970, 741_120 + 85_054_464 + 1_536),
        (
            made("siglip", LARGE, LARGE | {"image_size": 384, "patch_size": 14}),
            877_960_498,
            1_518_336 + 411_466_608 + 2_304,
        ),
    ],
    ids=["clip-base", "siglip-base", "siglip-so400m"],
)
def test_parameters_are_those_of_the_modules(model: sf.Model, total: int, vision: int) -> None:
    """Of both towers with the class defaults of what a file leaves out, counted on modules of transformers 5.24."""
    found = sf.inspect(model)
    assert found["parameters"]["total"] == found["parts"]["full_model"] == total
    assert found["parameters"]["active_per_token"] == total
    assert found["parts"]["vision"]["encoder"] == vision


def test_flops_of_each_tower_are_those_that_torch_counts() -> None:
    with (GOLDEN_2026 / "flops.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == CLIP.name]
    (tower,) = CLIP.towers
    assert len(rows) == 4
    for row in rows:
        batch, length = int(row["batch"]), int(row["q_len"])
        image = row["phase"] == "encode_image"
        found = sf.inspect(encoder_of(CLIP, tower) if image else CLIP, batch=batch, sequence=length)
        patches = 2 * batch * 256 * tower.stem[0].parameters if image else 0
        assert patches == int(row["flops_patch_embed"])
        assert found["flops_forward"]["total"] + patches == int(row["flops_total"])


def test_images_join_no_text() -> None:
    """Each has one vector, which one product of it makes; the text's prompt is as long as without."""
    images = sf.inference(CLIP, "h100-sxm", sf.Plan(), batch=8, prompt=77, generate=1, images=["3x224x224"])
    assert images.work.prompt == 77
    encoding = images.encoding
    assert encoding is not None
    assert encoding.tokens == 0
    (size,) = encoding.sizes
    assert set(size.products_s) == {"patch", "image_projection", "text_projection"}
    assert encoding.encoders[0].work.prompt == 257
    assert encoding.encoders[0].work.batch == 24
    with pytest.raises(sf.InputError, match="compares images with texts"):
        sf.training(CLIP, "h100-sxm", sf.Plan(), batch=8, sequence=77)
    with pytest.raises(sf.InputError, match="77 learned positions"):
        sf.inference(CLIP, "h100-sxm", sf.Plan(), batch=8, prompt=78, generate=1)


def test_an_object_that_is_told_twice_is_what_its_second_says() -> None:
    """As `CLIPConfig` reads the files of 2022."""
    data = json.loads((GOLDEN_2026 / "configs" / "clip-vit-large-patch14.json").read_text(encoding="utf-8"))
    twice = make_model("clip", "test", {**data, "text_config": {}, "text_config_dict": data["text_config"]}, "file")
    assert twice.sizes == CLIP.sizes
    for key in ("text_config", "vision_config"):
        with pytest.raises(sf.InputError, match=f"{key} is missing"):
            make_model("clip", "test", {**data, key: None}, "file")
        with pytest.raises(sf.InputError, match="number_of_wings"):
            make_model("clip", "test", {**data, key: {**data[key], "number_of_wings": 3}}, "file")
