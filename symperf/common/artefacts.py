"""Artefacts that are made once and kept in the cache folder, so that a second prediction needs no SymPy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..codegen.program import Program
from ..codegen.store import Store, digest
from .fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
FORMAT = "1"
"""Changes with the layout of the artefacts."""


def load_or_make(
    kind: str,
    text: str,
    make: Callable[[], T],
    to_json: Callable[[T], dict[str, Any]],
    from_json: Callable[[dict[str, Any]], T],
) -> T:
    """What `make` makes for `text`, from the cache folder if it is there and whole."""
    store = Store(cache_folder())
    key = digest(FORMAT, kind, text, fingerprint())
    data = store.load(key)
    if data is not None:
        try:
            return from_json(data)
        except (KeyError, TypeError, ValueError):
            pass
    from ..formulas.language.formula import memoize_formulas

    with memoize_formulas():
        result = make()
    store.save(key, to_json(result))
    return result


def load_or_make_program(kind: str, text: str, make: Callable[[], Program]) -> Program:
    """The program that `make` makes for `text`, from the cache folder if it is there and whole."""
    return load_or_make(kind, text, make, Program.to_json, Program.from_json)


def cache_folder() -> Path:
    """Where compiled structures are kept: `SYMPERF_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("SYMPERF_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("symperf", appauthor=False)
