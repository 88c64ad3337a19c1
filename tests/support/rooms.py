"""Rooms of the packages and the imports between them, read from the files."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIVIDED = ("train", "plan_search", "technology", "validation", "calibration")
"""Folders whose own folders are rooms too."""
DOOR = {"__init__", "__main__", "api"}
"""The files at the root of the package, which know of everything."""


class Import(NamedTuple):
    """One import of one module by another, both as tuples of names from the top folder on."""

    by: tuple[str, ...]
    of: tuple[str, ...]
    typed: bool


@cache
def modules(top: str) -> dict[tuple[str, ...], Path]:
    """The modules of a top folder; links into the other two are left out."""
    found = {}
    for path in sorted((ROOT / top).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "__pycache__" not in parts and parts[1] not in ("formulas", "codegen"):
            found[parts[:-1] if parts[-1] == "__init__" else parts] = path
    return found


def _walk(tree: ast.AST, typed: bool = False) -> Iterator[tuple[ast.ImportFrom, bool]]:
    """Every `from ... import`, and whether it is for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        only = typed or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        if isinstance(node, ast.ImportFrom):
            yield node, only
        yield from _walk(node, only)


@cache
def imports_of(top: str) -> list[Import]:
    """Every relative import inside of a top folder, wherever in a file."""
    known, found = modules(top), []
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module[:-1]
        for node, typed in _walk(ast.parse(path.read_text(encoding="utf-8"))):
            base = (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            base = tuple(part for part in base if part)
            for alias in node.names:
                target = (*base, alias.name) if (*base, alias.name) in known else base
                if node.level and target in known and target != module:
                    found.append(Import(module, target, typed))
    return found


def room_of(module: tuple[str, ...]) -> str:
    """The room of a module; of a file at the root its own name."""
    path = modules(module[0])[module]
    folders = module[1:] if path.name == "__init__.py" else module[1:-1]
    if not folders:
        return module[-1] if path.name != "__init__.py" else "__init__"
    return ".".join(folders[: 2 if folders[0] in DIVIDED else 1])


def arrows_of(top: str) -> dict[str, set[str]]:
    """Which rooms each room imports."""
    found: dict[str, set[str]] = {}
    for by, of, _ in imports_of(top):
        if room_of(by) != room_of(of):
            found.setdefault(room_of(by), set()).add(room_of(of))
    return found
