"""What the operating system refuses, told in one line: the path, the cause, and what helps."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

REMEDIES = {
    errno.ENOSPC: "free some, or choose another disk",
    errno.EDQUOT: "free some, or choose another disk",
    errno.EROFS: "choose another disk",
    errno.EACCES: "change its permissions, or choose another",
    errno.EPERM: "change its permissions, or choose another",
    errno.ENAMETOOLONG: "choose a shorter one",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f)",
}
"""What helps, by the number of an error whose cause does not say it."""


def cause(error: Exception) -> str:
    """Why, and what helps; null characters, names that no encoding has and links in a circle are no `OSError`.

    >>> cause(OSError(errno.ENAMETOOLONG, "File name too long"))
    'File name too long, choose a shorter one'
    """
    if isinstance(error, UnicodeError):
        return "its name is no text of this system's encoding, choose another"
    if not isinstance(error, OSError):
        return " ".join(str(error).split())
    told = error.strerror or " ".join(str(error).split())
    remedy = REMEDIES.get(error.errno or 0)
    return f"{told}, {remedy}" if remedy else told


@contextmanager
def one_line(told: str, end: str = "") -> Iterator[None]:
    """Errors of the operating system inside become an `InputError`: what is told, the cause, what helps, and the end.

    Raises:
        InputError: in place of an `OSError`, and of what a path that no file can have raises.
    """
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{told}: {cause(error)}{end}") from None


def one_line_of(error: OSError) -> str:
    """The line of an error that no one expected: the path that it names, and the cause."""
    path = error.filename if error.filename is not None else error.filename2
    return cause(error) if path is None else f"{quote(path)}: {cause(error)}"
