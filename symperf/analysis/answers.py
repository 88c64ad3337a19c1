"""What every answer can do: say itself in one sentence, and show itself as text, HTML, LaTeX and as a picture."""

from __future__ import annotations

import html
import io
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import NoAnswerError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

WIDTH = 100


class Unreachable(NoAnswerError):  # noqa: N818
    """A target that no value of the symbol reaches.

    Attributes:
        limit: the value of the quantity nearest to the target; nothing where it is infinite.
        at: where it is attained or approached.
    """

    def __init__(self, message: str, limit: float | None, at: float) -> None:
        super().__init__(message)
        self.limit = limit
        self.at = at


@dataclass(frozen=True)
class AnswerTable:
    """Rows of text under a title; no cell is ever cut.

    Attributes:
        title: what the rows are.
        columns: heads.
        rows: cells, as many as columns.
        left: indices of the columns that are aligned at the left; the first always is.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset({0})

    def text(self, width: int = WIDTH) -> str:
        """The rows in lines of at most `width` columns, wrapped inside their cells."""
        from rich.console import Console

        out = io.StringIO()
        console = Console(file=out, width=width, highlight=False, markup=False, emoji=False, color_system=None)
        console.print(_rich(self))
        rows = [line.rstrip() for line in out.getvalue().rstrip("\n").split("\n")]
        return "\n".join([*textwrap.wrap(self.title, width), *rows])


@dataclass(frozen=True)
class Equation:
    """A closed form that belongs to an answer.

    Attributes:
        symbol: what it gives: a name of the vocabulary, or of a quantity.
        expr: SymPy expression in the symbols of the vocabulary.
        note: what it is, one phrase.
        sign: what stands between them; "+" and "−" go on with the sum of the equation before.
    """

    symbol: str
    expr: Any
    note: str = ""
    sign: str = "="


class Answer:
    """An answer of the algebra; a kind of answer says its sentence, tables, equations, plain values and picture."""

    @property
    def sentence(self) -> str:
        """The answer as an engineer would say it, in one sentence."""
        raise NotImplementedError

    def tables(self) -> list[AnswerTable]:
        """What the answer rests on."""
        return []

    def equations(self) -> list[Equation]:
        """The closed forms of the answer; empty where it has none."""
        return []

    def notes(self) -> list[str]:
        """Sentences that follow the tables: what was skipped and why, what else binds."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the object of `--json`."""
        raise NotImplementedError

    def draw(self, axes: Any) -> None:
        """Draw the answer into axes of matplotlib.

        Raises:
            NotImplementedError: a picture says nothing here.
        """
        raise NotImplementedError

    # --- as text

    def text(self, width: int = WIDTH) -> str:
        """The sentence, the tables and the closed forms in lines of at most `width` columns."""
        blocks = [textwrap.fill(self.sentence, width)]
        blocks += [table.text(width) for table in self.tables()]
        if forms := self.equations():
            blocks.append("\n".join(row for form in forms for row in _equation_rows(form, width)))
        blocks += [textwrap.fill(note, width) for note in self.notes()]
        return "\n\n".join(blocks)

    def __str__(self) -> str:
        return self.text()

    # --- as HTML and LaTeX

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(self.sentence)}</p>", *(_table_html(table) for table in self.tables())]
        parts += [f"<p>{html.escape(note)}</p>" for note in self.notes()]
        return "\n".join(parts)

    def _repr_latex_(self) -> str | None:
        from .typeset import display

        return display(self) if self.equations() else None

    def latex(self) -> str:
        """A document that compiles with amsmath alone: sentence, closed forms, tables, symbols."""
        from .typeset import document

        return document(self)

    # --- as a picture

    def plot(self, path: str | Path | None = None) -> Any:
        """The answer as a figure of matplotlib, written to a PNG, PDF, SVG or HTML file where a path is given.

        Raises:
            InputError: matplotlib is not installed, another suffix, or the file cannot be written.
        """
        from ..pictures.figure import picture

        return picture(self, path)


def _rich(table: AnswerTable) -> Table:
    from rich.table import Table as _Table

    made = _Table(box=None, pad_edge=False)
    for k, column in enumerate(table.columns):
        made.add_column(column, justify="left" if k == 0 or k in table.left else "right", overflow="fold")
    for row in table.rows:
        made.add_row(*row)
    return made


def _table_html(table: AnswerTable) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<table><caption>{html.escape(table.title)}</caption><tr>{head}</tr>{rows}</table>"


def _equation_rows(form: Equation, width: int) -> list[str]:
    from .typeset import unicode_text

    text = unicode_text(form)
    return textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False) or [text]
