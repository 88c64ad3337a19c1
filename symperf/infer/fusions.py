"""The table `[fusion]` of a serving software's profile: which kernels it has joined."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from ..common.errors import InputError, nearest, quote
from .formats import FORMATS
from .profile_table import table_of
from .structure import CASTING, Fusion

LISTS = {"casts": CASTING, "cast_formats": tuple(FORMATS)}
"""Keys that hold lists, and what they may hold."""


def read_fusion(table: object, label: str) -> tuple[Fusion, tuple[str, ...]]:
    """The fusions, and the precisions in which kernels write what the next product reads.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    flags = {field.name: field.default is MISSING for field in fields(Fusion) if field.name not in LISTS}
    known = [*flags, *LISTS]
    table = table_of(table, known, f"{label}: fusion")
    values: dict[str, Any] = {}
    for key, required in flags.items():
        if not isinstance(value := table.get(key, None if required else False), bool):
            raise InputError(f"{label}: fusion.{key}: found {quote(value)}, expected true or false")
        values[key] = value
    listed = {key: _names(table.get(key, []), known, f"{label}: fusion.{key}") for key, known in LISTS.items()}
    if bool(listed["casts"]) != bool(listed["cast_formats"]):
        raise InputError(f"{label}: fusion: found one of casts and cast_formats, expected both or none")
    return Fusion(**values, casts=listed["casts"]), listed["cast_formats"]


def _names(entry: object, known: tuple[str, ...], where: str) -> tuple[str, ...]:
    if not isinstance(entry, list):
        raise InputError(f"{where}: found {quote(entry)}, expected a list of {', '.join(known)}")
    for name in entry:
        if name not in known:
            near = nearest(name, known) if isinstance(name, str) else ""
            raise InputError(f"{where}: found {quote(name)}{near}, expected {', '.join(known)}")
    return tuple(dict.fromkeys(entry))
