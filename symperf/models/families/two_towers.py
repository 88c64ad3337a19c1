"""Encoders of images and of texts that are trained to agree: CLIP and SigLIP."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ..configs import Config, Family, Parsed, activating, dropping, heads, require
from ..description import describe
from ..keys import refuse_unknown
from ..quantization import read_quantization
from .bases import GPT2_LAYERS, LLAMA_SIZES
from .encoders import only_encoder
from .towers import read_towers

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class TextTower:
    """The encoder of texts beside one of images.

    Attributes:
        layers: how its object is read.
        absent: class defaults of keys that it leaves out (transformers 5.24).

    """

    layers: Family
    absent: Mapping[str, int]


TEXT = Family(
    LLAMA_SIZES | {"num_key_value_heads": heads, "position_rows": require("max_position_embeddings")},
    GPT2_LAYERS
    | {
        "head": "none",
        "tied_embeddings": True,
        "activation": activating("gelu"),
        "dropout": dropping("attention_dropout"),
    },
    kinds=only_encoder,
    harmless=("projection_dim", "projection_size"),
)
TWO_TOWERS: dict[str, TextTower] = {
    "clip": TextTower(
        TEXT,
        {"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12}
        | {"num_attention_heads": 8, "max_position_embeddings": 77},
    ),
    "siglip": TextTower(
        TEXT,
        {"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
        | {"num_attention_heads": 12, "max_position_embeddings": 64},
    ),
}
"""Model types -> the tower of texts; that of images is in `towers`."""

ALL_PAIRS = "the text's attention is counted over all pairs, also where it sees what is before a token only"


def read_two_towers(data: Mapping[str, Any], where: str, model_type: str) -> Parsed:
    """Read a config of two towers: the model is the text's, and the image's stands beside it.

    Older files of CLIP tell an object twice; the second one, `text_config_dict`, overrules, as in its class.

    Raises:
        InputError: an object is missing, or a key of one is unknown or has another value than expected.
    """
    merged = dict(data)
    for key in ("text_config", "vision_config"):
        if not isinstance(data.get(key), dict):
            raise InputError(f"{where}: {key} is missing, expected an object")
        again = data.get(f"{key}_dict")
        merged[key] = {**data[key], **(again if isinstance(again, dict) else {})}
    outer, kind = Config(merged, where), TWO_TOWERS[model_type]
    text = outer.section("text_config")
    text.data = {**kind.absent, **text.data}
    found = describe(text, kind.layers, model_type)
    towers = read_towers(outer, model_type, found)
    outer.used |= {"text_config_dict", "vision_config_dict", "quantization_config"}
    refuse_unknown(outer, ("logit_scale_init_value",))
    notes = [f"{tower.part}_config: {note}" for tower in towers for note in tower.encoder.warnings]
    more = (ALL_PAIRS,) if model_type == "clip" else ()
    return replace(
        found,
        towers=towers,
        warnings=(*found.warnings, *notes, *more),
        quantization=read_quantization(data, where),
    )
