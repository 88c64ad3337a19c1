"""Encoders of images that processors cut into tiles, one entry per kind, as in `towers`.

Sources: `modeling_internvl`, `_llava_next`, `_llava_onevision`, `_phi4_multimodal` of transformers 5.24 and their
processors; files of `internvl_chat` name the same encoder's keys as its own code does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configs import flag
from ..tiles import ClosestGrid, Crops
from .projectors import (
    intern_projector,
    next_projector,
    phi4_projector,
)
from .tower_parts import (
    HARMLESS,
    VIT_LAYERS,
    TowerFamily,
    clip_stem,
    family,
    halves,
    intern_stem,
    llava_grid,
    most_tiles,
    resolutions,
    scaled,
    siglip_stem,
    with_defaults,
)

if TYPE_CHECKING:
    from ..configs import Config
    from ..towers import Grid
    from .tower_parts import Source

PINPOINTS = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
SQUARES = tuple((384 * rows, 384 * columns) for rows in range(1, 7) for columns in range(1, 7))
"""Class defaults of resolutions: LLaVA-NeXT's and LLaVA-OneVision's."""


def intern_grid(found: Source) -> Grid:
    """Tiles of the nearest shape, twelve at most where the file does not say."""
    most = found.beside("max_dynamic_patch", 12)
    return scaled(found, halves(found.outer, "downsample_ratio"), extra=1, tiles=ClosestGrid(most))


def _norm(config: Config) -> str:
    return config.text("norm_type", "layer_norm", ("layer_norm", "rms_norm"))


INTERN = {
    "norm": _norm,
    "norm_bias": lambda config: _norm(config) == "layer_norm",
    "layer_scale": True,
    "final_norm": False,
}
INTERN_SIZES = with_defaults(1024, 4096, 24, 16)
INTERN_DEFAULTS = {"patch_size": 14, "image_size": 448}


def phi4_grid(found: Source) -> Grid:
    """Crops of the encoder's size, and an overview; four patches become one token."""
    side = found.size("image_size", absent=448)
    if found.size("crop_size", absent=448) != side:
        found.vision.fail("crop_size", f"{side} as image_size")
    return scaled(found, 2, tiles=Crops())


TILED: dict[str, TowerFamily] = {
    "internvl": TowerFamily(
        family(
            INTERN_SIZES,
            VIT_LAYERS
            | INTERN
            | {
                "qkv_bias": flag("attention_bias", False),
                "query_key_norm": flag("use_qk_norm", False, yes="full_width", no="none"),
            },
            only={"use_absolute_position_embeddings": True, "use_mean_pooling": True},
        ),
        intern_grid,
        intern_stem,
        intern_projector,
        INTERN_DEFAULTS,
        ("internvl_vision",),
    ),
    "internvl_chat": TowerFamily(
        family(
            INTERN_SIZES,
            VIT_LAYERS
            | INTERN
            | {
                "qkv_bias": flag("qkv_bias", False),
                "query_key_norm": flag("qk_normalization", False, yes="full_width", no="none"),
            },
        ),
        intern_grid,
        intern_stem,
        intern_projector,
        INTERN_DEFAULTS,
        ("intern_vit_6b",),
    ),
    "phi4_multimodal": TowerFamily(
        family(with_defaults(1152, 4304, 27, 16), VIT_LAYERS, harmless=(*HARMLESS, "crop_size", "feature_layer")),
        phi4_grid,
        siglip_stem,
        phi4_projector,
        {"patch_size": 14, "image_size": 448, "crop_size": 448},
        ("phi4_multimodal_vision",),
    ),
    "llava_next": TowerFamily(
        family(with_defaults(768, 3072, 12, 12), VIT_LAYERS),
        lambda found: llava_grid(found, class_token=True, tiles=resolutions(found, PINPOINTS)),
        clip_stem,
        next_projector,
        {"patch_size": 32},
        ("clip_vision_model",),
    ),
    "llava_onevision": TowerFamily(
        family(
            with_defaults(768, 3072, 12, 12),
            VIT_LAYERS,
            only={"vision_use_head": False},
            absent={"vision_use_head": True},
        ),
        lambda found: llava_grid(
            found, class_token=False, absent="full", tiles=resolutions(found, SQUARES, most_tiles(found))
        ),
        siglip_stem,
        next_projector,
        {"patch_size": 16},
        ("siglip_vision_model",),
    ),
}
"""The `model_type` of a file -> the encoder of images under its `vision_config`."""
