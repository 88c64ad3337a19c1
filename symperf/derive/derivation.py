"""What `derive` answers with: a closed form as lines of one monomial each, and what it holds under."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from . import monomials as mono

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..evaluation.base_run import BaseRun
    from .conditions import Condition
    from .elsewhere import Elsewhere
    from .forms import Forms
    from .regime import Choice


@dataclass(frozen=True)
class Line:
    """One monomial of a quantity in its regime.

    Attributes:
        coefficient: without the roundings up that were made numbers.
        rounding: the factor by which they raise it: partly filled tiles and waves, shares that do not divide.
        monomial: the product of symbols, a SymPy expression.
        value: at the run's values.
        share: of the quantity.
        resource: that the line is time of, where it is time of one.
        terms: value by path of each term that the line is part of, largest first.
        exact: the coefficient with the roundings.
    """

    coefficient: mono.Number
    rounding: float
    monomial: Any
    value: float
    share: float
    resource: str | None
    terms: dict[str, float]
    exact: mono.Number = field(repr=False)

    @property
    def expr(self) -> Any:
        """The line as a SymPy expression."""
        return mono.exact_number(self.exact) * self.monomial


@dataclass(frozen=True)
class Derivation:
    """A quantity of a run in closed form, whole and inside the current regime.

    Attributes:
        of: the quantity.
        term: the part of its breakdown that is derived, or None for all of it.
        unit: SI unit.
        value: at the run's values.
        run: the run.
        free: names of the symbols that vary; empty: every symbol is shown as a symbol.
        folded: names of the symbols that are replaced by their numbers.
        lines: every line, the largest share first.
        below: the share below which lines are dropped from what is shown.
        conditions: what has to hold for the lines to be the whole truth, the nearest to a change first.
        relations: sizes of the model in terms of others, which hold exactly and were put in.
        counts: how often each term counts, by path.
        forms: the whole closed form over named terms, or None for a quantity that has none.
        formula: the whole quantity: over named terms, or over the time and the vocabulary.
        time: of the same run, for a quantity that depends on it.
        zeros: terms that are 0 at the run's values, by path, with the choices that make them so.
        own: values of symbols that only this quantity is over, by name: prices, energies.
    """

    of: str
    term: str | None
    unit: str
    value: float
    run: BaseRun
    free: tuple[str, ...]
    folded: tuple[str, ...]
    lines: tuple[Line, ...]
    below: float
    conditions: tuple[Condition, ...]
    relations: dict[Any, Any]
    counts: dict[str, Any]
    forms: Forms | None
    formula: Any
    time: Derivation | None
    zeros: dict[str, tuple[Choice, ...]] = field(default_factory=dict)
    own: dict[str, float] = field(default_factory=dict)

    # --- parts

    @cached_property
    def values(self) -> dict[str, float]:
        """The value of every symbol of the run, and of those that only this quantity is over, by name."""
        return {name: value for name, (value, _) in self.run.bound.items()} | self.own

    @property
    def kept(self) -> tuple[Line, ...]:
        """The lines of at least the share asked for, and in any case the largest."""
        return tuple(line for k, line in enumerate(self.lines) if k == 0 or abs(line.share) >= self.below)

    @property
    def dropped(self) -> tuple[Line, ...]:
        """The lines that are not shown."""
        kept = set(map(id, self.kept))
        return tuple(line for line in self.lines if id(line) not in kept)

    @property
    def dropped_value(self) -> float:
        """The total of the lines that are not shown."""
        return sum(line.value for line in self.dropped)

    @property
    def dropped_share(self) -> float:
        """The share of the lines that are not shown."""
        return sum(line.share for line in self.dropped)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all terms that the whole closed form is over."""
        if self.forms is None:
            return () if self.time is None else self.time.paths
        return tuple(self.forms.terms)

    # --- expressions

    @cached_property
    def expr(self) -> Any:
        """The quantity inside the regime, all lines; over the symbol `time` where it depends on it."""
        return sympy.Add(*(line.expr for line in self.lines))

    @cached_property
    def full(self) -> Any:
        """The whole closed form in the vocabulary's symbols, with every maximum and minimum."""
        from .whole import full_form

        return full_form(self)

    @cached_property
    def active(self) -> Any:
        """The whole closed form with every maximum and minimum replaced by its active branch, all else as it is."""
        from .whole import active_form

        return active_form(self)

    # --- other values

    @cached_property
    def elsewhere(self) -> Elsewhere:
        """The conditions and the lines at other values, also many at a time."""
        from .elsewhere import Elsewhere

        return Elsewhere(self)

    def holds(self, bindings: Mapping[Any, float]) -> bool:
        """Whether every condition holds at other values: there the lines give the quantity, within 1e-12.

        Args:
            bindings: `run.bindings` of another run, whose closed forms have to be of the same structure; or numbers by
                symbol or by name. What is missing has the value of this run.

        Raises:
            InputError: a name that the run does not have, with the nearest, or what is no number.
        """
        if getattr(bindings, "structure", self.run.structure) != self.run.structure:
            return False
        return not self.broken(bindings)

    def broken(self, bindings: Mapping[Any, float]) -> tuple[Condition, ...]:
        """The conditions that do not hold at other values; where the structure is another one, all of them.

        Args:
            bindings: as of `holds`.

        Raises:
            InputError: a name that the run does not have, with the nearest, or what is no number.
        """
        if getattr(bindings, "structure", self.run.structure) != self.run.structure:
            return self.conditions
        _, holds = self.elsewhere.at(self.elsewhere.values(bindings))
        kept = {choice for choice, each in zip(self.elsewhere.choices, holds, strict=True) if each}
        return tuple(condition for condition in self.conditions if not kept.issuperset(condition.choices))

    def value_at(self, bindings: Mapping[Any, float]) -> float:
        """What the lines give at other values, whether or not the conditions hold there.

        Args:
            bindings: as of `holds`.

        Raises:
            InputError: a name that the run does not have, with the nearest, or what is no number.
        """
        return float(self.elsewhere.at(self.elsewhere.values(bindings))[0])

    # --- text

    def latex(self) -> str:
        """A document that compiles with amsmath alone: the lines, what they hold under, the whole form, the symbols."""
        from .document import document

        return document(self)

    def fragment(self) -> str:
        """The `align*` of the lines, to be put into a document of one's own."""
        from .document import fragment

        return fragment(self)

    def unicode(self, width: int = 100) -> str:
        """The lines as text of at most `width` columns, with what they hold under."""
        from .terminal import text

        return text(self, width)

    def python(self) -> str:
        """A module with one function of the free symbols, or of all, that needs nothing but Python."""
        from .source import python_source

        return python_source(self)

    def c(self) -> str:
        """The same as C99."""
        from .source import c_text

        return c_text(self)

    def javascript(self) -> str:
        """The same as an ES module."""
        from .source import javascript_text

        return javascript_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        from .output import as_json

        return as_json(self)

    def __str__(self) -> str:
        return self.unicode()

    def __repr__(self) -> str:
        what = self.of if self.term is None else f"{self.of} of {self.term}"
        return f"Derivation({what}, {len(self.kept)} of {len(self.lines)} lines; print it, or take .expr)"

    def _repr_latex_(self) -> str:
        from .document import display

        return display(self)

    def _repr_html_(self) -> str:
        from .shown import as_html

        return as_html(self)

    # --- as a picture

    def draw(self, axes: Any) -> None:
        """Draw the lines' shares into axes of matplotlib."""
        from .shown import draw

        draw(self, axes)

    def plot(self, path: str | Path | None = None) -> Any:
        """The lines' shares as a figure of matplotlib, written to a PNG, PDF, SVG or HTML file where a path is given.

        Raises:
            InputError: matplotlib is not installed, another suffix, or the file cannot be written.
        """
        from ..pictures.figure import picture

        return picture(self, path)
