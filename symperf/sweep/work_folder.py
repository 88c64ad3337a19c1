"""The folder of an unfinished job beside its result: held by one process at a time, and gone at once or not at all."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..common.errors import InputError

if TYPE_CHECKING:
    from types import TracebackType

LOCK = "lock"
_TRIES = 100
"""How often another process may remove the folder between its making and its locking."""


class WorkFolder:
    """A folder that this process holds until it is closed; it is made if it is not there.

    Args:
        path: of the folder.

    Raises:
        InputError: another process holds it.
        OSError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _hold(path)
        remove_remains(path)

    def clear(self) -> None:
        """Remove all that is in it."""
        for each in self.path.iterdir():
            if each.name != LOCK:
                remove(each)

    def discard(self) -> None:
        """Remove it: it has another name first, so that no one meets half of it."""
        aside = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", suffix=".gone", dir=self.path.parent))
        self.path.rename(aside)  # an empty folder is replaced
        shutil.rmtree(aside, ignore_errors=True)

    def close(self) -> None:
        """Let go of it."""
        self._lock.close()

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def remove_remains(path: Path) -> None:
    """Remove what is left of a folder whose process was killed while it discarded it."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.gone"):
        shutil.rmtree(left, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _hold(path: Path) -> IO[str]:
    """The lock of a folder, which is the one that lies in it: another may have removed the folder meanwhile."""
    for _ in range(_TRIES):
        path.mkdir(parents=True, exist_ok=True)
        try:
            file = (path / LOCK).open("w")
        except FileNotFoundError:
            continue
        _lock(file, path)
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), (path / LOCK).stat()):
                return file
        file.close()
    raise InputError(f"{path}: other processes make and remove it all the time")


def _lock(file: IO[str], folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(f"{folder}: another process is working on it") from None
