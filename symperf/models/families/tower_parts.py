"""What encoders beside language models are made of: sizes, stems, projectors, and grids of patches.

Sources: as of `towers`, whose table puts these together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, dropping, heads, hidden_by_heads, optional, require
from ..resizing import Nearest, Within
from ..tiles import Resolutions
from ..towers import Grid, Product
from .bases import GPT2_LAYERS, LLAMA_LAYERS, LLAMA_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..configs import Rule, Runs
    from ..sounds import SoundGrid


@dataclass(frozen=True)
class Source:
    """What a tower is read from.

    Attributes:
        vision: the object of the encoder.
        outer: the whole file's object.
        sizes: of the encoder, by name.
        text: hidden size of the language model.

    """

    vision: Config
    outer: Config
    sizes: Sizes
    text: int

    @property
    def width(self) -> int:
        """Hidden size of the encoder."""
        return self.sizes["hidden_size"]

    def size(self, *keys: str, absent: int | None) -> int:
        """An integer of the encoder's object."""
        return optional(*keys, absent=absent)(self.vision, self.sizes)

    def beside(self, key: str, absent: int) -> int:
        """An integer of the whole file's object."""
        return optional(key, absent=absent, null=absent)(self.outer, self.sizes)


@dataclass(frozen=True)
class TowerFamily:
    """How encoders of one kind are read.

    Attributes:
        layers: of the encoder, by the rules of a family.
        grid: patches and tokens of an image.
        stem: products, and other parameters, before the layers.
        projector: products, and other parameters, after them.
        absent: class defaults of keys that its object leaves out.
        types: the `model_type` of its object, where it may be another encoder's; the first where it has none.

    """

    layers: Family
    grid: Callable[[Source], Grid]
    stem: Callable[[Source], tuple[list[Product], int]]
    projector: Callable[[Source], tuple[list[Product], int]]
    absent: Mapping[str, int] = field(default_factory=dict)
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class AudioFamily:
    """How encoders of sound of one kind are read; see `TowerFamily`."""

    layers: Family
    grid: Callable[[Source], SoundGrid]
    stem: Callable[[Source], tuple[list[Product], int]]
    projector: Callable[[Source], tuple[list[Product], int]]


def every(_: Config, sizes: Sizes, __: bool) -> Runs:
    """Layers that see all patches of an image."""
    return [(LayerKind("attention", "dense", encoder=True), sizes["num_layers"])]


def sizes_of(layers: Rule, hidden: Rule, count: Rule, inner: Rule) -> dict[str, Rule | int]:
    """Sizes of an encoder whose heads have keys of their own and no width of their own."""
    return LLAMA_SIZES | {
        "num_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": count,
        "num_key_value_heads": heads,
        "head_dim": hidden_by_heads,
        "intermediate_size": inner,
        "vocab_size": 0,
    }


def with_defaults(hidden: int, inner: int, layers: int, count: int) -> dict[str, Rule | int]:
    """Sizes under the usual keys, with the class defaults of those that a nested object leaves out."""
    return sizes_of(
        optional("num_hidden_layers", absent=layers),
        optional("hidden_size", absent=hidden),
        optional("num_attention_heads", absent=count),
        optional("intermediate_size", absent=inner),
    )


