"""The one error that a user's input can cause, and the words it is told in."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class InputError(ValueError):
    """Bad input from a user or a file: one line that says where, what was found and what was expected.

    The command line prints it as it is and leaves with exit status 2.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error line with the valid names nearest to `name`, those that go on from it first; or nothing.

    >>> nearest("micro_bach", ["micro_batch", "sequence"])
    '; did you mean micro_batch?'
    >>> nearest("h200", ["gh200", "h20", "h200-sxm"])
    '; did you mean h200-sxm or gh200 or h20?'
    >>> nearest("zzz", ["micro_batch"])
    ''
    """
    name, names = str(name), list(dict.fromkeys(known))
    longer = difflib.get_close_matches(name, [each for each in names if each.startswith(f"{name}-")], cutoff=0.0)
    close = difflib.get_close_matches(name, [each for each in names if each not in longer])
    return f"; did you mean {' or '.join([*longer, *close][:3])}?" if longer or close else ""


def quote(value: object) -> str:
    """A value as an error line shows it: its `repr`, cut to 60 characters on one line."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."
