"""What is to be measured: rows without their times, in an order of which every beginning is a fair sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .bench import Bench

GOLDEN = 0.6180339887498949
Item = TypeVar("Item")


@dataclass(frozen=True)
class Job:
    """A row to measure: its columns as far as they are known, and what makes the call that is timed."""

    row: dict[str, Any]
    prepare: Callable[[Bench], Callable[[int], Any]]
    mode: str = "stream"

    @property
    def label(self) -> str:
        """The row in few words."""
        parts = [str(self.row[key]) for key in ("kind", "name", "dtype") if self.row.get(key)]
        sizes = ("m", "n", "k", "batch", "sequence", "context", "heads", "hidden", "elements", "bytes")
        return " ".join([*parts, *(f"{key}={self.row[key]}" for key in sizes if self.row.get(key))])


def scatter(items: Sequence[Item]) -> list[Item]:
    """The items in the order of the golden ratio's multiples: when time runs out, what was left out lies anywhere.

    >>> scatter("abcdefgh")
    ['a', 'f', 'c', 'h', 'e', 'b', 'g', 'd']
    """
    return [item for _, item in sorted(enumerate(items), key=lambda pair: (pair[0] * GOLDEN) % 1.0)]


def turns(call: Callable[[Any], Any], buffers: Sequence[Any]) -> Callable[[int], Any]:
    """A call that takes the buffers in turns."""
    count = len(buffers)
    return lambda at: call(buffers[at % count])
