"""What encoders beside language models are made of: sizes, stems, projectors, and grids of patches.

Sources: as of `towers`, whose table puts these together.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...common.errors import InputError
from ..architecture import LayerKind
from ..configs import Config, Family, Sizes, dropping, heads, hidden_by_heads, optional, require
from ..towers import Grid, Product
from .bases import GPT2_LAYERS, LLAMA_LAYERS, LLAMA_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..configs import Rule, Runs


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

    """

    layers: Family
    grid: Callable[[Source], Grid]
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
    axes_head_dim activation_func pos_emb_interpolation_mode
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


def clip_stem(found: Source) -> tuple[list[Product], int]:
    """A class token, and a position for it and each patch; the norms at both ends are CLIP's."""
    rows = squares(found) + 1
    return patches_stem(found, bias=False, values=(rows + 1) * found.width + 2 * found.width)


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


# Projectors -------------------------------------------------------------------------------------------------------


def chain(widths: list[int], *, bias: bool, rows: str = "tokens", first: int = 1) -> list[Product]:
    """Products one after the other, through some widths."""
    pairs = itertools.pairwise(widths)
    return [
        Product(f"projector_{place}", inputs, outputs, bias, rows)  # type: ignore[arg-type]
        for place, (inputs, outputs) in enumerate(pairs, first)
    ]


def llava_projector(found: Source) -> tuple[list[Product], int]:
    """Two products over the features of some layers."""
    layers = found.outer.data.get("vision_feature_layer", -2)
    wide = found.width * (len(layers) if isinstance(layers, list) else 1)
    return chain([wide, found.text, found.text], bias=found.outer.flag("multimodal_projector_bias", True)), 0


def mistral_projector(found: Source) -> tuple[list[Product], int]:
    """A norm, a product that merges patches, and two more."""
    merge, wide = found.beside("spatial_merge_size", 2), found.width
    layers = found.outer.data.get("vision_feature_layer", -1)
    read = wide * (len(layers) if isinstance(layers, list) else 1)
    two = chain([read, found.text, found.text], bias=found.outer.flag("multimodal_projector_bias", False), first=2)
    return [*chain([wide * merge**2, wide], bias=False), *two], wide


def qwen_projector(found: Source, norm: int = 1) -> tuple[list[Product], int]:
    """A merger of squares of patches; and such mergers of the layers that deepstack takes."""
    merged = found.width * found.size("spatial_merge_size", absent=2) ** 2
    out = found.size("out_hidden_size", absent=found.text)
    listed = found.vision.numbers("deepstack_visual_indexes", largest=10**6) or []
    one = chain([merged, merged, out], bias=True)
    more = [
        Product(f"deepstack_{place}/{each.name}", each.inputs, each.outputs, each.bias, each.rows)
        for place in listed
        for each in one
    ]
    return [*one, *more], norm * (found.width + len(listed) * merged)


def kimi_projector(found: Source) -> tuple[list[Product], int]:
    """A norm of each patch, and two products over squares of patches."""
    merged = found.width * merge_of(found) ** 2
    return chain([merged, merged, found.text], bias=True), 2 * found.width


def kimi_k3_projector(found: Source) -> tuple[list[Product], int]:
    """Two products over squares of patches, and a norm of the language model's width."""
    merged = found.width * merge_of(found) ** 2
    return chain([merged, merged, found.text], bias=False), found.text


def kimi_k3_width(config: Config, sizes: Sizes) -> int:
    """The width of a head: its part of the width of all queries."""
    wide, count = optional("qkv_hidden_size", absent=1536)(config, sizes), sizes["num_attention_heads"]
    if wide % count:
        config.fail("qkv_hidden_size", f"a multiple of the {count} heads")
    return wide // count


def merge_of(found: Source) -> int:
    """Patches of a side of what `merge_kernel_size` merges."""
    sides = found.vision.numbers("merge_kernel_size", largest=1000) or [2, 2]
    if len(set(sides)) != 1 or not sides[0]:
        found.vision.fail("merge_kernel_size", "two equal sides")
    return sides[0]


def minimax_projector(found: Source) -> tuple[list[Product], int]:
    """Two products of each patch, and two of each square of patches."""
    wide = found.beside("projector_hidden_size", found.text)
    each = chain([found.width, wide, found.text], bias=True, rows="patches")
    return [*each, *chain([found.text * minimax_merge(found) ** 2, wide, found.text], bias=True, first=3)], 0


def minimax_merge(found: Source) -> int:
    """Patches of a side that are merged."""
    return optional("spatial_merge_size", absent=2)(found.vision.section("img_token_compression_config"), {})


def llama4_projector(found: Source) -> tuple[list[Product], int]:
    """Two products over what the pixel shuffle gives, and one to the language model."""
    first = found.size("projector_input_dim", absent=4096)
    second = found.size("projector_output_dim", absent=4096)
    two = [
        Product("adapter_1", found.sizes["intermediate_size"], first, False, "tokens"),
        Product("adapter_2", second, second, False, "tokens"),
    ]
    return [*two, *chain([found.size("vision_output_dim", absent=7680), found.text], bias=False)], 0


def single(found: Source, *, bias: bool, norm: bool = False, merge: int = 1) -> tuple[list[Product], int]:
    """One product."""
    return chain([found.width * merge**2, found.text], bias=bias), found.width if norm else 0


# Grids ------------------------------------------------------------------------------------------------------------


def free(found: Source, merge: int, *, frames: int = 0, row_end: int = 0, largest: int = 0) -> Grid:
    """Images keep their size."""
    patch = found.size("patch_size", absent=None)
    return Grid(patch, merge, frames=frames, row_end=row_end, largest=largest)


def scaled(found: Source, merge: int = 1, *, extra: int = 0, tiles: bool = False) -> Grid:
    """Images are scaled to, or cut into, squares of one size."""
    return Grid(found.size("patch_size", absent=None), merge, found.size("image_size", absent=224), extra, tiles=tiles)


def gemma3_grid(found: Source) -> Grid:
    """Patches are pooled to a fixed number of tokens."""
    per_side = math.isqrt(found.beside("mm_tokens_per_image", 256))
    return scaled(found, max(1, math.isqrt(squares(found)) // per_side))


def half(found: Source) -> int:
    """Patches of a side that a pixel shuffle joins."""
    ratio = found.vision.data.get("pixel_shuffle_ratio", 0.5)
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 1:
        found.vision.fail("pixel_shuffle_ratio", "a number above 0, up to 1")
    return round(1 / ratio)


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
