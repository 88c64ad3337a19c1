"""Encoders of images beside language models: parameters to the last digit, tokens of images, and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from symperf.common.errors import InputError
from symperf.models.configs import Config
from symperf.models.families.towers import read_towers
from symperf.models.model import encoder_of
from symperf.models.towers import Image, parse_images
from symperf.runs.inspection import inspect

CLIP = {
    "hidden_size": 1024,
    "image_size": 336,
    "intermediate_size": 4096,
    "model_type": "clip_vision_model",
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "patch_size": 14,
}
QWEN25 = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "in_chans": 3,
    "out_hidden_size": 3584,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31],
    "temporal_patch_size": 2,
}
QWEN3 = {
    "deepstack_visual_indexes": [5, 11, 17],
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 2048,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
# Counted on instantiated modules of transformers 5.24.
COUNTED = [
    ("llava", CLIP, 4096, 324487168),
    ("mistral3", {"model_type": "pixtral", "head_dim": 64, "image_size": 1540, "patch_size": 14}, 5120, 438958080),
    ("qwen2_5_vl", QWEN25, 3584, 676550144),
    ("qwen3_vl", QWEN3, 2048, 406957056),
    ("kimi_k25", {"patch_size": 14}, 7168, 471143920),
]


def tower(kind: str, vision: dict[str, Any], width: int = 4096) -> Any:
    config = Config({"vision_config": vision}, "config.json")
    return read_towers(config, kind, SimpleNamespace(sizes={"hidden_size": width}))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "vision", "width", "expected"), COUNTED)
def test_parameters_are_those_of_the_modules(kind: str, vision: dict[str, Any], width: int, expected: int) -> None:
    """Layers, stem and projector together, with the class defaults of what a file leaves out."""
    found = tower(kind, vision, width)
    layers = inspect(encoder_of(SimpleNamespace(name="model", source=""), found))  # type: ignore[arg-type]
    assert layers["parameters"]["total"] + found.stem_parameters + found.projector_parameters == expected


@pytest.mark.parametrize(
    ("kind", "vision", "image", "tokens"),
    [
        ("llava", CLIP, Image(1, 500, 900), 576),
        ("qwen2_5_vl", QWEN25, Image(1, 1008, 504), 36 * 18),
        ("qwen3_vl", QWEN3, Image(1, 64, 64, frames=5), 3 * 4),
        ("mistral3", {"patch_size": 14, "head_dim": 64}, Image(1, 56, 84), 2 * (3 + 1)),
    ],
)
def test_tokens_of_an_image(kind: str, vision: dict[str, Any], image: Image, tokens: int) -> None:
    """By patches, merges, row ends and pairs of frames."""
    assert tower(kind, vision).grid.encode(image).tokens == tokens


def test_what_is_no_image_is_refused() -> None:
    """Sides that are no multiples of a token's, videos of encoders of images, and texts of another form."""
    with pytest.raises(InputError, match="multiple of the 28"):
        tower("qwen2_5_vl", QWEN25).grid.encode(Image(1, 1000, 1008))
    with pytest.raises(InputError, match="frames: found 2"):
        tower("llava", CLIP).grid.encode(Image(1, 336, 336, frames=2))
    for text in ("1024x1024", "0x10x10", "axbxc", "1x-2x3", ""):
        with pytest.raises(InputError, match="expected COUNTxHEIGHTxWIDTH"):
            parse_images([text])


def test_unknown_keys_of_an_encoder_are_refused() -> None:
    """They could make another encoder of it."""
    with pytest.raises(InputError, match="number_of_wings"):
        tower("llava", CLIP | {"number_of_wings": 3})


def test_flops_of_an_image_are_those_that_torch_counts() -> None:
    """CLIP's large encoder over 256 patches of 14 pixels and a token of the class."""
    found = tower("llava", CLIP | {"image_size": 224})
    encoded = found.grid.encode(Image(1, 224, 224))
    layers = inspect(
        encoder_of(SimpleNamespace(name="model", source=""), found),  # type: ignore[arg-type]
        sequence=encoded.positions,
    )
    patches = 2 * encoded.patches * found.stem[0].inputs * found.stem[0].outputs
    assert (encoded.positions, patches) == (257, 308281344)
    assert layers["flops_forward"]["total"] + patches == 162023964672
