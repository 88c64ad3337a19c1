"""The one error that a user's input can cause, and the words it is told in."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_NAME, MOST_NAMES = 200, 10_000
"""Characters of a name, and names, that a nearest one is looked for among."""


class InputError(ValueError):
    """Bad input from a user or a file: one line that says where, what was found and what was expected.

    The command line prints it as it is and leaves with exit status 2.
    """


class NoAnswerError(Exception):
    """A question without an answer, although no input is bad: one line; the command line leaves with exit status 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error line with the valid names nearest to `name`, those that go on from it first; or nothing.

    >>> nearest("micro_bach", ["micro_batch", "sequence"])
    '; did you mean micro_batch?'
    >>> nearest("h200", ["gh200", "h20", "h200-sxm"])
    '; did you mean h200-sxm or gh200 or h20?'
    >>> nearest("zzz", ["micro_batch"])
    ''
    """
    name, names = str(name), [each for each in dict.fromkeys(known) if len(each) <= LONGEST_NAME][:MOST_NAMES]
    if len(name) > LONGEST_NAME:  # no one means one: comparing takes time that grows with both lengths
        return ""
    longer = difflib.get_close_matches(name, [each for each in names if each.startswith(f"{name}-")], cutoff=0.0)
    close = difflib.get_close_matches(name, [each for each in names if each not in longer])
    return f"; did you mean {' or '.join([*longer, *close][:3])}?" if longer or close else ""


def quote(value: object) -> str:
    """A value as an error line shows it: its `repr`, cut to 60 characters on one line.

    >>> quote("x" * 100), quote([10**5000])
    ("'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...", '<list>')
    """
    if isinstance(value, str | bytes):
        value = value[:100]  # of what is longer no more is shown
    try:
        text = repr(value).replace("\n", " ")
    except (ValueError, RecursionError, MemoryError):  # whole numbers of thousands of digits, lists in lists in lists
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def quote_path(path: str | os.PathLike[str]) -> str:
    """A path as an error line shows it: printable, and the middle of a very long one left out."""
    text = os.fspath(path)
    text = text if isinstance(text, str) and text.isprintable() else repr(text)
    return text if len(text) <= 500 else f"{text[:240]}...{text[-240:]}"