QWEN_SIZES = sizes_of(
    optional("depth", "num_hidden_layers", absent=None),
    require("hidden_size"),
    require("num_heads", "num_attention_heads"),
    require("intermediate_size"),
)
ENDS = {"head": "none", "tied_embeddings": True, "positions": "none", "dropout": dropping("attention_dropout")}
VIT_LAYERS: dict[str, object] = GPT2_LAYERS | ENDS
ROTARY: dict[str, object] = {"positions": "rotary"}
RMS_LAYERS: dict[str, object] = LLAMA_LAYERS | ENDS | ROTARY
BARE = {"qkv_bias": False, "attention_output_bias": False}
ENCODER_KEYS = """
    image_size num_channels in_channels in_chans patch_size spatial_patch_size temporal_patch_size spatial_merge_size
    out_hidden_size projection_dim vocab_size tokens_per_second window_size fullatt_block_indexes layer_norm_eps
    num_position_embeddings deepstack_visual_indexes num_image_tokens projector_hidden_act vision_use_head size
    merge_kernel_size init_pos_emb_height init_pos_emb_width init_pos_emb_time pos_emb_height pos_emb_width pos_emb_time
    merge_type mm_hidden_size mm_projector_type pos_emb_type projector_ln_eps text_hidden_size video_attn_type
    rope_mode img_token_compression_config vision_segment_max_frames pooling_kernel_size position_embedding_size
    default_output_length use_clipped_linears standardize max_position_embeddings attention_bias global_head_dim
    pixel_shuffle_ratio projector_input_dim projector_output_dim vision_output_dim multi_modal_projector_bias
    projector_dropout vision_feature_select_strategy vision_feature_layer max_image_size _attn_implementation
    axes_head_dim activation_func pos_emb_interpolation_mode use_mask_token layer_scale_init_value initializer_factor
    norm_type depth
"""
HARMLESS = tuple(ENCODER_KEYS.split())
"""Keys that stems, projectors and grids read, or that say nothing about the cost."""


def family(sizes: dict[str, Rule | int], layers: dict[str, object], **more: object) -> Family:
    """The family of an encoder's layers."""
    return Family(sizes, layers, **{"kinds": every, "harmless": HARMLESS} | more)  # type: ignore[arg-type]


# Stems ------------------------------------------------------------------------------------------------------------


def patches_stem(found: Source, *, bias: bool, values: int, frames: int = 1) -> tuple[list[Product], int]:
    """A product of the pixels of a patch, and other parameters."""
    patch = found.size("patch_size", absent=None)
    channels = found.size("num_channels", "in_channels", "in_chans", absent=3)
    return [Product("patch", channels * frames * patch**2, found.width, bias, "patches")], values


