"""Where named profiles of software lie, and how a name or a path finds one."""

from __future__ import annotations

import os
from pathlib import Path

from ..common.errors import InputError, nearest, quote


def names_in(catalogue: Path) -> list[str]:
    """The profiles of a folder of the catalogue, sorted."""
    return sorted(path.stem for path in catalogue.glob("*.toml"))


def locate(source: object, catalogue: Path) -> Path:
    """The file that a name of a folder's profile, or a path, means.

    Raises:
        InputError: neither, with the nearest name.
    """
    if not isinstance(source, str | os.PathLike):
        names = " or ".join(names_in(catalogue))
        raise InputError(f"stack: found {quote(source)}, expected {names}, or the path of a .toml file")
    text = os.fspath(source)
    if not isinstance(source, str) or text.endswith(".toml") or os.sep in text:
        return Path(text)
    key = text.strip().casefold()
    found = catalogue / f"{key}.toml"
    if not key or not found.is_file():
        known = names_in(catalogue)
        raise InputError(f"stack: found {quote(text)}, expected {' or '.join(known)}{nearest(key, known)}")
    return found
