"""The values of a symbol that a run accepts, found by binding it to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import symperf as sf

if TYPE_CHECKING:
    from collections.abc import Iterable


def accepted(run: Any, symbol: str, values: Iterable[Any]) -> dict[Any, Any]:
    """The run bound to each value that it takes, by value."""
    found = {}
    for value in values:
        try:
            found[value] = run.bind(**{symbol: value})
        except sf.InputError:
            continue
    return found
