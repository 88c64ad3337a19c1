"""What symperf writes for users: where it may be, and how it comes into its place, whole or not at all.

A file is written beside its place, under a name that no other process has, and renamed when all of it is on disk.
Devices and pipes are written to as they are, by what writes a stream; what needs a file of its own refuses them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .errors import InputError, quote, quote_path
from .system_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_NAME = 255
"""Bytes of a name in a folder, of the usual file systems."""


def check_file(path: str | os.PathLike[str], told: str) -> None:
    """Refuse a file that `write_file` could not write, before the work whose result it is to hold.

    Args:
        path: of the file.
        told: as in `write_file`.

    Raises:
        InputError: there is no such folder, it is a folder, or it may not be written.
    """
    with one_line(told.format(quote(str(path)))):
        target = Path(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists():
            target = target.resolve().parent
            if not target.is_dir():
                found = errno.ENOTDIR if target.exists() else errno.ENOENT
                raise OSError(found, os.strerror(found))
            check_name(path)
        _check_access(target)


def check_name(path: str | os.PathLike[str], added: str = "") -> None:
    """Refuse a name that is too long.

    Args:
        path: whose last part is the name.
        added: what names beside it have more.

    Raises:
        OSError: the file system has no such names.
    """
    if len(os.fsencode(Path(path).name)) + len(added) > LONGEST_NAME:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


def check_result(path: Path, added: str) -> None:
    """Refuse a place where no file or folder of results can be made and later renamed.

    Args:
        path: of the result.
        added: what the names of folders beside it have more.

    Raises:
        InputError: its folder is not there, or it is a device or a pipe.
        OSError: its folder may not be written, or its name is too long.
        ValueError: its name holds a null character, or is no UTF-8.
    """
    parent = path.parent
    if b"\0" in str(path).encode("utf-8"):  # which fails for names that are no UTF-8: some libraries know no others
        raise ValueError("its name holds a null character")
    if not parent.is_dir():
        raise InputError(f"{quote_path(parent)} is no folder")
    check_name(path, added)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{quote_path(path)}: is a device or a pipe, expected a file")
    _check_access(parent)


def _check_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write_file(path: str | os.PathLike[str], content: str | bytes | Iterator[str], told: str) -> None:
    """Write a whole file, or leave what is there as it is.

    Args:
        path: of the file; a device or a pipe is written to as it is.
        content: bytes, or text that becomes UTF-8, or that in parts, each written as it comes.
        told: what the error line says before the reason, with {} for the path.

    Raises:
        InputError: it cannot be written.
    """
    whole = (content,) if isinstance(content, str | bytes) else content
    parts = (each if isinstance(each, bytes) else each.encode("utf-8", "backslashreplace") for each in whole)
    with one_line(told.format(quote(str(path)))):
        target = Path(path)
        if target.exists() and (stream := _standard(target)) is not None:
            stream.writelines(parts)
            stream.flush()
            return
        if target.exists() and not target.is_file():
            with _open_stream(target) as file:
                file.writelines(parts)
            return
        target = target.resolve()
        if target.exists():
            _check_access(target)
        put_file(target, parts)


def _open_stream(target: Path) -> BinaryIO:
    """A device or a pipe opened for writing; a named pipe that no one reads is refused, and not waited for."""
    try:
        handle = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that no one reads, begin to read it first") from None
        raise
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


def put_file(target: Path, parts: Iterator[bytes]) -> None:
    """Write the parts of a file beside its place, and rename it there when they are all on disk.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".symperf-", suffix=".part")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        beside.replace(target)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _umask() -> int:
    """What new files are not given; asked for by setting it, since there is no other way everywhere."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # where the kernel tells it, no thread sees another one
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    found = os.umask(0o077)
    os.umask(found)
    return found


def _standard(target: Path) -> BinaryIO | None:
    """The stream of standard output or error that a path is, /dev/stdout for instance: nothing takes its place."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, closed, or held in memory
            if os.path.samestat(target.stat(), os.fstat(stream.fileno())):
                stream.flush()
                return stream.buffer
    return None
