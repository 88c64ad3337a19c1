"""How `symperf list` prints: groups of entries, a line each with notes below, at any width and with nothing cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

GAP, INDENT = "  ", "    "


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


def show(out: Console, groups: Sequence[Group]) -> None:
    """Print groups, an empty line between two; columns have the same width in all of them.

    A group whose lines are wider than the terminal has each entry's name on a line of its own, and below it what stands
    beside it elsewhere, with the headings as words.
    """
    lines = [line for group in groups for line in (group.headings, *(entry.cells for entry in group.entries))]
    widths = [max(_cells(cell) for cell in column) for column in zip(*lines, strict=True)]
    narrow = sum(widths) + len(GAP) * (len(widths) - 1) > out.width
    for place, group in enumerate(groups):
        if place:
            out.print()
        if narrow:
            _wrap(out, group.headings[0], "", style="bold")
        else:
            _print(out, _align(group.headings, widths, group.numbers), style="bold")
        for entry in group.entries:
            if narrow:
                _wrap(out, entry.cells[0], "")
                beside = zip(group.headings[1:], entry.cells[1:], strict=True)
                _wrap(out, ", ".join(f"{heading} {cell}" for heading, cell in beside if cell), INDENT)
            else:
                _print(out, _align(entry.cells, widths, group.numbers))
            for note in entry.notes:
                _wrap(out, note, INDENT)


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def _align(cells: Sequence[str], widths: Sequence[int], numbers: bool) -> str:
    parts = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        blanks = " " * (width - _cells(cell))
        parts.append(blanks + cell if numbers and place else cell + blanks)
    return GAP.join(parts).rstrip()


def _wrap(out: Console, text: str, indent: str, **how: Any) -> None:
    """Print a paragraph; a word that is longer than a line goes on in the next."""
    from rich.text import Text

    if text:
        for line in Text(text).wrap(out, max(out.width - len(indent), 1), overflow="fold"):
            _print(out, indent + line.plain.rstrip(), **how)


def _print(out: Console, line: str, **how: Any) -> None:
    out.print(_text(line), no_wrap=True, overflow="ignore", crop=False, **how)


def _text(line: str) -> Text:
    from rich.text import Text

    return Text(line)
