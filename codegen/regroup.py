"""Reassociates sums, maxima and products so that what changes seldom is combined first and computed in an outer loop.

A step time is a sum of many terms of which few depend on the innermost axis. Added in the order of the formula, all
additions depend on it; grouped by the set of axes that each term depends on, only one or two do. The grouping looks at
these sets only, never at the order of loops or at the length of axes, so that every order computes the same bits.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .builder import Builder, live, operands_of
from .passes import STEPS, masks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .program import Program

    Join = Callable[[int, int], int]

FAMILIES = {
    "add": "sum",
    "subtract": "sum",
    "multiply": "product",
    "divide": "product",
    "max": "max",
    "min": "min",
}
"""Operations that can be reassociated with each other."""


def exact_cone(program: Program, exact: Iterable[str] = ()) -> list[bool]:
    """Per instruction, whether an operation that jumps reads it, or an output in `exact` is it or reads it."""
    reaches = [False] * len(program)
    for name in exact:
        reaches[program.outputs[name]] = True
    for position in range(len(program) - 1, -1, -1):
        if reaches[position] or program.instructions[position][0] in STEPS:
            for operand in operands_of(program, position):
                reaches[operand] = True
    return reaches


def regroup(program: Program, axes: Sequence[str], *, exact: Iterable[str] = (), together: bool = False) -> Program:
    """Combine operands that depend on fewer axes first.

    Args:
        program: the program, without lets (`prune` gives one).
        axes: names of the inputs that loops run over; their order is of no importance.
        exact: outputs that must not change by a bit, such as those compared with zero. What a `ceil_div`, a `present`
            or a `select_ge` reads is never changed.
        together: the axes change together, as columns of one table.

    Returns:
        A program whose values differ by some units in the last place.
    """
    return _Regrouping(program, _masks(program, axes, together=together), exact).result()


def reciprocals(program: Program, axes: Sequence[str], *, exact: Iterable[str] = (), together: bool = False) -> Program:
    """Multiply by a reciprocal where the divisor depends on fewer axes than the quotient, or divides twice or more.

    A quotient that a `ceil_div`, a `present`, a `select_ge` or an exact output reads stays a true division: 525 *
    (1/75) is above 7.

    Args:
        program: the program, without lets.
        axes: names of the inputs that loops run over.
        exact: outputs that must not change by a bit.
        together: the axes change together, as columns of one table.
    """
    depends = _masks(program, axes, together=together)
    kept = exact_cone(program, exact)
    free = [op == "divide" and not kept[p] for p, (op, *_) in enumerate(program.instructions)]
    uses = Counter(t[2] for p, t in enumerate(program.instructions) if free[p])
    builder = Builder()
    at: list[int] = []
    for position, (operation, *operands) in enumerate(program.instructions):
        if operation in ("input", "constant"):
            at.append(builder.emit(operation, *operands))
            continue
        moved = [at[operand] for operand in operands]
        if free[position] and (uses[operands[1]] > 1 or depends[operands[1]] != depends[position]):
            reciprocal = builder.emit("divide", builder.emit("constant", 1), moved[1])
            top = program.instructions[operands[0]]
            one = top[0] == "constant" and top[1] == 1
            at.append(reciprocal if one else builder.emit("multiply", moved[0], reciprocal))
        else:
            at.append(builder.emit(operation, *moved))
    builder.program.outputs = {name: at[p] for name, p in program.outputs.items()}
    return live(builder.program, builder.program.outputs.values())


def _masks(program: Program, axes: Sequence[str], *, together: bool) -> list[int]:
    found = masks(program, axes)
    return [int(mask > 0) for mask in found] if together else found


class _Regrouping:
    def __init__(self, program: Program, depends: list[int], exact: Iterable[str]) -> None:
        self.program = program
        self.masks = depends
        self.kept = exact_cone(program, exact)
        self.builder = Builder()
        self.at: list[int] = []
        self.mask_of: dict[int, int] = {}
        self.inner = self._interior()

    def _interior(self) -> list[bool]:
        """Per instruction, whether it is only a step of a longer chain of its own family."""
        program = self.program
        uses = Counter(o for p in range(len(program)) for o in operands_of(program, p))
        readers = {o: p for p in range(len(program)) for o in operands_of(program, p)}
        named = set(program.outputs.values())
        found = []
        for position, (operation, *_) in enumerate(program.instructions):
            family = FAMILIES.get(operation)
            reader = readers.get(position)
            found.append(
                family is not None
                and reader is not None
                and uses[position] == 1
                and position not in named
                and not self.kept[position]
                and not self.kept[reader]
                and FAMILIES.get(program.instructions[reader][0]) == family
            )
        return found

    def result(self) -> Program:
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation in ("input", "constant"):
                new = self.builder.emit(operation, *operands)
            elif self.inner[position]:
                new = -1  # its reader takes its operands
            elif self.kept[position] or operation not in FAMILIES:
                new = self.builder.emit(operation, *[self.at[o] for o in operands])
            else:
                new = self.chain(position)
            self.at.append(new)
            if new >= 0:
                self.mask_of[new] = self.masks[position]
        self.builder.program.outputs = {name: self.at[p] for name, p in self.program.outputs.items()}
        return live(self.builder.program, self.builder.program.outputs.values())

    def chain(self, position: int) -> int:
        """The root of a chain, from the leaves of it."""
        over: list[int] = []
        under: list[int] = []
        stack = [(position, False)]
        while stack:
            node, flipped = stack.pop()
            operation, *operands = self.program.instructions[node]
            if node == position or self.inner[node]:
                second = flipped ^ (operation in ("subtract", "divide"))
                stack += [(operands[1], second), (operands[0], flipped)]
            else:
                (under if flipped else over).append(node)
        family = FAMILIES[self.program.instructions[position][0]]
        if family == "sum":
            return self.sum(over, under)
        if family == "product":
            return self.product(over, under)
        return self.joined(dict.fromkeys(over), self.binary(family))

    def binary(self, operation: str) -> Join:
        def join(a: int, b: int) -> int:
            new = self.builder.emit(operation, a, b)
            self.mask_of[new] = self.mask_of[a] | self.mask_of[b]
            return new

        return join

    def joined(self, nodes: Iterable[int], join: Join) -> int:
        """Old nodes joined, those of equal masks first."""
        groups: dict[int, int] = {}
        for node in nodes:
            mask, new = self.masks[node], self.at[node]
            groups[mask] = join(groups[mask], new) if mask in groups else new
        return self.merged(groups, join)

    def merged(self, groups: dict[int, int], join: Join) -> int:
        """One value from one value a mask, the pair of the smallest union first."""
        left = dict(groups)
        while len(left) > 1:
            names = sorted(left, key=lambda m: (m.bit_count(), m))
            _, _, a, b = min(((a | b).bit_count(), a | b, a, b) for k, a in enumerate(names) for b in names[k + 1 :])
            first, second = left.pop(a), left.pop(b)
            new = join(first, second)
            left[a | b] = join(left[a | b], new) if a | b in left else new
        return next(iter(left.values()))

    def sum(self, over: Sequence[int], under: Sequence[int]) -> int:
        parts: list[dict[int, int]] = []
        add = self.binary("add")
        for side in (over, under):
            groups: dict[int, int] = {}
            for node, count in Counter(side).items():
                mask, new = self.masks[node], self.at[node]
                if count > 1:
                    times = self.builder.emit("constant", count)
                    self.mask_of[times] = 0
                    new = self.binary("multiply")(new, times)
                groups[mask] = add(groups[mask], new) if mask in groups else new
            parts.append(groups)
        plus, minus = parts
        subtract = self.binary("subtract")
        for mask in [m for m in minus if m in plus]:
            plus[mask] = subtract(plus[mask], minus.pop(mask))
        if not plus:
            zero = self.builder.emit("constant", 0)
            self.mask_of[zero] = 0
            plus[0] = zero
        if minus:  # of masks that no positive term has
            return subtract(self.merged(plus, add), self.merged(minus, add))
        return self.merged(plus, add)

    def product(self, over: Sequence[int], under: Sequence[int]) -> int:
        multiply, divide = self.binary("multiply"), self.binary("divide")
        top: dict[int, int] = {}
        bottom: dict[int, int] = {}
        for groups, side in ((top, over), (bottom, under)):
            for node in side:
                mask, new = self.masks[node], self.at[node]
                groups[mask] = multiply(groups[mask], new) if mask in groups else new
        whole = 0
        for mask in (*top, *bottom):
            whole |= mask
        last = bottom.pop(whole, None)
        for mask in sorted(bottom, key=lambda m: (m.bit_count(), m)):
            if mask not in top:
                one = self.builder.emit("constant", 1)
                self.mask_of[one] = 0
                top[mask] = one
            top[mask] = divide(top[mask], bottom[mask])
        if not top:
            one = self.builder.emit("constant", 1)
            self.mask_of[one] = 0
            top[0] = one
        if last is None:
            return self.merged(top, multiply)
        if whole in top:
            top[whole] = divide(top[whole], last)
            return self.merged(top, multiply)
        return divide(self.merged(top, multiply), last)
