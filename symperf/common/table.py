"""Tables of text at any width: columns where they fit, else a block for each row; no cell is ever cut."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions
    from rich.text import Text

GAP, INDENT = "  ", "    "
FIGURE = re.compile(r"(?<![\w.])([\d.,]*\d) ([%A-Za-z$/]+)")
"""A number and its unit, which stay on one line."""
NAME = re.compile(r" *\S.*? {2,}")
"""What a line begins with that names what it says."""
MARKS = "/_-,;"
"""Characters of a long word after which it may go on in the next line."""
LEAST = 30
"""Columns that a column whose cells go on in the next line keeps beside others, or half of the line."""
SHORT = 6
"""A name that is narrower has no line of its own."""


def columns(text: str) -> int:
    """Columns of a terminal that a text takes: accents none, wide characters two.

    >>> columns("d_h²"), columns("模型")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def fold(text: str, width: int, indent: str = "", hang: str | None = None) -> list[str]:
    """A paragraph as lines of at most `width` columns; a word that is longer than a line goes on in the next.

    A number and its unit stay together.

    Args:
        text: whose blanks are single.
        width: of a line, with what it begins with.
        indent: begins the first line.
        hang: begins the others, as the first where it is not given.

    >>> fold("the width of one head", 10, hang="  ")
    ['the width', '  of one', '  head']
    """
    words = FIGURE.sub("\\1\0\\2", " ".join(text.split())).split(" ")
    return pack([word.replace("\0", " ") for word in words], width, indent, hang, " ")


