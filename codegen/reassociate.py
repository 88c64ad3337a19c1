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


def regroup(
    program: Program,
    axes: Sequence[str],
    *,
    exact: Iterable[str] = (),
    together: bool = False,
    nonnegative: bool = False,
) -> Program:
    """Combine operands that depend on fewer axes first.

    Args:
        program: the program, without lets (`prune` gives one).
        axes: names of the inputs that loops run over; their order is of no importance.
        exact: outputs that must not change by a bit, such as those compared with zero. What a `ceil_div`, a `above_one`
            or a `at_least` reads is never changed.
        together: the axes change together, as columns of one table.
        nonnegative: no input is below zero, so that a factor can be taken out of a maximum or minimum. That changes no
            bit.

    Returns:
        A program whose values differ by some units in the last place.
    """
    return _Regrouping(program, _masks(program, axes, together=together), exact, nonnegative=nonnegative).result()


def reciprocals(program: Program, axes: Sequence[str], *, exact: Iterable[str] = (), together: bool = False) -> Program:
    """Multiply by a reciprocal where the divisor depends on fewer axes than the quotient, or divides twice or more.

    A quotient that a `ceil_div`, a `above_one`, a `at_least` or an exact output reads stays a true division: 525 *
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
    def __init__(self, program: Program, depends: list[int], exact: Iterable[str], *, nonnegative: bool) -> None:
        self.program = program
        self.masks = depends
        self.kept = exact_cone(program, exact)
        self.nonnegative = nonnegative
        self.signs: list[bool] = []
        self.builder = Builder()
        self.at: list[int] = []
        self.mask_of: dict[int, int] = {}
        self.uses = Counter(o for p in range(len(program)) for o in operands_of(program, p))
        self.uses.update(program.outputs.values())
        self.inner = self._interior()

    def _interior(self) -> list[bool]:
        """Per instruction, whether it is only a step of a longer chain of its own family."""
        program = self.program
        readers = {o: p for p in range(len(program)) for o in operands_of(program, p)}
        found = []
        for position, (operation, *_) in enumerate(program.instructions):
            family = FAMILIES.get(operation)
            reader = readers.get(position)
            found.append(
                family is not None
                and reader is not None
                and self.uses[position] == 1
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

    def leaves(self, position: int) -> tuple[list[int], list[int]]:
        """What a chain combines: terms or factors, and those subtracted or divided by."""
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
        return over, under

    def chain(self, position: int) -> int:
        """The root of a chain, from the leaves of it."""
        over, under = self.leaves(position)
        family = FAMILIES[self.program.instructions[position][0]]
        if family == "sum":
            return self.sum(self.peeled(over), self.peeled(under))
        if family == "product":
            return self.product(over, under)
        return self.lattice(list(dict.fromkeys(over)), family)

    def peeled(self, terms: Sequence[int]) -> list[int]:
        """Terms, where a sum with one costly term of its own is replaced by its terms."""
        found: list[int] = []
        todo = list(reversed(terms))
        while todo:
            term = todo.pop()
            if self.program.instructions[term][0] == "add" and not self.kept[term]:
                over, under = self.leaves(term)
                if not under and sum(self.masks[o] == self.masks[term] for o in over) == 1:
                    todo += reversed(over)
                    continue
            found.append(term)
        return found

    def lattice(self, nodes: list[int], family: str) -> int:
        """A minimum of maxima (or the reverse): what several of them share is taken out of them, which is exact."""
        other = "max" if family == "min" else "min"
        inner = self.binary(other)
        parts: dict[int, list[int]] = {}
        for node in nodes:
            if self.program.instructions[node][0] == other and self.uses[node] == 1 and not self.kept[node]:
                parts[node] = list(dict.fromkeys(self.leaves(node)[0]))
        values = [self.at[node] for node in nodes if node not in parts]
        while parts:
            shared, most = Counter(o for operands in parts.values() for o in operands).most_common(1)[0]
            if most < 2:
                break
            rests = [parts.pop(node) for node in list(parts) if shared in parts[node]]
            if all(len(rest) > 1 for rest in rests):  # else what is shared is all there is
                within = [self.extremum([self.at[o] for o in rest if o != shared], other) for rest in rests]
                values.append(inner(self.at[shared], self.extremum(within, family)))
            else:
                values.append(self.at[shared])
        values += [self.at[node] for node in parts]
        return self.extremum(values, family)

    def extremum(self, values: Sequence[int], family: str) -> int:
        """The largest or smallest of new values; a factor that is not negative is taken out of those that share it."""
        left = list(dict.fromkeys(values))
        while self.nonnegative:
            members: dict[int, list[tuple[int, int]]] = {}
            for value in left:
                operation, *operands = self.builder.program.instructions[value]
                if operation == "multiply":
                    for factor, rest in (operands, operands[::-1]):
                        if self.mask_of[rest] != self.mask_of[value] and self.sign(factor):
                            members.setdefault(factor, []).append((value, rest))
            factor = max(members, key=lambda f: (len(members[f]), -f), default=-1)
            if factor < 0 or len(members[factor]) < 2:
                break
            rest = self.extremum([r for _, r in members[factor]], family)
            gone = {value for value, _ in members[factor]}
            left = [value for value in left if value not in gone]
            left.append(self.binary("multiply")(factor, rest))
        return self.joined(left, self.binary(family))

    def sign(self, value: int) -> bool:
        """Whether a new value is known not to be below zero if no input is."""
        for operation, *operands in self.builder.program.instructions[len(self.signs) : value + 1]:
            if operation in ("input", "constant"):
                known = operation == "input" or operands[0] >= 0
            elif operation == "max":
                known = any(self.signs[o] for o in operands)
            else:
                known = operation in ("above_one", "at_least") or (
                    operation not in ("subtract", "log2") and all(self.signs[o] for o in operands)
                )
            self.signs.append(known)
        return self.signs[value]

    def binary(self, operation: str) -> Join:
        def join(a: int, b: int) -> int:
            new = self.builder.emit(operation, a, b)
            self.mask_of[new] = self.mask_of[a] | self.mask_of[b]
            return new

        return join

    def joined(self, values: Iterable[int], join: Join) -> int:
        """New values joined, those of equal masks first."""
        groups: dict[int, int] = {}
        for value in values:
            mask = self.mask_of[value]
            groups[mask] = join(groups[mask], value) if mask in groups else value
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
        add, subtract = self.binary("add"), self.binary("subtract")
        plus, minus = (self.added(self.factored(side), add) for side in (over, under))
        for mask in [m for m in minus if m in plus]:
            plus[mask] = subtract(plus[mask], minus.pop(mask))
        if not plus:
            plus[0] = self.number(0)
        if minus:  # of masks that no positive term has
            return subtract(self.merged(plus, add), self.merged(minus, add))
        return self.merged(plus, add)

    def added(self, terms: Sequence[tuple[int, int]], add: Join) -> dict[int, int]:
        """New values, each so many times, added by mask."""
        groups: dict[int, int] = {}
        for value, count in terms:
            mask = self.mask_of[value]
            new = value if count == 1 else self.binary("multiply")(value, self.number(count))
            groups[mask] = add(groups[mask], new) if mask in groups else new
        return groups

    def factored(self, terms: Sequence[int]) -> list[tuple[int, int]]:
        """New values of terms and how often each is there; a b + a c is a (b + c) if b and c depend on fewer axes."""
        counts = Counter(terms)
        found: list[tuple[int, int]] = []
        parts: dict[int, dict[int, tuple[Counter[int], list[int]]]] = {}
        for term, count in counts.items():
            family = FAMILIES.get(self.program.instructions[term][0])
            if family == "product" and self.uses[term] == count and not self.kept[term]:
                over, under = self.leaves(term)
                parts.setdefault(self.masks[term], {})[term] = (Counter(over), under)
            else:
                found.append((self.at[term], count))
        add, multiply = self.binary("add"), self.binary("multiply")
        for mask, products in parts.items():
            while products:
                common, members = self.shared(mask, products)
                if len(members) < 2:
                    found += [(self.at[term], counts[term]) for term in products]
                    break
                cofactors = []
                for term in members:
                    factors, divisors = products.pop(term)
                    cofactors.append((self.product([*(factors - common).elements()], divisors), counts[term]))
                rest = self.merged(self.added(cofactors, add), add)
                found.append((multiply(self.product([*common.elements()], []), rest), 1))
        return found

    def shared(self, mask: int, products: dict[int, tuple[Counter[int], list[int]]]) -> tuple[Counter[int], list[int]]:
        """Factors that most products share, and which these are, where what is left depends on fewer axes."""
        best: tuple[Counter[int], list[int]] = (Counter(), [])
        items = list(products.items())
        for k, (_, (first, _)) in enumerate(items):
            for _, (second, _) in items[k + 1 :]:
                common = first & second
                members, left = [], 0
                for term, (over, under) in items:
                    if common and not common - over:
                        rest = self.union([*(over - common), *under])
                        if left | rest != mask:
                            members.append(term)
                            left |= rest
                if len(members) > max(1, len(best[1])):
                    best = common, members
        return best

    def union(self, nodes: Iterable[int]) -> int:
        """The axes that any of some old nodes depends on."""
        found = 0
        for node in nodes:
            found |= self.masks[node]
        return found

    def number(self, value: float) -> int:
        """A constant."""
        new = self.builder.emit("constant", value)
        self.mask_of[new] = 0
        return new

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
                top[mask] = self.number(1)
            top[mask] = divide(top[mask], bottom[mask])
        if not top:
            top[0] = self.number(1)
        if last is None:
            return self.merged(top, multiply)
        if whole in top:
            top[whole] = divide(top[whole], last)
            return self.merged(top, multiply)
        return divide(self.merged(top, multiply), last)
