"""The model of a row: by its name, or by the dimensions in its columns."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.errors import InputError, nearest, quote
from ..models.catalogue import BENCHMARKS, CATALOGUE, fold_name
from ..models.model import Model, make_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow

DIMENSIONS = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
"""Columns that describe a model; `ffn` is the width of the MLP."""
SIZES = {
    "layers": "num_layers",
    "hidden": "hidden_size",
    "ffn": "intermediate_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "vocab": "vocab_size",
}
BLOCKS = ("gpt", "llama")
"""What a layer is where only dimensions are known: GPT-2's (two matrices in the MLP, layer norms, learned positions)
or Llama's (a gated MLP, RMS norms, rotary positions)."""


def model_of(row: TableRow, block: str = "") -> Model:
    """The model of a row.

    Args:
        row: its column `model` is a name or an alias of the models of benchmarks or of the catalogue, or the path of a
            config.json; else its columns `DIMENSIONS` describe the model.
        block: what a layer is if dimensions describe it, one of `BLOCKS`; by default Llama's where the key-value heads
            are fewer than the heads or the MLP is not four times as wide as the model, else GPT's.

    Returns:
        The model with the dimensions that the row gives, and a table of positions at least as long as its sequence.

    Raises:
        InputError: the name is unknown, and dimensions are missing.
    """
    name = row.text("model")
    sizes = tuple((column, row.whole(column)) for column in DIMENSIONS)
    sequence = row.whole("seq_len_tokens") or row.whole("sequence") or 0
    return _model(name, sizes, block, sequence)


@lru_cache(maxsize=1024)
def _model(name: str, sizes: tuple[tuple[str, int | None], ...], block: str, sequence: int) -> Model:
    given = {column: value for column, value in sizes if value is not None}
    if BENCHMARKS.find(name) or CATALOGUE.find(name) or name.endswith(".json"):
        model = with_dimensions(Model.load(name), given)
    else:
        if not name and not given:
            raise InputError("the row gives no model and no dimensions")
        missing = [column for column in ("layers", "hidden", "heads", "vocab") if column not in given]
        if missing:
            near = nearest(fold_name(name)[:60], {**CATALOGUE.aliases, **BENCHMARKS.aliases})
            raise InputError(f"unknown model {quote(name)}, and no {', '.join(missing)} to describe it{near}")
        model = from_dimensions(given, name=name or "a model", block=block)
    if 0 < model.sizes["position_rows"] < sequence:
        model = replace(model, sizes={**model.sizes, "position_rows": sequence})
    return model


def with_dimensions(model: Model, given: Mapping[str, int]) -> Model:
    """A model with the dimensions that a row gives where they are others: the row knows what was run.

    Raises:
        InputError: the model has layers of several kinds, and the row as many as none of them.
    """
    new = {SIZES[column]: value for column, value in given.items() if model.sizes[SIZES[column]] not in (0, value)}
    if not new:
        return model
    if "num_layers" in new and len(model.architecture.kinds) > 1:
        raise InputError(f"layers: found {new['num_layers']}, but {model.name} has layers of several kinds")
    sizes = {**model.sizes, **new}
    if {"hidden_size", "num_attention_heads"} & set(new):
        width, rest = divmod(sizes["hidden_size"], sizes["num_attention_heads"])
        if rest:
            raise InputError(f"heads: {sizes['num_attention_heads']} do not divide the width {sizes['hidden_size']}")
        sizes["head_dim"] = width
    if sizes["num_attention_heads"] % sizes["num_key_value_heads"]:
        raise InputError(f"kv_heads: {sizes['num_key_value_heads']} do not divide {sizes['num_attention_heads']} heads")
    return replace(model, sizes=sizes)


def from_dimensions(sizes: Mapping[str, int], *, name: str = "a model", block: str = "") -> Model:
    """A decoder described by its dimensions alone.

    Args:
        sizes: by `DIMENSIONS`; without `ffn` the MLP is four times as wide as the model, without `kv_heads` every head
            has its own.
        name: of the model, for messages.
        block: as in `model_of`.

    Raises:
        InputError: the heads do not divide the width, or the key-value heads the heads.

    >>> from_dimensions({"layers": 2, "hidden": 64, "heads": 4, "vocab": 100}).sizes["intermediate_size"]
    256
    """
    hidden, heads = sizes["hidden"], sizes["heads"]
    ffn, groups = sizes.get("ffn", 4 * hidden), sizes.get("kv_heads", heads)
    block = block or ("gpt" if groups == heads and ffn == 4 * hidden else "llama")
    source = "dimensions of the row"
    if block == "gpt":
        if groups != heads:
            raise InputError(f"kv_heads: found {groups}, but a GPT block has one for each of its {heads} heads")
        config = {
            "model_type": "gpt2",
            "n_embd": hidden,
            "n_layer": sizes["layers"],
            "n_head": heads,
            "n_inner": ffn,
            "n_positions": sizes.get("positions", 4096),
            "vocab_size": sizes["vocab"],
            "resid_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
        }
    else:
        config = {
            "model_type": "llama",
            "hidden_size": hidden,
            "num_hidden_layers": sizes["layers"],
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "intermediate_size": ffn,
            "vocab_size": sizes["vocab"],
        }
    return make_model(name, source, config, name)
