"""The answer to the inverse question: the value of a symbol at which quantities are at their targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .answers import Answer, AnswerTable, Equation
from .laws import law
from .measures import spell

if TYPE_CHECKING:
    from .answers import Unreachable
    from .cross_sides import Side
    from .subject import Subject

SHARE = "share of "
HIGHER_IS_BETTER = ("mfu", "hfu", "mbu", "_per_s", "share of compute")
"""Parts of the names of quantities that are to be at least their target."""
SHORT = 60
"""Operations of a closed form that is shown."""
WRITTEN = 500
"""Operations of a closed form that is plain text."""
LONGEST = 600
"""Instructions of a program whose closed forms are looked for unasked."""
NEAR = 1e-9
"""A quantity that is further from its target, relative, jumps over it."""
SHOWN = 4
"""Solutions and intervals that a text tells one by one."""


def out_of_reach(symbol: str, targets: dict[str, float], error: Unreachable) -> dict[str, Any]:
    """The plain values of a question without an answer: the keys of a solution, with how near it gets.

    Args:
        symbol: what was solved for.
        targets: quantities by name, and their targets.
        error: that told of it.
    """
    plain = [{"of": of, "target": wanted, "meets": None, "reached": None} for of, wanted in targets.items()]
    limit = {"limit": error.limit, "at": error.at if math.isfinite(error.at) else None, "reason": str(error)}
    return (
        {"symbol": symbol, "value": None, "closed_form": None, "binding": None, "reachable": False}
        | limit
        | dict.fromkeys(("of", "target", "reached", "whole", "meets", "end"))
        | {"values": [], "targets": plain, "admissible": [], "also": []}
    )


def is_higher_better(quantity: str) -> bool:
    """Whether a quantity is to be at least its target, and of two the higher one is better."""
    return any(part in quantity for part in HIGHER_IS_BETTER)


@dataclass(frozen=True)
class Target:
    """What a quantity is to be.

    Attributes:
        of: the quantity.
        wanted: its target.
        side: the quantity of the run, as a function of the symbol.
    """

    of: str
    wanted: float
    side: Side = field(repr=False, compare=False)

    @property
    def sign(self) -> int:
        """+1 where the quantity is to be at most its target, -1 where at least."""
        return -1 if is_higher_better(self.of) else 1

    @property
    def meets(self) -> str:
        """The side of the target that is good, "<=" or ">="."""
        return "<=" if self.sign > 0 else ">="

    def met(self, value: float) -> bool:
        """Whether a value is on the good side."""
        return self.sign * (value - self.wanted) <= 0

    def near(self, value: float) -> bool:
        """Whether a value is the target, but for rounding."""
        return math.isclose(value, self.wanted, rel_tol=NEAR)

    def __str__(self) -> str:
        return f"{self.of} {self.meets} {spell(self.of, self.wanted)}"


@dataclass(frozen=True)
class Solution(Answer):
    """A value of a symbol at which every target is met.

    Attributes:
        symbol: what was solved for.
        value: the answer; of several, the nearest to the value now.
        of: the quantity whose target binds.
        target: its target.
        reached: its value at the answer.
        values: every answer, in order: where a target begins or ceases to be met; of a whole number, the one.
        whole: whether the symbol is a whole number: then the quantity is at its target or on the good side of it.
        meets: "<=" or ">=": the side of the target that is good; None of one target of a real symbol, which is reached.
        binding: what keeps the symbol from going further: the quantity whose target binds, or why the run refuses
            more; None where nothing does.
        end: of a whole number, "largest" or "smallest": which of those that meet every target it is.
        reached_all: every quantity at the answer, by name.
        targets: every target.
        admissible: where all targets are met, as intervals with their ends; empty where one is reached.
        considered: the smallest and the largest value that were considered.
        also: what else binds there or soon, a sentence each.
    """

    symbol: str
    value: float
    of: str
    target: float
    reached: float
    values: tuple[float, ...]
    whole: bool = False
    meets: str | None = None
    binding: str | None = None
    end: str = ""
    reached_all: dict[str, float] = field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    admissible: tuple[tuple[float, float], ...] = ()
    considered: tuple[float, float] = (0.0, math.inf)
    also: tuple[str, ...] = ()
    subject: Subject | None = field(default=None, repr=False, compare=False)

    def closed_form(self) -> Any:
        """`value` as a SymPy expression in the other symbols and in the quantity, where its regime has one."""
        from .inverse import inverse

        return inverse(self)

    def _short_form(self, operations: int) -> Any:
        """The closed form, if it has no more than so many operations."""
        if self.whole or self.subject is None or len(self.subject.program) > LONGEST:
            return None
        form = self.closed_form()
        return None if form is None or form.count_ops() > operations else form

    @property
    def sentence(self) -> str:
        """The answer as an engineer would say it."""
        name, value = self.symbol, spell(self.symbol, self.value)
        if self.meets is None:
            others = [spell(name, x) for x in self.values if x != self.value]
            if self.jumps:
                wanted, found = spell(self.of, self.target), spell(self.of, self.reached)
                return f"At {name} = {value} {self.of} jumps over {wanted}: it is {found} there."
            more = f", and so do {' and '.join(others[:SHOWN])}" if others else ""
            return f"{name} = {value} brings {self.of} to {spell(self.of, self.target)}{more}."
        told = " and ".join(map(str, self.targets))
        why = ""
        if self.binding in self.reached_all:
            why = f"; {self.binding} binds" if len(self.targets) > 1 else ""
        elif self.binding:
            why = f"; the run accepts no {'more' if self.end == 'largest' else 'less'}: {self.binding}"
        if self.whole:
            return f"{name} = {value} is the {self.end} that meets {told}{why}."
        spans = [self._span(*ends) for ends in self.admissible[:SHOWN]]
        are = f"{told} {'are' if len(self.targets) > 1 else 'is'} met"
        if self.binding is None:
            return f"{are} for every {name} considered."
        return f"{are} while {' or '.join(spans)}, and {self.binding} binds at {value}."

    @property
    def jumps(self) -> bool:
        """Whether the one quantity that is to be at its target jumps over it."""
        return self.meets is None and not math.isclose(self.reached, self.target, rel_tol=NEAR)

    def _span(self, low: float, high: float) -> str:
        name, (first, last) = self.symbol, self.considered
        if high >= last:
            return f"{name} >= {spell(name, low)}"
        if low <= first:
            return f"{name} <= {spell(name, high)}"
        return f"{spell(name, low)} <= {name} <= {spell(name, high)}"

    def tables(self) -> list[AnswerTable]:
        """Each target and what is reached."""
        rows = []
        for target in self.targets:
            found = self.reached_all[target.of]
            margin = abs(target.wanted - found) / target.wanted
            state = "jumps" if self.jumps else "binds" if target.of == self.binding else "met"
            sign = target.meets if self.meets else "="
            rows.append(
                (
                    target.of,
                    f"{sign} {spell(target.of, target.wanted)}",
                    spell(target.of, found),
                    f"{margin:.2%}",
                    state,
                )
            )
        return [AnswerTable("", ("quantity", "target", "reached", "margin", "state"), tuple(rows), frozenset({4}))]

    def equations(self) -> list[Equation]:
        """The closed form of the answer, if it is short."""
        form = self._short_form(SHORT)
        return [] if form is None else [Equation(self.symbol, form, f"where {self.of} is its target")]

    def notes(self) -> list[str]:
        """What else binds there or soon."""
        side = next((target.side for target in self.targets if target.of == self.of), None)
        if self.whole or side is None or not side.faithful or self.value <= 0:
            return list(self.also)
        told = law(side, self.value)
        near = [] if told is None else [f"Near {spell(self.symbol, self.value)}, in SI units: {self.of} is {told}."]
        return [*near, *self.also]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the object of `--json`."""
        form = self._short_form(WRITTEN)
        return {
            "symbol": self.symbol,
            "value": self.value,
            "closed_form": None if form is None else str(form),
            "binding": self.binding,
            "reachable": True,
            "limit": None,
            "at": None,
            "reason": None,
            "of": self.of,
            "target": self.target,
            "reached": self.reached,
            "values": list(self.values),
            "whole": self.whole,
            "meets": self.meets,
            "targets": [
                {"of": each.of, "target": each.wanted, "meets": each.meets, "reached": self.reached_all[each.of]}
                for each in self.targets
            ],
            "admissible": [{"low": low, "high": None if math.isinf(high) else high} for low, high in self.admissible],
            "end": self.end or None,
            "also": list(self.also),
        }

    def draw(self, axes: Any) -> None:
        """Draw it into axes of matplotlib."""
        from .solve_picture import draw

        draw(self, axes)
