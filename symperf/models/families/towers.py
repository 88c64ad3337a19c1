"""Encoders beside language models: what the keys of their `vision_config` mean, one entry per kind of encoder.

Sizes, biases, norms and class defaults are those of transformers 5.24 (`modeling_clip`, `_siglip`, `_pixtral`,
`_qwen2_vl`, `_qwen2_5_vl`, `_qwen3_vl`, `_glm4v`, `_kimi_k25`, `_minimax_m3_vl`, `_gemma4`, `_llama4`, `_idefics3`,
and the projectors in `_llava`, `_mistral3`, `_gemma3`, `_paligemma`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..configs import Config, flag, hidden_by_heads, optional, require
from ..description import describe
from ..resizing import Nearest
from ..tiles import Canvas, LongestEdge
from ..towers import Tower
from .audio_towers import AUDIO
from .projectors import (
    clip_projections,
    glm_projector,
    kimi_k3_projector,
    kimi_k3_width,
    kimi_projector,
    llama4_projector,
    llava_projector,
    merge_of,
    minimax_merge,
    minimax_projector,
    mistral_projector,
    qwen_projector,
    siglip_pool,
    single,
)
from .tiled_towers import TILED
from .tower_parts import (
    BARE,
    HARMLESS,
    QWEN_SIZES,
    RMS_LAYERS,
    ROTARY,
    VIT_LAYERS,
    Source,
    TowerFamily,
    clip_stem,
    family,
    free,
    gemma3_grid,
    gemma4_stem,
    glm_stem,
    halves,
    kimi_stem,
    patches_stem,
    pixtral_grid,
    pixtral_stem,
    qwen_grid,
    qwen_stem,
    qwen_window,
    qwen_windows,
    scaled,
    siglip_stem,
    sizes_of,
    squares,
    with_defaults,
)

if TYPE_CHECKING:
    from ..configs import Parsed, Sizes
    from .tower_parts import AudioFamily


def inner_by_ratio(config: Config, sizes: Sizes) -> int:
    """The width of the MLP, a multiple of the encoder's."""
    return optional("mlp_ratio", absent=4)(config, sizes) * sizes["hidden_size"]


CLIP = TowerFamily(
    family(with_defaults(768, 3072, 12, 12), VIT_LAYERS),
    lambda found: scaled(found, extra=1),
    clip_stem,
    llava_projector,
    {"patch_size": 32},
    ("clip_vision_model",),
)
SIGLIP = family(with_defaults(768, 3072, 12, 12), VIT_LAYERS, only={"vision_use_head": False})
QWEN3 = TowerFamily(
    family(QWEN_SIZES, VIT_LAYERS | ROTARY | {"final_norm": False}),
    lambda found: qwen_grid(found, Nearest(65_536, 16_777_216)),
    lambda found: qwen_stem(found, bias=True, positions=found.size("num_position_embeddings", absent=2304)),
    lambda found: qwen_projector(found, norm=2),
)
QWEN25 = TowerFamily(
    family(
        QWEN_SIZES,
        RMS_LAYERS
        | {
            "qkv_bias": True,
            "attention_output_bias": True,
            "mlp_bias": True,
            "final_norm": False,
            "chunked_attention": True,
        },
        kinds=qwen_windows,
        window=qwen_window,
    ),
    lambda found: qwen_grid(found, Nearest(3_136, 12_845_056)),
    lambda found: qwen_stem(found, bias=False),
    qwen_projector,
)
IDEFICS = TowerFamily(
    family(with_defaults(1152, 3072, 12, 16), VIT_LAYERS),
    lambda found: scaled(found, found.beside("scale_factor", 2), tiles=LongestEdge()),
    siglip_stem,
    lambda found: single(found, bias=False, merge=found.beside("scale_factor", 2)),
)
PIXTRAL = family(
    with_defaults(1024, 4096, 24, 16) | {"head_dim": optional("head_dim", absent=hidden_by_heads)},
    RMS_LAYERS | BARE | {"final_norm": False},
)

