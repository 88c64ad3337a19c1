"""Where the command line writes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..common.fingerprint import constants_version
from ..common.system_errors import cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console


PIPE, NARROWEST = 120, 40
"""Columns of text in a pipe, and those that it takes at least."""
SCHEMAS = 1
"""The version of the schemas of JSON answers: it rises when a key goes or changes its meaning."""
_VERB: ContextVar[str] = ContextVar("verb", default="")
_WORDS: ContextVar[tuple[str, ...]] = ContextVar("words", default=())
_ASKED: ContextVar[int | None] = ContextVar("asked", default=None)
CONTROL = re.compile("(\x1b\\[[0-9;]*m)|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Styles, and single characters that a terminal does not print."""
BLANKS = re.compile(r" +$", re.MULTILINE)
"""Blanks that end a line."""


def write_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output, with the schema that it has and the version of the constants behind it.

    Raises:
        InputError: NaN or infinity in it, which JSON does not have.
    """
    data = {**data, "schema": f"symperf/{_VERB.get()}/{SCHEMAS}", "constants_version": constants_version()}
    try:
        text = json.dumps(data, indent=2, allow_nan=False)
    except ValueError:
        raise InputError("--json: an answer is beyond the range of a number at these values") from None
    write(text + "\n")


def begin(verb: str, width: int | None, words: Sequence[str] = ()) -> None:
    """Say whose answers are written from here on.

    Args:
        verb: of the command line.
        width: columns that text may take; None: what the terminal has.
        words: of the command line.
    """
    _VERB.set(verb)
    _ASKED.set(width)
    _WORDS.set(tuple(words))


def given_words() -> tuple[str, ...]:
    """The words of the command line whose answers are written."""
    return _WORDS.get()


def columns(*, file: bool = False) -> int:
    """Columns that text may take: as asked for, by COLUMNS, of the terminal, or 120 in a pipe or a file.

    Args:
        file: whether it is for a file, of which the terminal says nothing.
    """
    if (asked := _ASKED.get()) is not None:
        return asked
    if file or not (is_terminal() or os.environ.get("COLUMNS", "").isdigit()):
        return PIPE
    return max(shutil.get_terminal_size((PIPE, 24)).columns, NARROWEST)


def is_terminal() -> bool:
    """Whether a person reads standard output as it comes."""
    return sys.stdout is not None and sys.stdout.isatty()


def can_print(characters: str) -> bool:
    """Whether the encoding of standard output has these characters."""
    try:
        characters.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


@contextlib.contextmanager
def console() -> Iterator[Console]:
    """A console of `columns()`; its text is written when all of it is there.

    Names from files are printed as they are: no markup and no emoji codes in them are read, and what would steer the
    terminal or turn the direction of writing is an escape.
    """
    from rich.console import Console as _Console

    terminal = is_terminal()
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
        raise InputError(f"standard output: cannot be written: {cause(error)}") from None


def discard_output() -> None:
    """Let go of what standard output still holds, so that Python does not try to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell_cache_fault() -> None:
    """A line on standard error where the cache folder was wanted and is refused: all else works, but slowly."""
    if "symperf.common.artefacts" not in sys.modules:
        return
    from ..common.artefacts import cache_fault

    if fault := cache_fault():
        write_error(f"note: {fault}")


def write_error(text: str) -> None:
    """One line on standard error; characters that would break or hide it are written as escapes."""
    if sys.stderr is not None:
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
        sys.stderr.write(f"symperf: {line}\n")  # one write, which other processes' lines do not break
