"""The system of a row: by its part, with what a row or a family says of the network around it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..systems.system import System

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import TableRow


def system_of(row: TableRow, values: Mapping[str, float | str] | None = None) -> System:
    """The system of a row.

    Args:
        row: its column `hw_key` (or `system`) is a name or an alias of the catalogue, or the path of a .toml.
        values: figures that replace the system's, as its file would have them.

    Raises:
        InputError: there is no such system, or the row names none.
    """
    name = row.text("hw_key") or row.text("system")
    if not name:
        raise InputError("the row names no hw_key")
    return _system(name, tuple(sorted((values or {}).items())))


@lru_cache(maxsize=256)
def _system(name: str, values: tuple[tuple[str, float | str], ...]) -> System:
    system = System.load(name)
    return system.with_values(dict(values), next(iter(system.matrix_rates)), "the row") if values else system
