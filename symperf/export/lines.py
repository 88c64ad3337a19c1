"""Sheets as text: flags or overrides, one a line, under comments that say what no option expresses."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .sheet import Sheet


def comments(sheet: Sheet) -> list[str]:
    """One comment for each note."""
    return [f"# {name}: {text}" for name, text in sheet.notes]


def flag(name: str, value: Any) -> str:
    """`--name value`; a switch has no value, a list one word for each of its own.

    >>> flag("--offload-modules", ["core_attn", "attn_proj"])
    '--offload-modules core_attn attn_proj'
    """
    return shlex.join([name, *_words(value)])


def flags(sheet: Sheet) -> str:
    """A line for each flag."""
    lines = [flag(name, value) for name, value in sheet.settings.items()]
    return "\n".join([*comments(sheet), *lines]) + "\n"


def command(words: Sequence[str], sheet: Sheet) -> str:
    """A command of a shell, an option a line, after the configuration file that it reads, if there is one."""
    options = {name: value for name, value in sheet.settings.items() if name.startswith("--")}
    keys = {name: value for name, value in sheet.settings.items() if name not in options}
    lines = [shlex.join(words)]
    lines += [name if value is True else f"{name} {shlex.quote(_word(value))}" for name, value in options.items()]
    found = " \\\n  ".join(lines) + "\n"
    if keys:
        found = f"cat > {shlex.quote(options['--config'])} <<'END'\n{yaml(nest_tables(keys))}END\n{found}"
    return found


def arguments(settings: Mapping[str, Any]) -> list[str]:
    """Options as the words of a command."""
    return [word for name, value in settings.items() for word in ([name] if value is True else [name, _word(value)])]


def yaml(data: Any, indent: str = "") -> str:
    """Tables and lists as YAML, a line each; texts are quoted as in JSON wherever they are no plain word.

    >>> print(yaml({"a": {"b": 1}, "c": ["x", {"d": True, "e": "-y z"}]}), end="")
    a:
      b: 1
    c:
    - x
    - d: true
      e: "-y z"
    """
    lines = ""
    for key, value in data.items() if isinstance(data, dict) else ((None, each) for each in data):
        begin = f"{indent}-" if key is None else f"{indent}{key}:"
        if isinstance(value, dict) and key is None:
            lines += f"{begin} {yaml(value, indent + '  ').removeprefix(indent + '  ')}"
        elif isinstance(value, dict | list):
            lines += f"{begin}\n{yaml(value, indent + '  ' if isinstance(value, dict) else indent)}"
        else:
            lines += f"{begin} {_scalar(value)}\n"
    return lines


def _scalar(value: Any) -> str:
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./-]*", value) is not None
    return value if plain and value.lower() not in WORDS else json.dumps(value, ensure_ascii=False)


WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
"""Words that YAML reads as something else than a text."""


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


def _words(value: Any) -> list[str]:
    """The words behind the name of a flag."""
    if value is True:
        return []
    return [_word(each) for each in value] if isinstance(value, list) else [_word(value)]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
