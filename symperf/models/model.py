"""The `Model`: an architecture and its sizes, read from a Hugging Face `config.json` or from the catalogue."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..common.files import decode, read_file
from ..common.frozen import Frozen
from .catalogue import BENCHMARKS, CATALOGUE, Catalogue, fold_name
from .configs import Architecture
from .families import parse
from .segments import segments
from .stored_modules import with_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .quantization import Quantization
    from .towers import Tower

__all__ = ["Architecture", "Model", "catalogue_names", "resolve"]

LARGEST_FILE = 10_000_000
"""Bytes; published configs have some thousands."""


@dataclass(frozen=True, repr=False)
class Model:
    """A model: its structure and its sizes.

    Attributes:
        name: Its name in the catalogue, or the name of its file or folder.
        family: The `model_type` of its config.
        source: Its file, or where the catalogue has it from; for messages.
        architecture: The structural choices, which decide the form of the cost.
        sizes: `hidden_size`, `num_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`,
            `intermediate_size`, `vocab_size` and `position_rows` (rows of a learned position table), as 0 where there
            is no such thing; and those of other parts that it has, such as `num_experts` or `kv_lora_rank`. Where
            layers are of several kinds, the count of each (`LayerKind.count`), which add up to `num_layers`.
        layers: The layers in order, as runs: the index of a kind in `architecture.kinds`, and how many of it follow one
            another; an encoder comes before a decoder.
        context: The longest sequence in tokens that the config is made for, if it says.
        sliding_window: The width in tokens of windowed attention in some or all layers, if there is any.
        quantization: How the checkpoint stores its weights, if not in 16 bits.
        warnings: What the config says that the cost does not carry, one line each.
        towers: The encoders of images or sound beside the language model, which the other fields are of.

    """

    name: str
    family: str
    source: str
    architecture: Architecture
    sizes: Mapping[str, int]
    layers: tuple[tuple[int, int], ...]
    context: int | None
    sliding_window: int | None
    warnings: tuple[str, ...]
    quantization: Quantization | None = None
    towers: tuple[Tower, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", Frozen(self.sizes))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"<Model {self.name} ({self.family}): {sizes}>"

    @property
    def uniform_dense(self) -> bool:
        """Whether every layer is a decoder's attention and MLP of one size; windows do not matter here."""
        return self.architecture.uniform_dense

    @property
    def segments(self) -> tuple[tuple[str, ...], ...]:
        """Kinds of layers that come one after another in a decoder, each by its count, those that interleave together.

        Nothing where stages of a pipeline cannot differ in what they hold: a single such group, or two stacks.
        """
        found = segments(self.layers) if self.architecture.stacks == 1 else ()
        kinds = self.architecture.kinds
        return tuple(tuple(kinds[at].count for at in group) for group in found) if len(found) > 1 else ()

    @classmethod
    def load(cls, source: str | os.PathLike[str], ignore_keys: Iterable[str] = ()) -> Model:
        """Read a model.

        Args:
            source: A name of the catalogue (`llama-2-7b`, in any case, an alias such as `GPT-175B`, or an id of the
                hub such as `meta-llama/Llama-2-7b-hf`), a JSON file in the form of a Hugging Face `config.json`,
                or a folder that holds a `config.json`. A catalogue name comes before a file of the same name:
                write `./gpt2` for the folder.
            ignore_keys: Keys of the file that are read as if they were not there, wherever in it they stand.

        Raises:
            InputError: There is no such name or file, it cannot be read, or it does not describe a supported model.

        >>> Model.load("gpt3-175b").sizes["hidden_size"]
        12288

        """
        if isinstance(source, str):
            if not source.strip():
                raise InputError("the model is an empty text, expected a catalogue name or the path of a config.json")
            for catalogue in (CATALOGUE, BENCHMARKS):
                if known := catalogue.find(source):
                    return _from_catalogue(known, catalogue, tuple(ignore_keys))
        elif not isinstance(source, os.PathLike):
            raise InputError(f"the model is {quote(source)}, expected a catalogue name or the path of a config.json")
        return from_file(source, tuple(ignore_keys))


def catalogue_names() -> list[str]:
    """The names of all models of the catalogue, sorted."""
    return CATALOGUE.names()


def resolve(name: str) -> str:
    """The catalogue name that a name, an alias or an id of the hub stands for, in any case.

    Raises:
        InputError: The catalogue has no such model; the line lists the nearest names.

    >>> resolve("GPT-175B")
    'gpt3-175b'

    """
    known = CATALOGUE.find(name)
    if known is None:
        near = nearest(fold_name(name)[:60], CATALOGUE.aliases)
        raise InputError(f"unknown model {quote(name)}, expected a catalogue name{near}")
    return known


