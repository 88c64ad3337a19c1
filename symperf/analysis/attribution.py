"""Who is responsible for the time: terms, resources, and both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import adjoints, floats, run
from ..common.errors import InputError, quote
from ..pictures.style import EDGE, colour_of
from .answers import Answer, AnswerTable
from .limits import leading, towards
from .measures import spell
from .subject import Subject, subject_of
from .wording import noun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import BaseRun


NOTICED = 1e-9
"""Part of the time below which seconds are not shown."""
DRAWN = 0.002
"""Part of the time below which a bar is too short to be drawn."""
SHOWN = 2
"""Parts of the paths of terms that are shown together."""


@dataclass(frozen=True)
class Attribution(Answer):
    """Seconds by term and resource.

    Attributes:
        rows: paths of terms, in the order of execution.
        columns: resources.
        seconds: one tuple per row, one number per column. Rows add up to the terms' seconds in the breakdown, columns
            to the resources' shares times the time, and all to the time.
        thing: how a sentence names what took the time.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]
    thing: str = "the run"

    @property
    def total(self) -> float:
        """The time."""
        return math.fsum(value for row in self.seconds for value in row)

    def row_sums(self) -> dict[str, float]:
        """Seconds by term."""
        return {name: math.fsum(row) for name, row in zip(self.rows, self.seconds, strict=True)}

    def column_sums(self) -> dict[str, float]:
        """Seconds by resource."""
        return {name: math.fsum(row[k] for row in self.seconds) for k, name in enumerate(self.columns)}

    def grouped(self, depth: int = 2) -> Attribution:
        """The same with terms added up that share the first `depth` parts of their paths.

        Raises:
            InputError: a depth that is no whole number of at least 1.
        """
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise InputError(f"grouped: depth is {quote(depth)}, expected a whole number of at least 1")
        found: dict[str, list[float]] = {}
        for name, row in zip(self.rows, self.seconds, strict=True):
            held = found.setdefault("/".join(name.split("/")[:depth]), [0.0] * len(row))
            for k, value in enumerate(row):
                held[k] += value
        return Attribution(tuple(found), self.columns, tuple(map(tuple, found.values())), self.thing)

    @property
    def sentence(self) -> str:
        """The resource that most of the time is due to, and where most of that is."""
        sums, groups = self.column_sums(), self.grouped(SHOWN)
        worst = max(sums, key=lambda name: sums[name])
        place = groups.columns.index(worst)
        row = max(range(len(groups.rows)), key=lambda k: groups.seconds[k][place])
        share = sums[worst] / self.total
        return (
            f"Of the {spell('time', self.total)} of {self.thing} {100 * share:.1f} % are due to {worst}, most of it in "
            f"{groups.rows[row]} ({spell('time', groups.seconds[row][place])})."
        )

    def tables(self) -> list[AnswerTable]:
        """The matrix, terms of one block together."""
        groups = self.grouped(SHOWN)
        lines = [*zip(groups.rows, groups.seconds, strict=True), ("total", tuple(self.column_sums().values()))]
        least_shown = NOTICED * self.total
        rows = tuple(
            (name, *(spell("time", value) if value > least_shown else "" for value in line), spell("time", sum(line)))
            for name, line in lines
            if sum(line) > least_shown
        )
        return [AnswerTable("seconds by term and resource", ("term", *self.columns, "total"), rows)]

    def draw(self, axes: Any) -> None:
        """A bar for each block of terms, in the seconds of each resource."""
        groups = self.grouped(SHOWN)
        lines = {
            name: line for name, line in zip(groups.rows, groups.seconds, strict=True) if sum(line) > DRAWN * self.total
        }
        order = range(len(lines))
        left = [0.0] * len(lines)
        for k, name in enumerate(groups.columns):
            values = [line[k] for line in lines.values()]
            if any(values):
                axes.barh(order, values, 0.7, left, label=name.replace("_", " "), color=colour_of(name, k), **EDGE)
                left = [at + value for at, value in zip(left, values, strict=True)]
        axes.set_yticks(order, list(lines))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("time (s)")
        axes.set_title(self.sentence)
        axes.legend()

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "resources": list(self.columns),
            "terms": [
                {"name": name, "seconds": dict(zip(self.columns, row, strict=True))}
                for name, row in zip(self.rows, self.seconds, strict=True)
            ],
        }


def attribution(of_run: BaseRun) -> Attribution:
    """Seconds of the time by term and resource.

    A term is responsible for its own time times the derivative of the whole by it; a resource for the part of that in
    which its latencies and reciprocal rates enter. Both are Euler's theorem, so all sums agree.

    Raises:
        InputError: the run has free symbols.
    """
    subject = subject_of(of_run, "time", "attribution")
    program, arithmetic = subject.program, floats()
    values = run(program, subject.values, arithmetic)
    terms = [term for term in of_run.compiled.terms if term.path in program.lets]
    idle = {program.lets[term.path] for term in terms if term.idle}
    slopes = adjoints(program, values, subject.position, arithmetic, stop=idle)
    columns = tuple(of_run.shares())
    rows = []
    for term in terms:
        position = program.lets[term.path]
        weight = slopes.get(position, 0.0)
        row = dict.fromkeys(columns, 0.0)
        if weight and values[position]:
            for at, slope in adjoints(program, values, position, arithmetic).items():
                operation, name, *_ = program.instructions[at]
                if operation == "input" and name in subject.resources:
                    row[subject.resources[name]] += weight * subject.degree(name) * slope * values[at]
        rows.append(tuple(row.values()))
    return Attribution(tuple(term.path for term in terms), columns, tuple(rows), noun(of_run, "time"))


def least(subject: Subject, powers: Mapping[str, int]) -> float:
    """What the output goes to when these inputs grow without bound, or vanish; infinite where it has no bound."""
    exponent, logs, coefficient = leading(towards(subject, subject.forms(powers), math.inf), math.inf)
    if coefficient and (exponent > 0 or (exponent == 0 and logs > 0)):
        return math.inf
    return float(coefficient) if exponent == 0 and logs == 0 else 0.0
