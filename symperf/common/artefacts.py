"""Artefacts that are made once and kept in the cache folder, so that a second prediction needs no SymPy."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..codegen.program import Program
from ..codegen.store import Store, digest, is_private
from .collecting import collection_paused
from .errors import quote
from .fingerprint import fingerprint
from .system_errors import cause

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
    with collection_paused():
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
    """Where compiled structures are kept: `SYMPERF_CACHE`, or the user's cache folder.

    A user without a home has a folder among temporary files, which is used if it is theirs alone.
    """
    chosen = os.environ.get("SYMPERF_CACHE")
    try:
        if chosen:
            return Path(chosen).expanduser()
        from platformdirs import user_cache_path

        found = user_cache_path("symperf", appauthor=False)
        if found.is_absolute():
            return found
    except RuntimeError:  # there is no home to begin a path with
        pass
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"symperf-cache-{user}"


def cache_fault() -> str | None:
    """Why nothing is kept in the cache folder, in one line, if it is there and is refused or cannot be written."""
    folder = cache_folder()
    try:
        if not folder.exists():
            return None
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not is_private(folder):
            return (
                f"the cache {quote(str(folder))} is not used: others may write there, or it is not yours; "
                "chmod 700 makes it yours alone, SYMPERF_CACHE names another"
            )
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        return f"the cache {quote(str(folder))} is not used: {cause(error)}; SYMPERF_CACHE names another"
    return None