def _from_catalogue(name: str, catalogue: Catalogue, ignore_keys: tuple[str, ...]) -> Model:
    """The model of a name of a catalogue."""
    row, path = catalogue.entries[name], catalogue.path(name)
    source = f"catalogue: {row['kind']}, {row['source']}"
    return make_model(name, source, read_object(path), one_line(path), ignore_keys)


def from_file(source: str | os.PathLike[str], ignore_keys: tuple[str, ...] = ()) -> Model:
    """The model of a JSON file or of a folder that holds a `config.json`."""
    where = one_line(source)
    try:
        path = Path(source)
        if path.is_dir():
            if not (path / "config.json").exists():
                raise InputError(f"{where}: the folder holds no config.json")
            path = path / "config.json"
        elif not path.exists():
            near = nearest(fold_name(path.name)[:60], CATALOGUE.aliases)
            raise InputError(f"{where}: no such file and no model of the catalogue{near}")
        where = one_line(path)
        absolute = path.resolve()
        data = read_object(path)
        beside = path.with_name("hf_quant_config.json")
        if Path(source).is_dir() and beside.exists() and "quantization_config" not in data:
            data["quantization_config"] = read_object(beside).get("quantization")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{where}: cannot be read: {reason}") from None
    name = absolute.parent.name if absolute.name == "config.json" else absolute.stem
    return make_model(name or where, where, data, where, ignore_keys)


def make_model(name: str, source: str, data: Mapping[str, Any], where: str, ignore_keys: tuple[str, ...] = ()) -> Model:
    """A model from the object of its config."""
    for key in ignore_keys:
        if key not in (every := keys_of(data)):
            raise InputError(f"{where}: ignore_key: there is no key {quote(key)} in the file{nearest(key[:60], every)}")
    parsed = parse(without_keys(data, frozenset(ignore_keys)), where)
    ignored = tuple(f"the key {quote(key)} is ignored, as asked" for key in dict.fromkeys(ignore_keys))
    model = Model(
        name,
        parsed.family,
        source,
        parsed.architecture,
        parsed.sizes,
        parsed.layers,
        parsed.context,
        parsed.sliding_window,
        (*parsed.warnings, *ignored),
        parsed.quantization,
        parsed.towers,
    )
    return with_classes(model)


def encoder_of(model: Model, tower: Tower) -> Model:
    """The layers of a tower as a model of their own, whose formulas are bound to its sizes."""
    name, found = f"{model.name}, {tower.part} encoder", tower.encoder
    return Model(
        name,
        found.family,
        model.source,
        found.architecture,
        found.sizes,
        found.layers,
        None,
        found.sliding_window,
        found.warnings,
    )


def keys_of(data: Any) -> list[str]:
    """The keys of an object and of those within it."""
    inner = [key for value in data.values() for key in keys_of(value)] if isinstance(data, dict) else []
    return sorted({*data, *inner}) if isinstance(data, dict) else []


def without_keys(data: Any, keys: frozenset[str]) -> Any:
    """An object without some keys, and those within it."""
    if not isinstance(data, dict) or not keys:
        return data
    return {key: without_keys(value, keys) for key, value in data.items() if key not in keys}


def one_line(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: printable, and the middle of a very long one left out."""
    text = os.fspath(path)
    text = text if isinstance(text, str) and text.isprintable() else repr(text)
    return text if len(text) <= 500 else f"{text[:240]}...{text[-240:]}"


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; NaN and Infinity may stand where nothing reads them, as published files have them.

    Raises:
        InputError: The file cannot be read, is too large, no UTF-8, no JSON, no object, or repeats a key.
    """
    where = one_line(path)
    if not path.is_file():
        raise InputError(f"{where}: is a folder or a device, expected a JSON file")
    text = decode(read_file(path, where, "a JSON file", LARGEST_FILE), where, "a JSON file")
    try:
        data = json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: line {error.lineno}, column {error.colno}: invalid JSON: {error.msg}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except RecursionError:
        raise InputError(f"{where}: invalid JSON: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{where}: invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: holds {quote(data)}, expected an object with model_type and sizes")
    return data


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs; a key that comes twice is an error, not the last value silently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the key {quote(repeated)} comes twice, expected it once")
    return found
