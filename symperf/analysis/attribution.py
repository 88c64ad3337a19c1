"""Who is responsible for the time: terms, resources, and both; and what faster resources would bring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import adjoints, floats, run
from ..common.errors import InputError, quote
from .limits import leading, towards
from .subject import Subject, subject_of

if TYPE_CHECKING:
    from ..evaluation.base_run import BaseRun


@dataclass(frozen=True)
class Attribution:
    """Seconds by term and resource.

    Attributes:
        rows: paths of terms, in the order of execution.
        columns: resources.
        seconds: one tuple per row, one number per column. Rows add up to the terms' seconds in the breakdown, columns
            to the resources' shares times the time, and all to the time.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    seconds: tuple[tuple[float, ...], ...]

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
        return Attribution(tuple(found), self.columns, tuple(map(tuple, found.values())))

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
    return Attribution(tuple(term.path for term in terms), columns, tuple(rows))


@dataclass(frozen=True)
class Gain:
    """What a faster resource would bring: all its rates times a factor, and its latencies over it.

    Attributes:
        resource: its name.
        symbols: its rates and latencies in the time.
        share: of the time now.
        plus_10_percent: the time now over the time at 1.1 times the rates.
        times_2: the same at twice the rates.
        infinite: the same in the limit; nothing where nothing is left of the time.
    """

    resource: str
    symbols: tuple[str, ...]
    share: float
    plus_10_percent: float
    times_2: float
    infinite: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "resource": self.resource,
            "symbols": list(self.symbols),
            "share": self.share,
            "plus_10_percent": self.plus_10_percent,
            "times_2": self.times_2,
            "infinite": self.infinite,
        }


def gains(of_run: BaseRun) -> tuple[Gain, ...]:
    """What to buy next: the exact speed-up from each resource, the largest in the limit first.

    Raises:
        InputError: the run has free symbols.
    """
    subject = subject_of(of_run, "time", "gains")
    shares = of_run.shares()
    now = _time(subject, subject.values)
    found = []
    for resource in subject.names:
        powers = {name: -subject.degree(name) for name, owner in subject.resources.items() if owner == resource}
        more, twice = (now / _time(subject, faster(subject.values, powers, factor)) for factor in (1.1, 2.0))
        rest = least(subject, powers)
        infinite = max(now / rest, 1.0) if rest else None
        found.append(Gain(resource, tuple(powers), shares.get(resource, 0.0), more, twice, infinite))
    return tuple(sorted(found, key=lambda gain: -(math.inf if gain.infinite is None else gain.infinite)))


def faster(values: dict[str, float], powers: dict[str, int], factor: float) -> dict[str, float]:
    """Values with rates times a factor and latencies over it."""
    return values | {
        name: values[name] * factor if power > 0 else values[name] / factor for name, power in powers.items()
    }


def least(subject: Subject, powers: dict[str, int]) -> float:
    """What is left of the output when these rates grow without bound and these latencies vanish."""
    exponent, logs, coefficient = leading(towards(subject, subject.forms(powers), math.inf), math.inf)
    return float(coefficient) if exponent == 0 and logs == 0 else 0.0


def _time(subject: Subject, values: dict[str, float]) -> float:
    return float(run(subject.program, values, floats())[subject.position])
