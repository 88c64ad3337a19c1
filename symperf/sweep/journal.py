"""What of a long job is done: a line for each chunk, with a checksum, written after the chunk itself is on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .work_folder import WorkFolder

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

NAME = "journal"


class Journal:
    """A folder's `journal`: a header that says what the job is, then the checksum of each finished chunk.

    Each line carries the checksum of itself, so that one cut short by a crash counts as absent.

    Args:
        folder: made if it is not there; or one that this process holds already, and closes itself.
        header: what the job is; a journal of another job is refused.

    Raises:
        InputError: another job's journal, or one that another process is writing.
    """

    def __init__(self, folder: Path | WorkFolder, header: dict[str, Any]) -> None:
        self._held = None if isinstance(folder, WorkFolder) else WorkFolder(folder)
        folder = folder.path if isinstance(folder, WorkFolder) else folder
        self.path = folder / NAME
        self.done: dict[int, str] = {}
        lines = self._lines()
        if lines and json.loads(lines[0]) != header:
            was = json.loads(lines[0])
            changed = [key for key in {**header, **was} if was.get(key) != header.get(key)]
            self.close()
            raise InputError(
                f"{folder}: was begun with another {' and '.join(changed)}; --overwrite starts again from nothing"
            )
        for line in lines[1:]:
            index, _, mark = line.partition(" ")
            self.done[int(index)] = mark
        self._file = self.path.open("ab")
        if not lines:
            self._file.truncate(0)
            self._write(json.dumps(header, sort_keys=True))
        elif self._cut:
            self._file.truncate(self._whole)

    def add(self, index: int, mark: str) -> None:
        """Note a chunk that is on disk."""
        self._write(f"{index} {mark}")
        self.done[index] = mark

    def close(self) -> None:
        """Let go of the folder."""
        if hasattr(self, "_file"):
            self._file.close()
        if self._held is not None:
            self._held.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, body: str) -> None:
        self._file.write(f"{_mark(body)} {body}\n".encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lines(self) -> list[str]:
        """The bodies of the whole lines; what follows the first damaged one is not trusted."""
        found: list[str] = []
        self._whole, self._cut = 0, False
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return found
        for line in data.splitlines(keepends=True):
            mark, _, body = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
            if not line.endswith(b"\n") or _mark(body) != mark:
                self._cut = True
                break
            found.append(body)
            self._whole += len(line)
        return found


def digest(data: bytes) -> str:
    """The checksum of a chunk."""
    return hashlib.sha256(data).hexdigest()


def sync(path: Path) -> None:
    """Make sure that a file, or the names in a folder, are on disk."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mark(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]
