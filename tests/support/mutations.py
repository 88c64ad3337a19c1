"""Configurations with one key removed, renamed or doubled."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from symperf.common.errors import InputError
from symperf.models.catalogue import CATALOGUE
from symperf.models.model import Model, make_model

from .paths import GOLDEN_2026

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str, ...]
QUANTIZATION = ("quantization_config", "compression_config")


def configurations() -> dict[str, dict[str, Any]]:
    """Every configuration that loads, of the catalogue and of the golden set of 2026."""
    paths = [*(CATALOGUE.path(name) for name in CATALOGUE.names()), *sorted((GOLDEN_2026 / "configs").glob("*.json"))]
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {name: data for name, data in found.items() if isinstance(read(data), Model)}


def read(data: dict[str, Any]) -> Model | str:
    """The model of a configuration, without its notes, or the line that refuses it."""
    try:
        return replace(make_model("model", "file", data, "file"), warnings=())
    except InputError as error:
        return str(error)


def keys(data: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every key with its value, those of objects too; what is quantized is another subject."""
    for key, value in data.items():
        yield (*above, key), value
        if isinstance(value, dict) and key not in QUANTIZATION:
            yield from keys(value, (*above, key))


def change(data: dict[str, Any], path: Path, edit: Callable[[dict[str, Any], str], dict[str, Any]]) -> dict[str, Any]:
    """The data with the object that holds the last key edited."""
    if len(path) == 1:
        return edit(data, path[0])
    return {key: change(value, path[1:], edit) if key == path[0] else value for key, value in data.items()}


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The key removed."""
    return {name: value for name, value in data.items() if name != key}


def renamed(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The key with a slip in its name, in its place."""
    return {f"{name}_renamed" if name == key else name: value for name, value in data.items()}


def holding(value: Any) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """The key with another value."""
    return lambda data, key: {**data, key: value}


def doubled(data: dict[str, Any], key: str) -> dict[str, Any]:
    """A number twice as large, a choice the other way round."""
    value = data[key]
    return {**data, key: not value if isinstance(value, bool) else 2 * value}
