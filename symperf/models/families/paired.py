"""Encoders and decoders that a file tells apart, each in an object of its own: T5Gemma."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ..configs import Config, Family, Parsed
from ..description import count_kinds, describe
from ..keys import refuse_unknown
from ..quantization import read_quantization
from .dense import DENSE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..architecture import LayerKind

PAIRED: dict[str, Family] = {"t5gemma": replace(DENSE["gemma2"], harmless=("dropout_rate", "tie_word_embeddings"))}
"""Model types -> how both of their stacks are read (transformers 5.24; T5Gemma's are Gemma 2's layers).

Whether the decoder's table is the head too, the file says beside both.
"""

OF_BOTH = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size")
"""Sizes that formulas have one of; published pairs of unequal stacks (9B with 2B) are refused."""


def read_pair(data: Mapping[str, Any], where: str, model_type: str) -> Parsed:
    """Read a config of two objects, `encoder` and `decoder`, whose token tables are two.

    Raises:
        InputError: an object is missing, or the stacks differ in more than their layers.
    """
    outer = Config(data, where)
    stacks = []
    for key in ("encoder", "decoder"):
        if not outer.holds(key):
            raise InputError(f"{where}: {key} is missing, expected an object")
        stacks.append(describe(outer.section(key), PAIRED[model_type], model_type))
    first, second = stacks
    for name in OF_BOTH:
        if first.sizes[name] != second.sizes[name]:
            raise InputError(
                f"{where}: decoder: {name} is {second.sizes[name]} and the encoder's is {first.sizes[name]}, expected "
                "the same: stacks of different widths are not supported yet"
            )
    if first.sliding_window != second.sliding_window and first.sliding_window and second.sliding_window:
        outer.section("decoder").fail("sliding_window", f"{first.sliding_window} as the encoder's")
    if outer.holds("vocab_size") and outer.integer("vocab_size") != second.sizes["vocab_size"]:
        outer.fail("vocab_size", f"{second.sizes['vocab_size']} as the decoder's")
    tied = outer.flag("tie_word_embeddings", True)
    outer.used |= {"encoder", "decoder", "is_encoder_decoder", "dropout_rate", "quantization_config"}
    outer.probability("dropout_rate", 0.0)
    refuse_unknown(outer, ("dropout_rate", "classifier_dropout_rate"))

    runs = [(_of_stack(first, place, encoder=True), count) for place, count in first.layers]
    runs += [(_of_stack(second, place, encoder=False), count) for place, count in second.layers]
    counts = {kind.count for stack in stacks for kind in stack.architecture.kinds}
    sizes = {name: size for name, size in second.sizes.items() if name not in counts}
    sizes["num_layers"] = sum(count for _, count in runs)
    kinds, order = count_kinds(runs, sizes)
    architecture = replace(second.architecture, kinds=kinds, tied_embeddings=tied, encoder_table=True)
    if replace(first.architecture, kinds=kinds, tied_embeddings=tied, encoder_table=True) != architecture:
        raise InputError(f"{where}: decoder: its layers are of another structure than the encoder's, expected the same")
    dropout = any(outer.probability(key, 0.0) > 0 for key in ("dropout_rate", "attention_dropout"))
    return Parsed(
        model_type,
        replace(architecture, dropout=dropout),
        sizes,
        order,
        second.context,
        first.sliding_window or second.sliding_window,
        tuple(dict.fromkeys((*first.warnings, *second.warnings))),
        read_quantization(data, where),
    )


def _of_stack(stack: Parsed, place: int, *, encoder: bool) -> LayerKind:
    kind = stack.architecture.kinds[place]
    return replace(kind, count="num_layers", encoder=encoder, cross=not encoder)
