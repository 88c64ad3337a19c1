"""Names of flags and arguments that are going: each still works, and is told once what to write instead."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Former(NamedTuple):
    """What a name has become.

    Attributes:
        name: of today.
        since: the version that renamed it.
    """

    name: str
    since: str


FORMER: dict[str, Former] = {}
"""By former name, as an argument of Python is spelt; one goes with the minor version after `since`."""
_told: set[str] = set()


def current_name(name: str, tell: Callable[[str], None] | None = None) -> str:
    """The name of today of a flag or an argument; a former one is told once in a process.

    Args:
        name: as it was written, such as `micro_batch` or `--micro-batch`.
        tell: prints the line; by default it is a warning.
    """
    former = name.removeprefix("--").replace("-", "_")
    found = FORMER.get(former)
    if found is None:
        return name
    now = f"--{found.name.replace('_', '-')}" if name.startswith("--") else found.name
    if former not in _told:
        _told.add(former)
        line = f"{name} is called {now} since {found.since}, and will go"
        if tell is None:
            warnings.warn(line, FutureWarning, stacklevel=4)
        else:
            tell(line)
    return now
