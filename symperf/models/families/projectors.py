"""From an encoder's width to a language model's: what stands between the two, one function per kind.

Sources: as of `towers`, whose table puts these together.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ..configs import optional
from ..towers import Product
from .tower_parts import halves

if TYPE_CHECKING:
    from ..configs import Config, Sizes
    from .tower_parts import Source


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


def next_projector(found: Source) -> tuple[list[Product], int]:
    """LLaVA's, and a vector that ends each row of tokens."""
    products, values = llava_projector(found)
    return products, values + found.text


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


def clip_projections(found: Source) -> tuple[list[Product], int]:
    """A product of each tower's last vector; the scale of their cosines is the one other parameter."""
    out = found.beside("projection_dim", 512)
    image = Product("image_projection", found.width, out, False, "images")
    return [image, Product("text_projection", found.text, out, False, "texts")], 1


def siglip_pool(found: Source) -> tuple[list[Product], int]:
    """Attention of a learned query to the patches, an MLP, and a product of the text; scale and bias of the cosines.

    The scores of the one query are left out.
    """
    out = optional("projection_size", absent=found.text, null=found.text)(found.outer.section("text_config"), {})
    pool, values = attention_pool(found)
    return [*pool, Product("text_projection", found.text, out, True, "texts")], values + 2


def attention_pool(found: Source) -> tuple[list[Product], int]:
    """Attention of a learned query to the patches, and an MLP."""
    width, inner = found.width, found.sizes["intermediate_size"]
    shapes = (("query", width, width), ("output", width, width), ("up", width, inner), ("down", inner, width))
    pool = [Product(f"pool/{name}", inputs, outputs, True, "images") for name, inputs, outputs in shapes]
    keys = Product("pool/key_value", width, 2 * width, True, "patches")
    return [keys, *pool], 3 * width


def phi4_projector(found: Source) -> tuple[list[Product], int]:
    """Two products over tokens and row ends, and two vectors that separate; SigLIP's pool runs, for no one to read."""
    pool, values = attention_pool(found)
    return [*pool, *chain([found.width, found.text, found.text], bias=True)], values + 2 * found.width


def intern_projector(found: Source) -> tuple[list[Product], int]:
    """A norm over the patches that become one token, and two products."""
    wide = found.width * halves(found.outer, "downsample_ratio") ** 2
    return chain([wide, found.text, found.text], bias=True), 2 * wide


def glm_projector(found: Source) -> tuple[list[Product], int]:
    """A product of each square of patches, one more with a norm, and a gated MLP."""
    out, merge = found.size("out_hidden_size", absent=found.text), found.size("spatial_merge_size", absent=2)
    inner = found.size("intermediate_size", absent=13696)
    shapes = (("projector", out, out), ("gate", out, inner), ("up", out, inner), ("down", inner, out))
    merger = [Product(f"merger/{name}", inputs, outputs, False, "tokens") for name, inputs, outputs in shapes]
    return [Product("downsample", found.width * merge**2, out, True, "tokens"), *merger], 2 * out
