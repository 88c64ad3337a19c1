"""Models found by a search over shapes, whose layers differ one by one (`block_configs` of Nemotron's NAS).

Source: Bercovich et al. 2024, "Puzzle" (arXiv 2411.19146); the code of the checkpoints (modeling_decilm.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError, quote
from ..architecture import LayerKind
from ..layouts import in_runs, with_sizes

if TYPE_CHECKING:
    from ..architecture import Mixer
    from ..configs import Config, Rule, Runs, Sizes

ROUNDED = 256
"""The inner width is a multiple of it."""


@dataclass(frozen=True)
class Shape:
    """What one layer has: key-value heads and inner width, None where the part is missing."""

    num_key_value_heads: int | None
    intermediate_size: int | None


def nas_shapes(config: Config, hidden: int, heads: int) -> list[Shape]:
    """The layers' shapes.

    Raises:
        InputError: there is no list of blocks, or a block is not as it should be.
    """
    config.used.add("block_configs")
    blocks = config.data.get("block_configs")
    if not isinstance(blocks, list) or not blocks:
        raise InputError(f"{config.where}: block_configs is missing, expected a list with an object for every layer")
    return [_shape(block, f"{config.where}: block_configs[{i}]", hidden, heads) for i, block in enumerate(blocks)]


ATTENTION = {"n_heads_in_group", "no_op", "replace_with_linear", "sparsify", "window_length", "num_sink_tokens",
    "use_prefill_window_in_sink_attention", "unshifted_sink"}  # fmt: skip
FFN = {"ffn_mult", "no_op", "replace_with_linear", "sparsify"}


def _shape(block: Any, where: str, hidden: int, heads: int) -> Shape:
    if not isinstance(block, dict):
        raise InputError(f"{where}: found {quote(block)}, expected an object with attention and ffn")
    for key in block:
        if key not in ("attention", "ffn"):
            raise InputError(f"{where}: unknown key {quote(key)}, expected attention and ffn")
    attention, ffn = (_part(block, name, known, where) for name, known in (("attention", ATTENTION), ("ffn", FFN)))
    kv_heads = width = None
    if not attention.get("no_op"):
        group = attention.get("n_heads_in_group")
        if type(group) is not int or group < 1 or heads % group:
            raise InputError(f"{where}: attention: n_heads_in_group is {quote(group)}, expected a divisor of {heads}")
        kv_heads = heads // group
    if not ffn.get("no_op"):
        mult = ffn.get("ffn_mult")
        if isinstance(mult, bool) or not isinstance(mult, int | float) or not 0 < mult <= 1000:
            raise InputError(f"{where}: ffn: ffn_mult is {quote(mult)}, expected a number above 0")
        width = -(-int(2 * mult * hidden / 3) // ROUNDED) * ROUNDED
    if kv_heads is None and width is None:
        raise InputError(f"{where}: found neither attention nor an MLP, expected one of them")
    return Shape(kv_heads, width)


def _part(block: dict[str, Any], name: str, known: set[str], where: str) -> dict[str, Any]:
    part = block.get(name)
    if not isinstance(part, dict):
        raise InputError(f"{where}: {name} is {quote(part)}, expected an object")
    for key, value in part.items():
        if key not in known:
            raise InputError(f"{where}: {name}: unknown key {quote(key)}, expected one of {', '.join(sorted(known))}")
        if key not in ("n_heads_in_group", "ffn_mult", "no_op") and value not in (None, False):
            raise InputError(f"{where}: {name}: {key} is {quote(value)}, expected null: it is not supported yet")
    return part


def nas_largest(size: str) -> Rule:
    """The largest of a size that any layer has: it stands for the model's."""

    def rule(config: Config, sizes: Sizes) -> int:
        shapes = nas_shapes(config, sizes["hidden_size"], sizes["num_attention_heads"])
        return max((getattr(shape, size) or 0 for shape in shapes), default=0) or 1

    return rule


def nas_kinds(config: Config, sizes: Sizes, _: bool) -> Runs:
    """The layers, each with the parts and the sizes that its block says."""
    shapes = nas_shapes(config, sizes["hidden_size"], sizes["num_attention_heads"])
    if len(shapes) != sizes["num_layers"]:
        raise InputError(
            f"{config.where}: block_configs has {len(shapes)} entries, expected one for each of "
            f"{sizes['num_layers']} layers"
        )
    return in_runs(_kind(shape, sizes) for shape in shapes)


def _kind(shape: Shape, sizes: Sizes) -> LayerKind:
    own = {name: value for name in ("num_key_value_heads", "intermediate_size") if (value := getattr(shape, name))}
    mixer: Mixer = "none" if shape.num_key_value_heads is None else "attention"
    return with_sizes(LayerKind(mixer, "none" if shape.intermediate_size is None else "dense"), own, sizes)
