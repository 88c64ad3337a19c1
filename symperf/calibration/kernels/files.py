"""The constants that were found as the TOML file of a system, or of a serving software's profile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...infer.stack import names as profiles
from ...systems.system import catalogue_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...systems.system_symbols import Quantity
    from .calibrate import KernelCalibration


def toml(found: KernelCalibration, folder: str | os.PathLike[str] = ".") -> str:
    """The file: of a profile on its base where a software was measured, else of a system on its base.

    Args:
        found: the outcome.
        folder: where the file will lie; a base that is a file is named from there.
    """
    base = found.base
    if base not in (profiles() if found.software else catalogue_names()):
        base = os.path.relpath(Path(base), folder)
    head = [f"base = {_quote(base)}", ""]
    name, constants = found.system.name, found.constants
    lines = tables(name, constants, found.formats) if found.software else _values(constants)
    return "\n".join([*head, *lines]) + "\n"


def tables(system: str, constants: Mapping[str, Quantity], formats: Mapping[str, Mapping[str, Quantity]]) -> list[str]:
    """The lines of [on.SYSTEM] and of its formats."""
    root = f"on.{_key(system)}"
    lines = [f"[{root}]", *_values(constants)] if constants else []
    for name, each in sorted(formats.items()):
        lines += ["", f"[{root}.formats.{_key(name)}]", *_values(each)]
    return lines


def _values(constants: Mapping[str, Quantity]) -> list[str]:
    return [constant(name, quantity) for name, quantity in constants.items()]


def constant(name: str, quantity: Quantity) -> str:
    """The line of a constant."""
    parts = {"value": quantity.value, "low": quantity.low, "high": quantity.high}
    numbers = ", ".join(f"{key} = {value!r}" for key, value in parts.items() if value is not None)
    return f"{name} = {{ {numbers}, source = {_quote(quantity.source)} }}"


def _key(name: str) -> str:
    plain = all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return name if plain and name else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
