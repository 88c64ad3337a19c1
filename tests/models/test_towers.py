"""Encoders of images beside language models: parameters to the last digit, tokens of images, and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from symperf.common.errors import InputError
from symperf.models.configs import Config
from symperf.models.families.towers import read_towers
from symperf.models.model import encoder_of
from symperf.models.resizing import Nearest, Within
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
INTERN6 = {
    "hidden_size": 3200,
    "num_hidden_layers": 2,
    "num_attention_heads": 25,
    "intermediate_size": 12800,
    "use_qk_norm": True,
    "norm_type": "rms_norm",
}
GLM = {"depth": 24, "hidden_size": 1536, "num_heads": 12, "attention_bias": False}
ONEVISION = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "image_size": 384,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 26,
    "patch_size": 14,
    "vision_use_head": False,
}
# Counted on instantiated modules of transformers 5.24.
COUNTED = [
    ("llava", CLIP, 4096, 324487168),
    ("mistral3", {"model_type": "pixtral", "head_dim": 64, "image_size": 1540, "patch_size": 14}, 5120, 438958080),
    ("qwen2_5_vl", QWEN25, 3584, 676550144),
    ("qwen3_vl", QWEN3, 2048, 406957056),
    ("kimi_k25", {"patch_size": 14}, 7168, 471143920),
    ("internvl", {"attention_bias": True}, 896, 308495104),
    ("internvl_chat", {"qkv_bias": True, "image_size": [448, 448]}, 896, 308495104),
    ("internvl", INTERN6, 896, 263303808),
    ("glm4v", GLM, 4096, 892498432),
    ("llava_next", CLIP, 4096, 324491264),
    ("llava_onevision", ONEVISION, 896, 399585440),
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


FITTED = [
    (Nearest(3_136, 12_845_056), 28, "448x448 504x896 1036x756 1092x1932 1988x308 112x112 2996x2996 56x84"),
    (
        Nearest(65_536, 16_777_216),
        32,
        "448x448 512x896 1024x768 1088x1920 1984x288 256x256 3008x3008 224x320",
    ),
    (
        Nearest(12_544, 11_760_000, frames=2),
        28,
        "448x448 504x896 1036x756 1092x1932 1988x308 112x112 2408x2408 84x112",
    ),
    (Within(1540), 28, "448x448 504x924 1036x784 868x1540 1540x252 112x112 1540x1540 28x56"),
]
SHAPES = [(448, 448), (500, 900), (1024, 768), (1080, 1920), (2000, 300), (100, 100), (3000, 3000)]


@pytest.mark.parametrize(
    ("kind", "vision", "expected"),
    [
        ("internvl", {}, [256, 768, 3328, 2304, 2048, 256, 2560]),
        ("llava_next", CLIP, [2928, 1850, 2352, 1948, 1368, 1176, 2928]),
        ("llava_onevision", ONEVISION, [3699, 4501, 4744, 7269, 4941, 1485, 7371]),
        ("idefics3", {"image_size": 364, "patch_size": 14}, [2873, 2197, 2197, 2197, 845, 2873, 2873]),
        ("llama4", {"image_size": 336, "patch_size": 14}, [720, 1008, 1872, 2304, 1008, 144, 2448]),
        ("phi4_multimodal", {}, [545, 1596, 1692, 3918, 1313, 545, 9585]),
    ],
)
def test_tokens_of_tiles_are_those_of_the_processors(kind: str, vision: dict[str, Any], expected: list[int]) -> None:
    """The processors of transformers 5.24, for images of seven shapes."""
    grid = tower(kind, vision).grid
    assert [grid.encode(Image(1, *shape)).tokens for shape in SHAPES] == expected


@pytest.mark.parametrize(
    ("fit", "unit", "expected"),
    FITTED,
    ids=["qwen2.5", "qwen3", "glm", "pixtral"],
)
def test_images_are_fitted_as_processors_do(fit: Any, unit: int, expected: str) -> None:
    """Height and width by `smart_resize` and `get_resize_output_image_size` of transformers 5.24."""
    found = [fit.fit(shape, unit) for shape in (*SHAPES, (20, 30))]
    assert " ".join(f"{height}x{width}" for height, width in found) == expected


def test_the_type_of_an_encoder_is_that_of_its_object() -> None:
    """LLaVA around Pixtral's encoder is no CLIP, and what is neither is refused."""
    pixtral = {"model_type": "pixtral", "patch_size": 16, "image_size": 1024, "hidden_size": 1024}
    assert tower("llava", pixtral).grid.encode(Image(1, 500, 1000)).tokens == 32 * (63 + 1)
    assert tower("llava", ONEVISION).grid.encode(Image(1, 500, 1000)).tokens == 27**2
    with pytest.raises(InputError, match="model_type is 'dinov2', expected clip_vision_model or pixtral or siglip_v"):
        tower("llava", {"model_type": "dinov2"})


def test_what_is_no_image_is_refused() -> None:
    """Sides that are no multiples of a token's, videos of encoders of images, and texts of another form."""
    with pytest.raises(InputError, match="multiple of the 28"):
        tower("kimi_k25", {"patch_size": 14}, 7168).grid.encode(Image(1, 1000, 1008))
    with pytest.raises(InputError, match="multiple of the 28"):
        tower("qwen2_5_vl", QWEN25).grid.encode(Image(1, 1000, 1008, frames=2))
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
