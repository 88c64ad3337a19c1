"""Where the command line writes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


def write_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output; NaN and infinity are refused."""
    write(json.dumps(data, indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def console() -> Iterator[Console]:
    """A console that fits the terminal, 120 columns where there is none; its text is written when all of it is there.

    Names from files are printed as they are: no markup and no emoji codes in them are read.
    """
    from rich.console import Console as _Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    made = _Console(
        file=text,
        force_terminal=terminal or None,
        width=None if terminal else 120,
        highlight=False,
        markup=False,
        emoji=False,
    )
    yield made
    write(text.getvalue())


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


def discard_output() -> None:
    """Let go of what standard output still holds, so that Python does not try to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_error(text: str) -> None:
    """One line on standard error; characters that would break or hide it are written as escapes."""
    if sys.stderr is not None:
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        print(f"symperf: {line}", file=sys.stderr)
