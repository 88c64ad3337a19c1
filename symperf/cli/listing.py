"""How `symperf list` prints: groups of entries, a line each with notes below, at any width and with nothing cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..common.table import Table, show_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


@dataclass(frozen=True)
class Entry:
    """A thing that is listed.

    Attributes:
        cells: its name, and what stands beside it under the headings; empty where there is nothing.
        notes: paragraphs below, whatever their length.
    """

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Entries under one line of headings.

    Attributes:
        headings: one for each cell; the first says what the group is.
        entries: in the order in which they are printed.
        numbers: whether all cells but the first are numbers, which end below each other.
    """

    headings: tuple[str, ...]
    entries: Sequence[Entry]
    numbers: bool = False

    def table(self) -> Table:
        """The table of the group."""
        made = Table(self.headings, left=(0,) if self.numbers else range(len(self.headings)))
        for entry in self.entries:
            made.add_row(*entry.cells, notes=entry.notes)
        return made


def show(out: Console, groups: Sequence[Group]) -> None:
    """Print groups, an empty line between two; columns have the same width in all of them."""
    show_tables(out, [group.table() for group in groups])
