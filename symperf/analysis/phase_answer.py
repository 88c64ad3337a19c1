"""What `phase` answers: a map of what binds over two symbols, and the curves between its regions."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .answers import WIDTH, Answer, AnswerTable, Equation
from .legal import spell_skipped
from .spans import octaves
from .spelling import join, percent, spell

if TYPE_CHECKING:
    from .plane import Plane

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 17, 61
"""Of the map in text, at most."""
LEAST_POINTS = 3
"""Points of a curve for which a closed form is looked for."""
CHECKED = 9
"""Points of a curve at which a closed form is checked."""
NEAR = 1.02
"""Factor to both sides of a point in which its crossover is looked for."""
FORMS = "Closed forms of the boundaries that have one are in --latex and --json."
SHORT = 60
"""Operations of a closed form that is written out as text."""


@dataclass(frozen=True)
class Boundary:
    """A curve on which the bounding resource changes.

    Attributes:
        solved: the symbol that was solved for at each value of the other: the second, and once more the first, so that
            curves that stand upright are there as well.
        before: the resource where the solved symbol is smaller.
        after: the one where it is larger.
        x: values of the first symbol, of shape (points,).
        y: of the second. Of a whole number that was solved for, the first value with the new resource.
    """

    solved: str
    before: str | None
    after: str | None
    x: Array
    y: Array

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "solved": self.solved,
            "before": self.before,
            "after": self.after,
            "x": self.x.tolist(),
            "y": self.y.tolist(),
        }


@dataclass(frozen=True)
class Phase(Answer):
    """Which resource binds over two symbols.

    Attributes:
        x: the first symbol.
        y: the second.
        of: the quantity.
        views: of each symbol: "exact" of a real one; "whole" where those that the run accepts are on the grid, else
            "smooth".
        x_values: of shape (columns,), evenly spaced in logarithms, or whole numbers.
        y_values: of shape (rows,).
        resources: names.
        region: index into `resources` of the one with the largest share, of shape (rows, columns); -1 where none is, -2
            where the run refuses the two values together.
        boundaries: the curves between regions.
    """

    x: str
    y: str
    of: str
    views: tuple[str, str]
    x_values: Array
    y_values: Array
    resources: tuple[str, ...]
    region: Array
    boundaries: tuple[Boundary, ...]
    plane: Plane = field(repr=False, compare=False)

    def bound(self, row: int, column: int) -> str | None:
        """The bounding resource at one point of the grid."""
        return self._name(int(self.region[row, column]))

    def _name(self, index: int) -> str | None:
        return self.resources[index] if index >= 0 else None

    @cached_property
    def parts(self) -> dict[str | None, float]:
        """The part of the map, in octaves of both symbols, in which each resource binds; the largest first."""
        weights = np.outer(octaves(self.y_values), octaves(self.x_values))
        found = {self._name(int(k)): float(weights[self.region == k].sum()) for k in np.unique(self.region) if k >= -1}
        total = sum(found.values())
        return {name: part / total for name, part in sorted(found.items(), key=lambda item: -item[1])}

    @cached_property
    def forms(self) -> tuple[tuple[Boundary, Any], ...]:
        """The longest curve between each two resources, and its closed form in the symbol that was solved for.

        Nothing where the curve has none, or one that does not hold along it.
        """
        longest: dict[tuple[str | None, str | None], Boundary] = {}
        for curve in self.boundaries:
            pair = (curve.before, curve.after)
            key = pair if pair in longest or pair[::-1] not in longest else pair[::-1]
            if key not in longest or len(curve.x) > len(longest[key].x):
                longest[key] = curve
        return tuple((curve, self._form(curve)) for curve in longest.values())

    def _form(self, curve: Boundary) -> Any:
        from .regimes import regimes_of

        if len(curve.x) < LEAST_POINTS or self.views[curve.solved == self.y] == "whole":
            return None
        middle = len(curve.x) // 2
        subject = self.plane.subject_at(float(curve.x[middle]), float(curve.y[middle]))
        value = subject.values[curve.solved]
        for crossover in regimes_of(subject, curve.solved, value / NEAR, value * NEAR, band=0.0).crossovers:
            if math.isclose(crossover.x, value, rel_tol=1e-9) and crossover.bound == (curve.before, curve.after):
                form = crossover.closed_form()
                if form is not None and self._holds(form, curve):
                    return form
        return None

    def _holds(self, form: Any, curve: Boundary) -> bool:
        """Whether a closed form is the curve at points spread along it."""
        from .closed import evaluator

        value = evaluator(form)
        for k in _spread(len(curve.x), CHECKED):
            at = self.plane.subject_at(float(curve.x[k]), float(curve.y[k])).values
            if not math.isclose(value(at), at[curve.solved], rel_tol=1e-9):
                return False
        return True

    # --- as words

    @property
    def sentence(self) -> str:
        """What binds in which part of the map."""
        named = [f"{name or 'nothing'} in {percent(part)}" for name, part in self.parts.items()]
        first, *others = named
        head = f"Over {self._range(self.x, self.x_values)} and {self._range(self.y, self.y_values)}"
        what = f"the {self.of}" if self.of == "time" else self.of
        if not others:
            return f"{head} {next(iter(self.parts))} binds {what} throughout."
        name, _, part = first.partition(" in ")
        return f"{head} {name} binds {what} in {part} of the map, {join(others)}."

    def _range(self, name: str, values: Array) -> str:
        return f"{name} from {spell(name, float(values[0]))} to {spell(name, float(values[-1]))}"

    def text(self, width: int = WIDTH) -> str:
        """The sentence, a map of letters, and the tables; closed forms take longer and are in LaTeX and JSON alone."""
        blocks = [textwrap.fill(self.sentence, width), self.raster(width)]
        blocks += [table.text(width) for table in self.tables()]
        notes = [*self.notes(), *([FORMS] if self.boundaries else [])]
        return "\n\n".join([*blocks, *(textwrap.fill(note, width) for note in notes)])

    def raster(self, width: int = WIDTH) -> str:
        """A map of letters: rows from the largest value of the second symbol down, columns of the first."""
        letters = _letters([name for name in self.parts if name is not None])
        rows = _spread(len(self.y_values), ROWS)[::-1]
        labels = [spell(self.y, float(self.y_values[row])) for row in rows]
        margin = max(map(len, [*labels, self.y])) + 1
        columns = _spread(len(self.x_values), min(COLUMNS, width - margin - 2))
        lines = [self.y]
        for label, row in zip(labels, rows, strict=True):
            cells = (int(self.region[row, column]) for column in columns)
            text = "".join("." if k < -1 else letters.get(self._name(k), "-") for k in cells)
            lines.append(f"{label:>{margin}} {text}")
        ends = [spell(self.x, float(self.x_values[k])) for k in (0, -1)]
        room = max(len(columns) - len(ends[1]), len(ends[0]) + 1)
        lines.append(f"{'':{margin}} {ends[0]:{room}}{ends[1]}  {self.x}")
        meaning = [f"{letter} {name}" for name, letter in letters.items()]
        if (self.region < -1).any():
            meaning.append(". refused")
        return "\n".join([*lines, "  ".join(meaning)])

    def tables(self) -> list[AnswerTable]:
        """One row for each two resources: where the one gives way to the other."""
        spans: dict[tuple[Any, ...], list[Boundary]] = {}
        for curve in self.boundaries:
            spans.setdefault((curve.before, curve.after, curve.solved), []).append(curve)
        rows = []
        for (before, after, solved), curves in spans.items():
            xs, ys = (np.concatenate([getattr(c, name) for c in curves]) for name in ("x", "y"))
            rows.append(
                (f"{before or '-'} to {after or '-'}", f"as {solved} grows", _span(self.x, xs), _span(self.y, ys))
            )
        heads = ("binds", "", self.x, self.y)
        return [AnswerTable("Boundaries", heads, tuple(rows), frozenset({0, 1}))] if rows else []

    def equations(self) -> list[Equation]:
        """The closed form of each boundary that has a short one."""
        return [
            Equation(curve.solved, form, f"{curve.before} to {curve.after}")
            for curve, form in self.forms
            if form is not None and form.count_ops() <= SHORT
        ]

    def notes(self) -> list[str]:
        """What was skipped or left out."""
        found = []
        if self.plane.skipped:
            found.append(f"Skipped: {spell_skipped(self.plane.skipped)}.")
        smooth = [name for name, view in zip((self.x, self.y), self.views, strict=True) if view == "smooth"]
        if smooth:
            found.append(
                f"Without roundings to tiles, waves and devices, and between whole numbers, of {join(smooth)}."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `region` holds names by row and column."""
        forms = {id(curve): form for curve, form in self.forms}
        return {
            "sentence": self.sentence,
            "x": self.x,
            "y": self.y,
            "of": self.of,
            "views": list(self.views),
            "x_values": self.x_values.tolist(),
            "y_values": self.y_values.tolist(),
            "regions": [{"bound": name, "part": part} for name, part in self.parts.items()],
            "region": [[self._name(int(index)) for index in row] for row in self.region],
            "boundaries": [
                curve.to_dict() | {"closed_form": None if forms.get(id(curve)) is None else str(forms[id(curve)])}
                for curve in self.boundaries
            ],
            "skipped": [{"value": s.value, "reason": s.reason} for s in self.plane.skipped],
        }

    def draw(self, axes: Any) -> None:
        """Regions in colours with their names, and the curves between them."""
        from .drawing import draw_regions

        draw_regions(self, axes)


def _span(name: str, values: Array) -> str:
    low, high = spell(name, float(values.min())), spell(name, float(values.max()))
    return low if low == high else f"{low} to {high}"


def _spread(count: int, most: int) -> list[int]:
    """At most so many indices, evenly spread, both ends included."""
    shown = min(count, most)
    return [0] if shown < 2 else [k * (count - 1) // (shown - 1) for k in range(shown)]


def _letters(names: list[str]) -> dict[str | None, str]:
    """A letter for each name: its first that is not taken."""
    found: dict[str | None, str] = {}
    for name in names:
        spare = (letter.upper() for letter in [*name.rpartition("_")[2], *name, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"])
        found[name] = next(letter for letter in spare if letter.isalnum() and letter not in found.values())
    return found
