"""A run inside one regime: which branches are active there, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .text import formula

if TYPE_CHECKING:
    from .numbers import Numbers


@dataclass(frozen=True)
class Branch:
    """The operand that a maximum or minimum takes.

    Attributes:
        position: of the maximum or minimum in the analysed program.
        operation: "max" or "min".
        terms: the named terms that it is part of; none where it joins terms.
        resource: that sets the operand; nothing where it is no time.
        text: the operand in symbols and terms.
        side: 0 for the first operand, 1 for the second.
        bearers: every resource that the operand is due to, the largest first.
    """

    position: int
    operation: str
    terms: tuple[str, ...]
    resource: str | None
    text: str
    side: int
    bearers: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegimeCell:
    """One point that stands for a stretch of the symbol on which nothing switches.

    Attributes:
        numbers: the program at the points of all cells.
        point: the index of this cell's.
        sides: the operand that wins, of every maximum and minimum; the value of every `above_one` and `at_least`.
        active: the positions of those on which the output depends here.
        nests: maxima and minima of what is rounded, which stand for all that are nested in them.
    """

    numbers: Numbers
    point: int
    sides: dict[int, int]
    active: frozenset[int]
    nests: frozenset[int] = frozenset()

    @property
    def bound(self) -> str | None:
        """The resource with the largest share of the output."""
        return self.numbers.bound(self.numbers.subject.bearing, self.point)

    def branch(self, position: int) -> Branch:
        """What a maximum or minimum takes here, or the value of a step."""
        subject = self.numbers.subject
        operation, *operands = subject.program.instructions[position]
        side, terms = self.sides[position], subject.owners.get(position, ())
        if operation not in ("max", "min"):
            return Branch(position, operation, terms, None, str(side), side)
        winner = operands[side]
        while position in self.nests and winner in self.sides:
            winner = subject.program.instructions[winner][1 + self.sides[winner]]
        resource, bearers = self.numbers.bound(winner, self.point), self.numbers.bearers(winner, self.point)
        text = formula(subject.program, winner, self.sides)
        return Branch(position, operation, terms, resource, text, side, bearers)

    def differs(self, other: RegimeCell, position: int) -> bool:
        """Whether a maximum, minimum or step is taken in another way in another cell."""
        if position in self.nests:
            return self.numbers.bound(position, self.point) != other.numbers.bound(position, other.point)
        return self.sides[position] != other.sides[position]

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """Every active maximum and minimum."""
        instructions = self.numbers.subject.program.instructions
        return tuple(self.branch(at) for at in sorted(self.active) if instructions[at][0] in ("max", "min"))
