"""A cache folder of compiled artefacts: JSON files and generated modules, each named by the hash of what it is.

Files are private to the user, written whole or not at all, and checked before use: one that is damaged counts as
absent and is written again. Many processes may use one folder at once. What was used least recently goes when the
folder outgrows its limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

LIMIT_BYTES = 256_000_000
"""How large a folder may grow by default, but for what a process writes before it looks again."""
KEY = re.compile(r"[0-9a-f]{40}")
_ABANDONED = 3600.0
"""Seconds after which a file that was never finished is litter."""


def digest(*parts: str) -> str:
    """A name for what is made from `parts`.

    >>> digest("a", "b") == digest("ab")
    False
    """
    total = hashlib.sha256()
    for part in parts:
        data = part.encode()
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:40]


_PARTS = 32
"""Of a limit: after one of them is written, what is kept is counted again."""
_ROOM: dict[tuple[Path, int], int] = {}
"""Bytes that this process may still write to a folder of a limit before what is kept there is counted again."""


@dataclass(frozen=True)
class StoreEntry:
    """One thing kept.

    Attributes:
        key: its name.
        kind: "artefact" (JSON) or "module" (generated source with its object code).
        bytes: on disk.
        used: when last, in seconds since the epoch.
    """

    key: str
    kind: str
    bytes: int
    used: float


class Store:
    """Artefacts by key and generated modules by content, in one folder.

    Args:
        folder: made when first written to; one that is not the user's own, or that others may write to, is neither
            read nor written.
        limit_bytes: above this the least recently used entries are removed; a process that writes may be
            1/32 of it late.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes

    def load(self, key: str) -> dict[str, Any] | None:
        """The artefact, or None where it is absent, damaged, or kept where others may write."""
        path = self.folder / f"{key}.json"
        try:
            if not (is_private(self.folder) and is_private(path)):
                return None
            checksum, _, body = path.read_bytes().partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != checksum:
                return None
            data = json.loads(body)
        except (OSError, ValueError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data if isinstance(data, dict) else None

    def save(self, key: str, data: dict[str, Any]) -> bool:
        """Write the artefact; a folder that cannot be written, or that others may write, is left alone.

        Returns:
            Whether it was written.
        """
        body = json.dumps(data, separators=(",", ":")).encode()
        try:
            if not self.prepare():
                return False
            write_whole(self.folder / f"{key}.json", hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError:
            return False
        self._evict_after(len(body), keep=key)
        return True

    def _evict_after(self, written: int, keep: str) -> None:
        """Evict when this process has written a good part of the limit since it last looked: to look lists all."""
        here = (self.folder, self.limit_bytes)
        _ROOM[here] = _ROOM.get(here, 0) - written
        if _ROOM[here] < 0:
            self.evict(keep)
            _ROOM[here] = self.limit_bytes // _PARTS

    def module(self, text: str) -> ModuleType:
        """The imported module of a generated text, kept under the hash of the text.

        Numba's `cache=True` keeps object code beside it. Where the folder cannot be used, a private temporary one of
        this process is.

        Args:
            text: the source of the module; made by a printer, never by a user.
        """
        from .modules import load_module

        return load_module(self, text)

    def prepare(self) -> bool:
        """Make the folder if need be; whether it is the user's own and no one else may write to it.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return is_private(self.folder)

    def entries(self) -> list[StoreEntry]:
        """What is kept, the most recently used first; other files of the folder are not listed."""
        found = []
        try:
            paths = sorted(self.folder.iterdir()) if is_private(self.folder) else []
        except OSError:
            paths = []
        for path in paths:
            with contextlib.suppress(OSError):
                if path.suffix == ".json" and KEY.fullmatch(path.stem):
                    status = path.stat()
                    found.append(StoreEntry(path.stem, "artefact", status.st_size, status.st_mtime))
                elif KEY.fullmatch(path.name) and path.is_dir():
                    found.append(StoreEntry(path.name, "module", _size(path), path.stat().st_mtime))
        return sorted(found, key=lambda entry: (-entry.used, entry.key))

    def clear(self) -> list[StoreEntry]:
        """Remove every entry and return what was removed; other files of the folder are left alone."""
        self._sweep(0.0)
        return [entry for entry in self.entries() if self.remove(entry)]

    def evict(self, keep: str = "") -> list[StoreEntry]:
        """Remove the least recently used entries until the rest is within the limit; never the one to `keep`."""
        entries = self.entries()
        total = sum(entry.bytes for entry in entries)
        removed = []
        if total > self.limit_bytes:
            self._sweep(_ABANDONED)
        for entry in reversed(entries):
            if total <= self.limit_bytes:
                break
            if entry.key != keep and self.remove(entry):
                removed.append(entry)
                total -= entry.bytes
        return removed

    def remove(self, entry: StoreEntry) -> bool:
        """Remove one entry; whether it is gone."""
        path = self.folder / (entry.key if entry.kind == "module" else f"{entry.key}.json")
        try:
            if entry.kind == "module":
                aside = self.folder / f".{entry.key}.{os.getpid()}.gone"
                path.rename(aside)  # at once, so that no process meets half a folder
                shutil.rmtree(aside, ignore_errors=True)
            else:
                path.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _sweep(self, age: float) -> None:
        """Remove what processes that died have left half written or half removed, if it is older than `age`."""
        with contextlib.suppress(OSError):
            for path in self.folder.glob(".*"):
                if path.suffix in (".part", ".gone") and time.time() - path.stat().st_mtime >= age:
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, mtime: float | None = None) -> None:
    """Write a file so that other processes see all of it or nothing.

    Args:
        path: of the file; what is there is replaced.
        data: its content.
        mtime: its time of modification, seconds since the epoch; by default now.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if mtime is not None:
            os.utime(temporary, (mtime, mtime))
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def is_private(path: Path) -> bool:
    """Whether a folder or file is the user's own and no one else may write to it (where the system knows owners).

    Raises:
        OSError: there is none.
    """
    status = path.stat()
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