GLM = TowerFamily(
    family(
        QWEN_SIZES | {"intermediate_size": optional("out_hidden_size", absent=4096)},
        RMS_LAYERS | BARE | {"qkv_bias": flag("attention_bias", False)},
        harmless=(*HARMLESS, "intermediate_size"),
    ),
    lambda found: qwen_grid(found, Nearest(12_544, 11_760_000, frames=2)),
    glm_stem,
    glm_projector,
    {"patch_size": 14, "image_size": 336, "out_hidden_size": 4096, "intermediate_size": 13696},
)
GEMMA4_SIZES = with_defaults(768, 3072, 16, 12) | {
    "num_key_value_heads": optional("num_key_value_heads", absent=12),
    "head_dim": optional("head_dim", absent=64),
}

TOWERS: dict[str, TowerFamily] = {
    **TILED,
    "llava": CLIP,
    "llava/pixtral": TowerFamily(
        PIXTRAL, lambda found: pixtral_grid(found, 1), pixtral_stem, llava_projector, {"patch_size": 16}, ("pixtral",)
    ),
    "llava/siglip_vision_model": TowerFamily(
        replace(SIGLIP, absent={"vision_use_head": True}),
        scaled,
        siglip_stem,
        llava_projector,
        {"patch_size": 16},
        ("siglip_vision_model",),
    ),
    **dict.fromkeys(("glm4v", "glm4v_moe", "glm46v"), GLM),
    "clip": TowerFamily(
        CLIP.layers,
        lambda found: scaled(found, extra=1, apart=True),
        clip_stem,
        clip_projections,
        {"patch_size": 32},
    ),
    "siglip": TowerFamily(
        family(with_defaults(768, 3072, 12, 12), VIT_LAYERS, only={"vision_use_head": True}),
        lambda found: scaled(found, apart=True),
        siglip_stem,
        siglip_pool,
        {"patch_size": 16},
    ),
    "mistral3": TowerFamily(
        PIXTRAL,
        pixtral_grid,
        pixtral_stem,
        mistral_projector,
    ),
    "qwen2_vl": TowerFamily(
        family(
            QWEN_SIZES | {"hidden_size": require("embed_dim"), "intermediate_size": inner_by_ratio},
            VIT_LAYERS | ROTARY | {"final_norm": False},
            harmless=(*HARMLESS, "hidden_size", "mlp_ratio"),
        ),
        QWEN25.grid,
        lambda found: qwen_stem(found, bias=False),
        lambda found: qwen_projector(found, norm=2),
    ),
    **dict.fromkeys(("qwen2_5_vl", "qwen2_5_omni_thinker"), QWEN25),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen3_omni_moe_thinker"), QWEN3),
    "kimi_k25": TowerFamily(
        family(
            sizes_of(
                optional("vt_num_hidden_layers", "num_hidden_layers", absent=27),
                optional("vt_hidden_size", "hidden_size", absent=1152),
                optional("vt_num_attention_heads", "num_attention_heads", absent=16),
                optional("vt_intermediate_size", "intermediate_size", absent=4304),
            ),
            VIT_LAYERS | ROTARY,
        ),
        lambda found: free(found, merge_of(found)),
        kimi_stem,
        kimi_projector,
    ),
    "kimi_k3": TowerFamily(
        family(
            sizes_of(
                optional("vt_num_hidden_layers", absent=27),
                optional("vt_hidden_size", absent=1024),
                optional("vt_num_attention_heads", absent=12),
                optional("vt_intermediate_size", absent=4096),
            )
            | {"head_dim": kimi_k3_width},
            RMS_LAYERS | BARE | {"gated_mlp": False, "activation": "gelu"},
            only={
                "attn_bias": False,
                "linear_bias": False,
                "patch_embed_proj_bias": False,
                "norm_type": "rmsnorm",
                "mlp_type": "mlp2",
            },
        ),
        lambda found: free(found, merge_of(found)),
        lambda found: kimi_stem(found, bias=False),
        kimi_k3_projector,
    ),
    "minimax_m3_vl": TowerFamily(
        family(QWEN_SIZES | {"num_layers": require("num_hidden_layers")}, VIT_LAYERS | ROTARY | {"final_norm": False}),
        lambda found: free(found, minimax_merge(found)),
        lambda found: patches_stem(
            found,
            bias=False,
            values=2 * found.width,
            frames=optional("temporal_patch_size", absent=2)(found.vision.section("img_token_compression_config"), {}),
        ),
        minimax_projector,
    ),
    "gemma3": TowerFamily(SIGLIP, gemma3_grid, siglip_stem, lambda found: single(found, bias=False, norm=True)),
    "paligemma": TowerFamily(SIGLIP, scaled, siglip_stem, lambda found: single(found, bias=True)),
    **dict.fromkeys(("idefics3", "smolvlm"), IDEFICS),
    "gemma4": TowerFamily(
        family(
            GEMMA4_SIZES,
            RMS_LAYERS | BARE | {"block_norms": 4, "query_key_norm": "per_head", "final_norm": False},
            only={"use_clipped_linears": False, "attention_bias": False},
        ),
        lambda found: free(
            found,
            found.size("pooling_kernel_size", absent=3),
            largest=found.beside("vision_soft_tokens_per_image", 280),
        ),
        gemma4_stem,
        lambda found: single(found, bias=False),
    ),
    "llama4": TowerFamily(
        family(with_defaults(768, 5632, 34, 16), VIT_LAYERS | ROTARY),
        lambda found: scaled(found, halves(found.vision, "pixel_shuffle_ratio"), extra=1, tiles=Canvas()),
        lambda found: patches_stem(found, bias=False, values=(squares(found) + 2) * found.width + 2 * found.width),
        llama4_projector,
    ),
}
"""The `model_type` of a file -> the encoder of images under its `vision_config`."""


