"""Sheets as text: flags or overrides, one a line, under comments that say what no option expresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sheet import Sheet


def comments(sheet: Sheet) -> list[str]:
    """One comment for each note."""
    return [f"# {name}: {text}" for name, text in sheet.notes]


def flags(sheet: Sheet) -> str:
    """`--name value` lines; a switch has no value."""
    lines = [name if value is True else f"{name} {_word(value)}" for name, value in sheet.settings.items()]
    return "\n".join([*comments(sheet), *lines]) + "\n"


def overrides(sheet: Sheet) -> str:
    """`name=value` lines."""
    lines = [f"{name}={_word(value)}" for name, value in sheet.settings.items()]
    return "\n".join([*comments(sheet), *lines]) + "\n"


def nest_tables(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with dots in their names as tables in tables.

    >>> nest_tables({"a.b": 1, "a.c": 2, "d": 3})
    {'a': {'b': 1, 'c': 2}, 'd': 3}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        *path, last = name.split(".")
        table = found
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return found


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
