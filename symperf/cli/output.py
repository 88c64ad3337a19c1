"""Where the command line writes."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import shutil
import stat
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


PIPE, NARROWEST = 120, 40
"""Columns of text in a pipe, and those that it takes at least."""
_ASKED: ContextVar[int | None] = ContextVar("asked", default=None)
CONTROL = re.compile("(\x1b\\[[0-9;]*m)|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Styles, and single characters that a terminal does not print."""
BLANKS = re.compile(r" +$", re.MULTILINE)
"""Blanks that end a line."""


def write_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output.

    Raises:
        InputError: NaN or infinity in it, which JSON does not have.
    """
    try:
        text = json.dumps(data, indent=2, allow_nan=False)
    except ValueError:
        raise InputError("--json: an answer is beyond the range of a number at these values") from None
    write(text + "\n")


def ask_width(width: int | None) -> None:
    """Say how many columns text may take from here on; None: what the terminal has."""
    _ASKED.set(width)


def columns(*, file: bool = False) -> int:
    """Columns that text may take: as asked for, by COLUMNS, of the terminal, or 120 in a pipe or a file.

    Args:
        file: whether it is for a file, of which the terminal says nothing.
    """
    if (asked := _ASKED.get()) is not None:
        return asked
    terminal = sys.stdout is not None and sys.stdout.isatty()
    if file or not (terminal or os.environ.get("COLUMNS", "").isdigit()):
        return PIPE
    return max(shutil.get_terminal_size((PIPE, 24)).columns, NARROWEST)


@contextlib.contextmanager
def console() -> Iterator[Console]:
    """A console of `columns()`; its text is written when all of it is there.

    Names from files are printed as they are: no markup and no emoji codes in them are read, and what would steer the
    terminal or turn the direction of writing is an escape.
    """
    from rich.console import Console as _Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    made = _Console(
        file=text,
        force_terminal=terminal or None,
        width=columns(),
        highlight=False,
        markup=False,
        emoji=False,
    )
    yield made
    styled = made.color_system is not None
    shown = CONTROL.sub(lambda found: found[0] if styled and found[1] else _escape(found[0]), text.getvalue())
    write(BLANKS.sub("", shown))


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode()


def write(text: str) -> None:
    """Write to standard output; what its encoding lacks is written as an escape.

    Raises:
        BrokenPipeError: the reader has left.
        InputError: it cannot be written to, a full disk for instance.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise InputError(f"standard output: cannot be written: {error.strerror}") from None


def check_file(path: str | os.PathLike[str], told: str) -> None:
    """Refuse a file that `write_file` could not write, before the work whose result it is to hold.

    Args:
        path: of the file.
        told: as in `write_file`.

    Raises:
        InputError: there is no such folder, it is a folder, or it may not be written.
    """
    try:
        target = Path(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists():
            target = target.resolve().parent
            if not target.is_dir():
                found = errno.ENOTDIR if target.exists() else errno.ENOENT
                raise OSError(found, os.strerror(found))
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, told, error) from None


def _unwritable(path: str | os.PathLike[str], told: str, error: Exception) -> InputError:
    """The line of a file that cannot be written; null characters and links in a circle are no `OSError`."""
    reason = error.strerror if isinstance(error, OSError) else None
    return InputError(f"{told.format(quote(str(path)))}: {reason or error}")


def write_file(path: str | os.PathLike[str], content: str | bytes | Iterator[str], told: str) -> None:
    """Write a whole file, or leave what is there as it is: it is written beside and put in its place when it is whole.

    Args:
        path: of the file; a device or a pipe is written to as it is.
        content: bytes, or text that becomes UTF-8, or that in parts, each written as it comes.
        told: what the error line says before the reason, with {} for the path.

    Raises:
        InputError: it cannot be written.
    """
    whole = (content,) if isinstance(content, str | bytes) else content
    parts = (each if isinstance(each, bytes) else each.encode("utf-8", "backslashreplace") for each in whole)
    try:
        target = Path(path)
        if target.exists() and (stream := _standard(target)) is not None:
            stream.writelines(parts)
            stream.flush()
            return
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(parts)
            return
        target = target.resolve()
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _put_file(target, parts)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, told, error) from None


def _standard(target: Path) -> BinaryIO | None:
    """The stream of standard output or error that a path is, /dev/stdout for instance: nothing takes its place."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # none, closed, or held in memory
            if os.path.samestat(target.stat(), os.fstat(stream.fileno())):
                stream.flush()
                return stream.buffer
    return None


def _put_file(target: Path, parts: Iterator[bytes]) -> None:
    beside = target.with_name(f".symperf-{os.getpid()}.part")
    try:
        with beside.open("xb") as file:
            file.writelines(parts)
        if target.exists():
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def discard_output() -> None:
    """Let go of what standard output still holds, so that Python does not try to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_error(text: str) -> None:
    """One line on standard error; characters that would break or hide it are written as escapes."""
    if sys.stderr is not None:
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        print(f"symperf: {line}", file=sys.stderr)