def read_towers(outer: Config, model_type: str, language: Parsed) -> tuple[Tower, ...]:
    """The towers of a config, beside its language model; none where it describes none.

    Args:
        outer: the whole file's object.
        model_type: of it.
        language: what the language model was read as.

    Raises:
        InputError: a key of an encoder is missing, unknown or has another value than expected.
    """
    found = []
    if model_type in TOWERS and outer.holds("vision_config"):
        vision = outer.section("vision_config")
        kind = _kind_of(vision, model_type)
        vision.data = {**kind.absent, **vision.data}
        for key in ("image_size", "patch_size"):
            sides = vision.data.get(key)
            if isinstance(sides, list) and len(sides) == 2 and sides[0] == sides[1]:
                vision.data[key] = sides[0]
        found.append(_tower("vision", kind, vision, outer, language, model_type))
    if model_type in AUDIO and outer.holds("audio_config"):
        found.append(_tower("audio", AUDIO[model_type], outer.section("audio_config"), outer, language, model_type))
    return tuple(found)


def _tower(
    part: str, kind: TowerFamily | AudioFamily, inner: Config, outer: Config, language: Parsed, model_type: str
) -> Tower:
    encoder = describe(inner, kind.layers, model_type)
    source = Source(inner, outer, encoder.sizes, language.sizes["hidden_size"])
    stem, projector = kind.stem(source), kind.projector(source)
    return Tower(part, encoder, tuple(stem[0]), stem[1], tuple(projector[0]), projector[1], kind.grid(source))


def _kind_of(vision: Config, model_type: str) -> TowerFamily:
    """The encoder that a file has, of several that one with its `model_type` may have."""
    word = vision.data.get("model_type")
    found = TOWERS.get(f"{model_type}/{word}", TOWERS[model_type])
    if found.types and word is not None and word not in found.types:
        known = [name.partition("/")[2] for name in TOWERS if name.startswith(f"{model_type}/")]
        vision.fail("model_type", " or ".join([*TOWERS[model_type].types, *known]))
    return found
