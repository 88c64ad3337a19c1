"""A bound of an output that takes fewer operations: what rules out points of a kernel without computing them.

Floating-point sums, products, quotients, maxima and minima are monotone, as rounding keeps order: if an operand is
replaced by one that is not larger, and all above it rises with what it reads, the output is not larger either, to the
bit. So an operand of a maximum may be left out, and a term of a sum that is not negative. What is not negative, and
that nothing is infinite or undefined, is known by interval arithmetic from the ranges of the inputs; what a bound
relies on is written down, and looked up again for each grid that it is used for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from .builder import Builder, append, eliminate_dead_code, operands_of
from .passes import nonnegative
from .program import Program

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Drops = Mapping[int, int]
    """Which operand (0 or 1) is left out, by the position of the instruction."""
    Interval = tuple[float, float]

BOUND = "bound of "
"""The bound of output `x` is the output `bound of x`."""
GUARD = "guard"
"""The output that is negative where the bound is none."""
SLOPES = {
    "let": (1,),
    "add": (1, 1),
    "subtract": (1, -1),
    "multiply": (1, 1),
    "divide": (1, -1),
    "ceil_div": (1, -1),
    "max": (1, 1),
    "min": (1, 1),
    "sqrt": (1,),
    "above_one": (1,),
    "stop_gradient": (1,),
    "at_least": (1, -1),
}
"""Operations that a bound can be taken through, and whether each rises or falls with each operand: of products and
quotients where the others are not negative. A logarithm or a general power is not rounded monotonously."""
CHAINS = ("add", "subtract", "max", "min")
"""Operations of which an operand may be left out."""


class Relaxation:
    """What may be left out of a program, given what has been.

    An instruction is replaced only where all that reads it needs a bound from the same side; elsewhere it is exact.

    Args:
        program: the program, without lets.
        output: of which there is to be a bound.
        signs: per instruction whether it is known not to be negative.
        inside: per instruction whether it is worth replacing: what is computed outside the innermost loop is exact.
        drops: what is left out.
        down: whether the bound is from below.

    Attributes:
        program: the same, with a `let` of the operand that is kept for each instruction that loses one.
        sides: per instruction whether the bound reads a lower (True) or upper bound of it; None where it is exact or
            not read.
        read: per instruction whether the bound reads it.
        relies: the instructions that the bound takes not to be negative.
    """

    def __init__(
        self,
        program: Program,
        output: str,
        signs: Sequence[bool],
        inside: Sequence[bool],
        drops: Drops,
        *,
        down: bool,
    ) -> None:
        instructions = list(program.instructions)
        for position, which in drops.items():
            instructions[position] = ("let", instructions[position][2 - which])
        self.original = program
        self.program = Program(instructions, program.inputs, {}, program.outputs)
        self.signs = signs
        self.inside = inside
        self.drops = drops
        self.down = down
        self.kept = nonnegative(program)
        self.relies: set[int] = set()
        self.sides = self._find_sides(program.outputs[output], down=down)

    def _find_sides(self, root: int, *, down: bool) -> list[bool | None]:
        found: list[set[bool | None]] = [set() for _ in range(len(self.program))]
        found[root].add(down)
        sides: list[bool | None] = [None] * len(found)
        for position in range(root, -1, -1):
            read = operands_of(self.program, position)
            if len(found[position]) == 1:
                (sides[position],) = found[position]
            for operand, side in zip(read, self._pass_on(position, sides[position]), strict=True):
                if found[position]:
                    found[operand].add(side)
        self.read = [bool(each) for each in found]
        return sides

    def _pass_on(self, position: int, side: bool | None) -> list[bool | None]:
        """Which bound of each operand gives this bound of an instruction; None where it has to be exact."""
        operation = self.program.instructions[position][0]
        read = operands_of(self.program, position)
        slopes = SLOPES.get(operation)
        if side is None or slopes is None:
            return [None] * len(read)
        allowed = [self.inside[o] for o in read]
        if operation == "multiply":
            # Two lower bounds only where one of them at least cannot fall below zero; else that of what comes later,
            # and none of a square: that of a number below zero may be larger.
            allowed = [self.inside[o] and self.signs[other] for o, other in zip(read, reversed(read), strict=True)]
            if side and all(allowed) and not any(self.kept[o] for o in read):
                allowed = [o > other for o, other in zip(read, reversed(read), strict=True)]
            self.relies.update(other for other, good in zip(reversed(read), allowed, strict=True) if good)
        elif operation in ("divide", "ceil_div"):
            allowed = [good and self.signs[read[1]] for good in allowed]
            allowed[1] &= self.signs[read[0]]
            self.relies.update(o for o, good in zip(read, (allowed[1], any(allowed)), strict=True) if good)
        if position in self.drops and self.original.instructions[position][0] in ("add", "subtract"):
            self.relies.add(self.original.instructions[position][1 + self.drops[position]])
        return [side == (slope > 0) if good else None for slope, good in zip(slopes, allowed, strict=True)]

    def can_drop(self, position: int, which: int) -> bool:
        """Whether an instruction may lose an operand: what is known not to be negative stays so without it."""
        operation, *read = self.original.instructions[position]
        side = self.sides[position]
        if side is None or operation not in CHAINS:
            return False
        if operation in ("max", "min"):
            return side == (operation == "max") and (not self.kept[position] or self.kept[read[1 - which]])
        if operation == "subtract" and which == 0:
            return False
        return side == (operation == "add") and self.signs[read[which]]


@dataclass(frozen=True)
class Bounded:
    """A program with a bound among its outputs, of `output` from below or above.

    Attributes:
        program: it.
        output: of which it has a bound.
        down: whether from below.
        relies: instructions that must not be negative for it to be a bound, wherever inputs are within their ranges.
    """

    program: Program
    output: str
    down: bool
    relies: tuple[int, ...]

    def holds(self, ranges: Mapping[str, Interval]) -> bool:
        """Whether it is a bound wherever the inputs are within these ranges."""
        found = intervals(self.program, ranges)
        return (
            found is not None
            and all(found[position][0] >= 0 for position in self.relies)
            and all(found[position][0] >= 0 for position in self.program.inputs.values())
        )


def add_bound(relaxed: Relaxation, output: str, guards: Collection[int]) -> Bounded:
    """The program with a bound of an output, and an output `GUARD` where it is not one everywhere.

    Args:
        relaxed: the program, and what is left out.
        output: the name.
        guards: what is taken not to be negative and is so at some points.

    Raises:
        ValueError: something is left out that may not be.
    """
    program = relaxed.original
    wrong = [p for p, which in relaxed.drops.items() if relaxed.read[p] and not relaxed.can_drop(p, which)]
    if wrong:
        raise ValueError(f"instruction {wrong[0]} needs both its operands")
    builder = Builder()
    exact = append(builder, program, {})
    at: list[int] = []
    for operation, *operands in relaxed.program.instructions:
        moved = operands if operation in ("input", "constant") else [at[operand] for operand in operands]
        at.append(moved[0] if operation == "let" else builder.emit(operation, *moved))
    named = {name: exact[p] for name, p in program.outputs.items()} | {BOUND + output: at[program.outputs[output]]}
    told = sorted((p for p in guards if p in relaxed.relies), key=lambda p: (relaxed.inside[p], p))
    if told:
        named[GUARD] = reduce(lambda least, p: builder.emit("min", least, exact[p]), told[1:], exact[told[0]])
    relies = {f"relies on {p}": exact[p] for p in sorted(relaxed.relies - set(told))}
    found = eliminate_dead_code(builder.program, {**named, **relies})
    outputs = {name: found.outputs[name] for name in named}
    return Bounded(
        Program(found.instructions, found.inputs, {}, outputs),
        output,
        relaxed.down,
        tuple(found.outputs[name] for name in relies),
    )


def intervals(program: Program, ranges: Mapping[str, Interval]) -> list[Interval] | None:
    """The least and greatest value of each instruction, or values beyond them, for inputs within some ranges.

    Ends are computed as the values are, so that rounding keeps values between them.

    Returns:
        None where a value may be infinite or undefined.
    """
    found: list[Interval] = []
    try:
        for operation, *operands in program.instructions:
            if operation == "input":
                low, high = ranges[operands[0]]
            elif operation == "constant":
                low = high = float(operands[0])
            else:
                low, high = _ENDS[operation](*[found[o] for o in operands])
            if not (-math.inf < low <= high < math.inf):
                return None
            found.append((low, high))
    except (ArithmeticError, ValueError):
        return None
    return found


def _multiply(a: Interval, b: Interval) -> Interval:
    if a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], a[1] * b[1]
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _divide(a: Interval, b: Interval) -> Interval:
    if not b[0] > 0:
        raise ValueError("a divisor may be zero")
    ends = [x / y for x in a for y in b]
    return min(ends), max(ends)


def _round_up(a: Interval, b: Interval) -> Interval:
    low, high = _divide(a, b)
    return float(math.ceil(low)), float(math.ceil(high))


def _power(a: Interval, b: Interval) -> Interval:
    if not a[0] > 0:
        raise ValueError("a power of what may be zero")
    ends = [x**y for x in a for y in b]
    return min(ends) / 2, max(ends) * 2


_ENDS: dict[str, Any] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _multiply,
    "divide": _divide,
    "ceil_div": _round_up,
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "sqrt": lambda a: (math.sqrt(a[0]), math.sqrt(a[1])),
    "log2": lambda a: (math.log2(a[0]) - 1, math.log2(a[1]) + 1),
    "power": _power,
    "above_one": lambda _: (0.0, 1.0),
    "at_least": lambda *_: (0.0, 1.0),
    "stop_gradient": lambda a: a,
}
"""The ends of each operation's values, from those of its operands. Logarithms and powers are not rounded to the last
bit, so theirs are further apart."""