def squares(found: Source) -> int:
    """Patches of an image of the size that the encoder is made for."""
    side, patch = found.size("image_size", absent=224), found.size("patch_size", absent=None)
    if side < patch:
        raise InputError(f"{found.vision.where}: image_size is {side}, expected at least the patch_size {patch}")
    return int((side // patch) ** 2)


def intern_stem(found: Source) -> tuple[list[Product], int]:
    """A class token, and a position for it and each patch."""
    masked = found.vision.flag("use_mask_token", False)
    return patches_stem(found, bias=True, values=(squares(found) + 2 + masked) * found.width)


def glm_stem(found: Source) -> tuple[list[Product], int]:
    """Patches of two frames, a norm, and a position for each patch of one size, resampled to the image's."""
    frames = found.size("temporal_patch_size", absent=2)
    return patches_stem(found, bias=True, values=(squares(found) + 1) * found.width, frames=frames)


def clip_stem(found: Source) -> tuple[list[Product], int]:
    """A class token, and a position for it and each patch; the norms at both ends are CLIP's."""
    rows = squares(found) + 1
    return patches_stem(found, bias=False, values=(rows + 1) * found.width + 2 * found.width)


def pixtral_stem(found: Source) -> tuple[list[Product], int]:
    """Patches, and a norm before the layers."""
    return patches_stem(found, bias=False, values=found.width)


def siglip_stem(found: Source) -> tuple[list[Product], int]:
    """A position for each patch."""
    return patches_stem(found, bias=True, values=squares(found) * found.width)


def qwen_stem(found: Source, *, bias: bool, positions: int = 0) -> tuple[list[Product], int]:
    """Patches of two frames; an image is its frame twice."""
    frames = found.size("temporal_patch_size", absent=2)
    return patches_stem(found, bias=bias, values=positions * found.width, frames=frames)


def kimi_stem(found: Source, *, bias: bool = True) -> tuple[list[Product], int]:
    """A learned grid of positions, resampled to the image's."""
    height = found.size("init_pos_emb_height", "pos_emb_height", absent=64)
    width = found.size("init_pos_emb_width", "pos_emb_width", absent=64)
    return patches_stem(found, bias=bias, values=height * width * found.width)


def gemma4_stem(found: Source) -> tuple[list[Product], int]:
    """A table of positions for each axis."""
    return patches_stem(found, bias=False, values=2 * found.size("position_embedding_size", absent=10240) * found.width)


def halves(config: Config, key: str) -> int:
    """Patches of a side that a pixel shuffle joins."""
    config.used.add(key)
    ratio = config.data.get(key, 0.5)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0.001 < ratio <= 1:
        config.fail(key, "a number above 0, up to 1")
    return round(1 / ratio)


# Grids ------------------------------------------------------------------------------------------------------------


def free(found: Source, merge: int, **more: Any) -> Grid:
    """Images keep their shape."""
    return Grid(found.size("patch_size", absent=None), merge, **more)


def scaled(found: Source, merge: int = 1, **more: Any) -> Grid:
    """Images are scaled to, or cut into, squares of one size."""
    patch, side = found.size("patch_size", absent=None), found.size("image_size", absent=224)
    return Grid(patch, merge, side, **more)


def llava_grid(found: Source, *, class_token: bool, absent: str = "default", **more: Any) -> Grid:
    """Squares of which all features but the first join the text, or all: `vision_feature_select_strategy`."""
    word = found.outer.text("vision_feature_select_strategy", absent, ("default", "full"))
    return scaled(found, extra=int(class_token), kept=(word == "full") - (not class_token), **more)


def qwen_grid(found: Source, fit: Nearest) -> Grid:
    """Images keep their shape; the bounds of their pixels are those that published processors of the family have."""
    frames = found.size("temporal_patch_size", absent=2)
    return free(found, found.size("spatial_merge_size", absent=2), frames=frames, fit=fit)


def pixtral_grid(found: Source, merge: int | None = None) -> Grid:
    """Images keep their shape within the largest; a token ends each row."""
    merge = found.beside("spatial_merge_size", 2) if merge is None else merge
    return free(found, merge, row_end=1, fit=Within(found.size("image_size", absent=1024)))


def resolutions(found: Source, absent: tuple[tuple[int, int], ...], most: int = 0) -> Resolutions:
    """The resolutions of a file, as pairs of pixels."""
    found.outer.used.add("image_grid_pinpoints")
    listed = found.outer.data.get("image_grid_pinpoints")
    if listed is None:
        return Resolutions(absent, most)
    pairs = listed if isinstance(listed, list) else []
    if not pairs or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(side) is int and 0 < side < 10**6 for side in pair)
        for pair in pairs
    ):
        found.outer.fail("image_grid_pinpoints", "a list of pairs of height and width in pixels")
    return Resolutions(tuple((pair[0], pair[1]) for pair in pairs), most)


def most_tiles(found: Source) -> int:
    """Tiles of which all tokens are kept, as `anyres_max_9` says.

    Raises:
        InputError: it says something else.
    """
    found.outer.used.add("vision_aspect_ratio")
    word = found.outer.data.get("vision_aspect_ratio", "anyres_max_9")
    number = word.removeprefix("anyres_max_") if isinstance(word, str) else ""
    if not (number.isascii() and number.isdigit() and 0 < int(number) < 1000):
        found.outer.fail("vision_aspect_ratio", "anyres_max_ and a number of tiles")
    return int(number)


def gemma3_grid(found: Source) -> Grid:
    """Patches are pooled to a fixed number of tokens."""
    per_side = math.isqrt(found.beside("mm_tokens_per_image", 256))
    return scaled(found, max(1, math.isqrt(squares(found)) // per_side))


def qwen_windows(config: Config, sizes: Sizes, _: bool) -> Runs:
    """Layers that see windows of patches, but for those listed, which see all."""
    listed = config.numbers("fullatt_block_indexes", largest=10**6)
    whole = set([7, 15, 23, 31] if listed is None else listed)
    return [
        (LayerKind("attention" if place in whole else "local_attention", "dense", encoder=True), 1)
        for place in range(sizes["num_layers"])
    ]


def qwen_window(config: Config) -> int:
    """Patches of a window, whose side is given in pixels."""
    patch, merge = optional("patch_size", absent=14)(config, {}), optional("spatial_merge_size", absent=2)(config, {})
    side = optional("window_size", absent=112)(config, {}) // merge // patch * merge
    return int(max(side, merge) ** 2)