def hung(line: str, width: int) -> list[str]:
    """A line that may be too long: what goes on stands below what is said, behind the blanks after its name.

    >>> hung("cost        0.5 USD, 3 USD a million tokens", 30)
    ['cost        0.5 USD, 3 USD a', '            million tokens']
    """
    if columns(line) <= width:
        return [line]
    name = NAME.match(line)
    begin = name[0] if name and columns(name[0]) <= width / 2 else line[: len(line) - len(line.lstrip())]
    hang = columns(begin) if begin.strip() else min(len(begin) + len(INDENT), width // 2)
    return fold(line[len(begin) :], width, begin, " " * hang)


def pack(pieces: Iterable[str], width: int, indent: str, hang: str | None = None, separator: str = ", ") -> list[str]:
    """Pieces on as few lines as hold them, in order; one that is longer than a line is folded, or cut into pieces.

    Args:
        pieces: none of which is torn apart where it fits a line.
        width: of a line, with what it begins with.
        indent: begins the first line.
        hang: begins the others, as the first where it is not given.
        separator: after all pieces but the last; its blanks do not end a line.
    """
    hang = indent if hang is None else hang
    every = list(pieces)
    found: list[str] = []
    line = ""
    for place, piece in enumerate(every):
        ended = piece + (separator.rstrip() if place + 1 < len(every) else "")
        start = hang if found else indent
        if line and columns(start + line) + 1 + columns(ended) <= width:
            line += f" {ended}"
            continue
        if line:
            found.append(start + line)
        start = hang if found else indent
        if columns(start + ended) > width and " " in ended:
            *full, last = pack(ended.split(), width, start, hang, " ")
            line = last[len(hang if full else start) :]
            found += full
            continue
        while columns(start + ended) > width:
            room = _room(ended, max(width - columns(start), 1))
            found.append(start + ended[:room])
            ended, start = ended[room:], hang
        line = ended
    return [*found, (hang if found else indent) + line] if line else found


def _room(text: str, width: int) -> int:
    """How many characters of a text fit some columns, at least one; of a path or a name those up to a mark in it."""
    taken = last = 0
    for place, each in enumerate(text):
        taken += columns(each)
        if taken > width:
            return last if last > place / 2 else max(place, 1)
        last = place + 1 if each in MARKS else last
    return len(text)


def show_lines(out: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines, those that are too long as `hung`."""
    from rich.text import Text as _Text

    for line in lines:
        for part in hung(line, out.width):
            out.print(_Text(part, style), soft_wrap=True)


def common_sizes(tables: Sequence[Table]) -> list[list[int]]:
    """The `sizes` of tables of the same columns that are all as wide."""
    return [list(map(max, zip(*each, strict=True))) for each in zip(*(table.sizes() for table in tables), strict=True)]


def show_tables(out: Console, tables: Sequence[Table]) -> None:
    """Print tables of the same columns below each other, an empty line between two; all are as wide."""
    sizes = common_sizes(tables)
    for place, table in enumerate(tables):
        out.print(*[""] * bool(place), *table.styled(out.width, sizes), sep="\n")


@dataclass
class Table:
    """Rows of cells.

    Attributes:
        heads: of the columns; all empty: there is no line of heads.
        left: the heads, or the numbers, of the columns that begin below each other; others, as of figures, end so.
        wraps: likewise, of those whose cells may go on in the next line.
        rows: the cells of each.
    """

    heads: Sequence[str]
    left: Iterable[str | int] = ()
    wraps: Iterable[str | int] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    _bold: set[int] = field(default_factory=set)
    _notes: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def add_row(self, *cells: str, bold: bool = False, notes: tuple[str, ...] = ()) -> None:
        """Add a row, whose last cells may be missing.

        Args:
            cells: text; one may have several lines.
            bold: how it is printed.
            notes: paragraphs below it, as wide as the table may be.
        """
        if bold:
            self._bold.add(len(self.rows))
        self._notes[len(self.rows)] = notes
        self.rows.append((*cells, *[""] * (len(self.heads) - len(cells))))

    def sizes(self) -> list[list[int]]:
        """The widths of the columns where nothing limits them, and where each word of a head has a line of its own."""
        return [
            [max(map(columns, "\n".join(column).split("\n"))) for column in zip(heads, *self.rows, strict=True)]
            for heads in (self.heads, [head.replace(" ", "\n") for head in self.heads])
        ]

    def lines(self, width: int, sizes: Sequence[Sequence[int]] | None = None) -> list[tuple[str, bool]]:
        """The lines, and whether each is bold.

        Args:
            width: of each at most.
            sizes: widths of the columns, the best first; those of this table if not given.
        """
        sizes = self.sizes() if sizes is None else sizes
        long = [place for place in range(len(self.heads)) if self._has(self.wraps, place)]
        beside, gap = self._arranged(sizes, long, width)

        def shown(cells: Sequence[str]) -> list[str]:
            return self._aligned(cells, beside, gap) if beside else self._block(cells, width)

        found = []
        if any(self.heads) and self.rows and (beside or self._has(self.left, 0)):
            heads = shown(self.heads) if beside else fold(self.heads[0], width)
            found = [(line, True) for line in heads]
        for number, row in enumerate(self.rows):
            found += [(line, number in self._bold) for line in shown(row)]
            below = [self._said(row, place) for place in long if place not in beside]
            for note in (*below, *self._notes[number]):
                found += [(line, False) for line in fold(note, width, INDENT)] if note else []
        return found

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The lines for rich."""
        yield from self.styled(options.max_width)

    def styled(self, width: int, sizes: Sequence[Sequence[int]] | None = None) -> list[Text]:
        """The same lines for rich."""
        from rich.text import Text as _Text

        lines = self.lines(width, sizes)
        return [_Text(line, "bold" if bold else "", no_wrap=True, overflow="ignore") for line, bold in lines]

    def _has(self, named: Iterable[str | int], place: int) -> bool:
        return place in (every := tuple(named)) or self.heads[place] in every

    def _said(self, cells: Sequence[str], place: int) -> str:
        """A cell behind its head, on one line; nothing if it is empty."""
        return f"{self.heads[place]} {cells[place]}".strip().replace("\n", "; ") if cells[place] else ""

    def _arranged(self, sizes: Sequence[Sequence[int]], long: Sequence[int], width: int) -> tuple[dict[int, int], str]:
        """The widths of the columns that stand beside each other (all, all but the long ones, or none), and the gap."""
        choices = [(widths, gap) for gap in (GAP, " ") for widths in sizes]
        for widths, gap in choices:
            if all_beside := self._fitted(widths, long, width - len(gap) * (len(widths) - 1)):
                return dict(enumerate(all_beside)), gap
        for widths, gap in choices if long else ():
            short = {place: size for place, size in enumerate(widths) if place not in long}
            if sum(short.values()) + len(gap) * (len(short) - 1) <= width:
                return short, gap
        return {}, GAP

    def _fitted(self, widths: Sequence[int], long: Sequence[int], room: int) -> list[int] | None:
        """The widths of all columns, the widest of the long ones narrowed first; None where too little is left."""
        found = list(widths)
        while sum(found) > room:
            widest = max(long, key=lambda place: found[place], default=None)
            if widest is None or found[widest] <= min(LEAST, room / 2):
                return None
            found[widest] -= 1
        return found

    def _aligned(self, cells: Sequence[str], widths: dict[int, int], gap: str) -> list[str]:
        """Some of a row's cells as lines of columns."""
        parts = {
            place: [
                each
                for line in cells[place].split("\n")
                for each in ([line] if columns(line) <= size else fold(line, size))
            ]
            for place, size in widths.items()
        }
        found = []
        for number in range(max(map(len, parts.values()))):
            texts = []
            for place, lines in parts.items():
                text = lines[number] if number < len(lines) else ""
                blanks = " " * (widths[place] - columns(text))
                texts.append(text + blanks if self._has(self.left, place) else blanks + text)
            found.append(gap.join(texts).rstrip() if len(texts) > 1 else texts[0].strip())
        return found

    def _block(self, cells: Sequence[str], width: int) -> list[str]:
        """A row as a block: its name, and below it or beside a short one the other cells behind their heads."""
        named = self._has(self.left, 0)
        said = [self._said(cells, place) for place in range(named, len(cells)) if not self._has(self.wraps, place)]
        said = [each for each in said if each]
        if not named:
            return pack(said, width, "", INDENT)
        if not said:
            return fold(cells[0], width, hang=INDENT)
        start = f"{cells[0]:{SHORT - len(GAP)}}{GAP}"
        if columns(cells[0]) < SHORT or columns(start + ", ".join(said)) <= width:
            return pack(said, width, start, INDENT)
        return fold(cells[0], width, hang=INDENT) + pack(said, width, INDENT)
