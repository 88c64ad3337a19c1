"""Regimes and crossovers as they are found: between which values no branch changes, and what changes between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cells import Branch, RegimeCell


@dataclass(frozen=True)
class Regime:
    """A stretch of the symbol on which the bounding resource and every active branch stay.

    Attributes:
        low: where it begins; of a whole number, the first.
        high: where it ends; of a whole number, the last.
        at: a point inside.
        value: of the quantity there.
        bound: the resource with the largest share; nothing where the quantity is no time.
        shares: of every resource, at the point.
    """

    low: float
    high: float
    at: float
    value: float
    bound: str | None
    shares: dict[str, float]
    cell: RegimeCell = field(repr=False, compare=False)
    last: RegimeCell = field(repr=False, compare=False)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """What every maximum and minimum takes that the quantity depends on here."""
        return self.cell.branches

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "low": self.low,
            "high": self.high,
            "at": self.at,
            "value": self.value,
            "bound": self.bound,
            "shares": self.shares,
        }


FEW = 3
"""Resources that the side of a change is named by, at most; else it is written out."""


@dataclass(frozen=True)
class Change:
    """A maximum or minimum that takes another branch, or a step."""

    before: Branch
    after: Branch

    def __str__(self) -> str:
        where = self.before.terms[0] if self.before.terms else "between terms"
        if len(self.before.terms) > 1:
            where += f" and {len(self.before.terms) - 1} more"
        names = [branch.resource or branch.text for branch in (self.before, self.after)]
        if names[0] == names[1]:
            bearers = [branch.bearers for branch in (self.before, self.after)]
            apart = bearers[0] != bearers[1] and max(map(len, bearers)) <= FEW
            names = [" and ".join(each) for each in bearers] if apart else [self.before.text, self.after.text]
        return f"{where}: {names[0]} -> {names[1]}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "operation": self.before.operation,
            "terms": list(self.before.terms),
            "before": {"resource": self.before.resource, "text": self.before.text},
            "after": {"resource": self.after.resource, "text": self.after.text},
        }


@dataclass(frozen=True)
class Crossover:
    """Where one regime ends and the next begins.

    Attributes:
        x: the value of the symbol; of a whole number, the first of the new regime.
        changes: what switches.
        bound: the bounding resource before and after, where it changes.
        step: whether something jumps here.
    """

    x: float
    changes: tuple[Change, ...]
    bound: tuple[str | None, str | None] | None
    step: bool
    symbol: str
    cell: RegimeCell = field(repr=False, compare=False)

    @property
    def extent(self) -> int:
        """Instructions that a closed form would be made of, at least: told without writing it out."""
        subject, sides = self.cell.numbers.subject, self.cell.sides
        instructions = subject.program.instructions
        switched = [change.before.position for change in self.changes if change.before.operation in ("max", "min")]
        found = []
        for start in [instructions[at][1:] for at in switched] or [(subject.bearing,)]:
            seen, waiting = set(), list(start)
            while waiting:
                at = waiting.pop()
                if at in seen:
                    continue
                seen.add(at)
                operation, *operands = instructions[at]
                if operation in ("max", "min") and at in sides:
                    waiting.append(operands[sides[at]])
                elif operation not in ("input", "constant"):
                    waiting += operands
            found.append(len(seen))
        return min(found)

    def closed_form(self) -> Any:
        """`x` as a SymPy expression in the symbols, where branches or shares cross in a low degree; else nothing."""
        from .closed import crossing

        return crossing(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "x": self.x,
            "bound": list(self.bound) if self.bound else None,
            "step": self.step,
            "changes": [change.to_dict() for change in self.changes],
        }
