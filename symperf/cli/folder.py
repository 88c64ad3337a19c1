"""Where the command line writes a folder of files: a whole one, or none."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..common.system_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_folder(path: str | os.PathLike[str], files: Mapping[str, str], mark: str, told: str) -> None:
    """Write a folder, or leave what is there as it is: it is written beside and put in its place when it is whole.

    A folder that this function wrote before, and an empty one, are replaced; every other one is refused.

    Args:
        path: of the folder.
        files: text by file name.
        mark: the name of one more file, which lists the others: by it the next call knows the folder.
        told: what the error line says before the reason, with {} for the path.

    Raises:
        InputError: it cannot be written, or what is there is no such folder.
    """
    check_folder(path, mark, told)
    listed = json.dumps({"files": sorted(files)}, indent=1) + "\n"
    with one_line(told.format(quote(str(path)))):
        target = Path(path).resolve()
        beside = Path(tempfile.mkdtemp(prefix=".symperf-", dir=target.parent))
        whole, before = beside / "whole", beside / "before"
        try:
            whole.mkdir()
            for name, text in {**files, mark: listed}.items():
                (whole / name).write_text(text, encoding="utf-8")
            if target.exists():
                target.rename(before)
            whole.rename(target)
        finally:
            if before.exists() and not target.exists():
                before.rename(target)
            shutil.rmtree(beside, ignore_errors=True)


def check_folder(path: str | os.PathLike[str], mark: str, told: str) -> None:
    """Refuse a folder that `write_folder` could not write or must not replace, before the work that fills it.

    Args:
        path: of the folder.
        mark: as in `write_folder`.
        told: as in `write_folder`.

    Raises:
        InputError: it is a file, another folder, one to which files were added, or its parent is not there.
    """
    shown = told.format(quote(str(path)))
    with one_line(told.format(quote(str(path)))):
        target = Path(path).resolve()
        if not target.exists():
            if not target.parent.is_dir():
                missing = errno.ENOTDIR if target.parent.exists() else errno.ENOENT
                raise OSError(missing, os.strerror(missing))
            return
        if not target.is_dir():
            raise InputError(f"{shown}: found a file, expected a folder or nothing")
        found = sorted(entry.name for entry in target.iterdir())
        if found and mark not in found:
            raise InputError(
                f"{shown}: the folder holds {quote(found[0])} and is no such site, expected one, or nothing"
            )
        known = {*_listed(target / mark), mark} if found else set()
        if others := [name for name in found if name not in known]:
            raise InputError(f"{shown}: the folder holds {quote(others[0])}, which is no part of the site")


def _listed(mark: Path) -> list[str]:
    try:
        return [str(name) for name in json.loads(mark.read_text(encoding="utf-8"))["files"]]
    except (ValueError, KeyError, TypeError):
        return []
