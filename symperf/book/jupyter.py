"""Formulas in Jupyter: an object that shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .entry import find
from .equation import latex_blocks, latex_line
from .render import entry_markdown

if TYPE_CHECKING:
    from ..formulas.language.formula import Formula


@dataclass(frozen=True, repr=False)
class Shown:
    """A formula that a notebook shows: all that the book says of it, or as LaTeX its equation."""

    formula: Formula

    def __repr__(self) -> str:
        return f"{self.formula.name}: {self.formula.sentence}"

    def _repr_latex_(self) -> str:
        return "\n".join(f"$$\n{block}\n$$" for block in latex_blocks(self.formula))

    def _repr_markdown_(self) -> str:
        return entry_markdown(self.formula.name)

    @property
    def latex(self) -> str:
        """The equation on one line."""
        return latex_line(self.formula)


def show(name: str) -> Shown:
    """A formula by name, as notebooks show it.

    Raises:
        InputError: there is none; the nearest are told.

    >>> show("work_time")
    work_time: Time to execute `work_flops` at an attainable rate, W / R.
    """
    return Shown(find(name))
