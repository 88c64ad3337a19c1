"""Where a model's configuration stands: a name of the catalogue, a JSON file, or a folder that holds one."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.errors import InputError, nearest, quote, quote_path
from ..common.files import check_data, decode, read_file
from ..common.system_errors import cause
from .catalogue import BENCHMARKS, CATALOGUE, fold_name

LARGEST_FILE = 10_000_000
"""Bytes; published configs have some thousands."""
EXPECTED = "expected a catalogue name or the path of a config.json"
MISTAKEN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (".index.json", ("weight_map",), "the list of a checkpoint's tensors"),
    ("tokenizer.json", ("added_tokens", "pre_tokenizer"), "a tokenizer"),
    ("tokenizer_config.json", ("tokenizer_class", "added_tokens_decoder"), "the settings of a tokenizer"),
    ("special_tokens_map.json", ("bos_token", "eos_token"), "the special tokens of a tokenizer"),
    ("generation_config.json", ("_from_model_config",), "the defaults of generation"),
    ("adapter_config.json", ("peft_type",), "an adapter, which is a part of a model"),
    ("preprocessor_config.json", ("image_processor_type", "feature_extractor_type"), "what prepares images or sound"),
    ("processor_config.json", ("processor_class",), "what prepares images or sound"),
    ("hf_quant_config.json", ("producer", "quantization"), "how a checkpoint is quantized"),
    ("params.json", ("n_heads", "dim"), "a configuration in the words of Meta's or Mistral's own code"),
    (".safetensors", (), "a file of weights"),
    (".gguf", (), "a file of weights"),
    (".bin", (), "a file of weights"),
    (".pt", (), "a file of weights"),
    (".pth", (), "a file of weights"),
)
"""Files that lie beside a `config.json`: how their names end, keys one of which they have, and what they are."""


@dataclass(frozen=True)
class ConfigFile:
    """A configuration as it is written.

    Attributes:
        name: of the model: in the catalogue, or of its file or folder.
        source: its file, or where the catalogue has it from; for messages.
        data: the object in it.
        where: the name of the file, for messages.

    """

    name: str
    source: str
    data: dict[str, Any]
    where: str


def find_config(source: str | os.PathLike[str]) -> ConfigFile:
    """The configuration that a user means.

    Args:
        source: a name of the catalogue, in any case, an alias or an id of the hub; or the path of a JSON file or of a
            folder that holds a `config.json`. A name comes before a file of the same name.

    Raises:
        InputError: there is no such name or file, or it cannot be read.
    """
    if isinstance(source, str):
        if not source.strip():
            raise InputError(f"the model is an empty text, {EXPECTED}")
        for catalogue in (CATALOGUE, BENCHMARKS):
            if name := catalogue.find(source):
                row, path = catalogue.entries[name], catalogue.path(name)
                told = f"catalogue: {row['kind']}, {row['source']}"
                return ConfigFile(name, told, read_object(path), quote_path(path))
    elif not isinstance(source, os.PathLike):
        raise InputError(f"the model is {quote(source)}, {EXPECTED}")
    return _from_file(source)


def _from_file(source: str | os.PathLike[str]) -> ConfigFile:
    """The configuration in a JSON file, or in a folder that holds a `config.json`."""
    where = quote_path(source)
    try:
        path = Path(source)
        if path.is_dir():
            if not (path / "config.json").exists():
                raise InputError(f"{where}: the folder holds no config.json")
            path = path / "config.json"
        elif not path.exists():
            near = nearest(fold_name(path.name)[:60], CATALOGUE.aliases)
            raise InputError(f"{where}: no such file and no model of the catalogue{near}")
        where = quote_path(path)
        absolute = path.resolve()
        _refuse_mistaken_name(path, where)
        data = read_object(path)
        _refuse_mistaken(path, where, data)
        beside = path.with_name("hf_quant_config.json")
        if Path(source).is_dir() and beside.exists() and "quantization_config" not in data:
            data["quantization_config"] = read_object(beside).get("quantization")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: cannot be read: {cause(error)}") from None
    name = absolute.parent.name if absolute.name == "config.json" else absolute.stem
    return ConfigFile(name or where, where, data, where)


def _refuse_mistaken_name(path: Path, where: str) -> None:
    """Refuse a file by its name: weights are no text, and some tokenizers are longer than any configuration.

    Raises:
        InputError: it lies beside a `config.json`, and is none.
    """
    for ending, keys, what in MISTAKEN:
        long = not keys or ending in ("tokenizer.json", ".index.json")
        if long and path.name.lower().endswith(ending) and path.is_file():
            raise _mistaken(path, where, what)


def _refuse_mistaken(path: Path, where: str, data: dict[str, Any]) -> None:
    """Refuse a file that is of no model by its name or its keys.

    Raises:
        InputError: it is one of those that lie beside a `config.json`.
    """
    for ending, keys, what in MISTAKEN:
        if "model_type" not in data and (path.name.lower().endswith(ending) or any(key in data for key in keys)):
            raise _mistaken(path, where, what)


def _mistaken(path: Path, where: str, what: str) -> InputError:
    beside = path.with_name("config.json")
    there = f", which lies beside it ({quote_path(beside)})" if beside.is_file() and beside != path else ""
    return InputError(f"{where}: is {what}, expected the config.json of the model{there}")


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; NaN and Infinity may stand where nothing reads them, as published files have them.

    Raises:
        InputError: The file cannot be read, is too large, no UTF-8, no JSON, no object, or repeats a key.
    """
    where = quote_path(path)
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
    check_data(data, where)
    return data


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs; a key that comes twice is an error, not the last value silently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, _ in pairs if counts[key] > 1)
        raise InputError(f"the key {quote(repeated)} comes twice, expected it once")
    return found
