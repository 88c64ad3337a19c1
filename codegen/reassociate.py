"""Reassociates sums, maxima and products so that what changes seldom is combined first and computed in an outer loop.

A step time is a sum of many terms of which few depend on the innermost axis. Added in the order of the formula, all
additions depend on it; grouped by the set of axes that each term depends on, only one or two do. The grouping looks at
these sets only, never at the order of loops or at the length of axes, so that every order computes the same bits.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .builder import Builder, eliminate_dead_code, operands_of
from .passes import exact_cone, is_nonnegative, masks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .passes import Axis
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


def reassociate(
    program: Program, axes: Sequence[Axis], *, exact: Iterable[str] = (), nonnegative: bool = False
) -> Program:
    """Combine operands that depend on fewer axes first.

    Args:
        program: the program, without lets (`prune` gives one).
        axes: the inputs that loops run over; their order is of no importance.
        exact: outputs that must not change by a bit, such as those compared with zero. What a `ceil_div`, a `above_one`
            or a `at_least` reads is never changed.
        nonnegative: no input is below zero, so that a factor can be taken out of a maximum or minimum. That changes no
            bit.

    Returns:
        A program whose values differ by some units in the last place.
    """
    return _Reassociation(program, masks(program, axes), exact, nonnegative=nonnegative).rebuild()


class _Reassociation:
    """A program rewritten chain by chain.

    A chain is a tree of operations of one family, each used by the next alone. Its leaves are what it combines; they
    are old positions, and `at` says where they are in the new program.

    Args:
        program: the program.
        depends: per instruction the axes that it depends on, as a mask.
        exact: outputs that must not change.
        nonnegative: whether no input is below zero.
    """

    def __init__(self, program: Program, depends: list[int], exact: Iterable[str], *, nonnegative: bool) -> None:
        self.program = program
        self.masks = depends
        self.exact = exact_cone(program, exact)
        self.nonnegative = nonnegative
        self.signs: list[bool] = []
        """Per new instruction, as far as was asked, whether it is known not to be below zero."""
        self.builder = Builder()
        self.at: list[int] = []
        """The new position of each old instruction; -1 of one that is inside a chain."""
        self.mask_of: dict[int, int] = {}
        """The axes that a new instruction depends on."""
        self.uses = Counter(o for p in range(len(program)) for o in operands_of(program, p))
        self.uses.update(program.outputs.values())
        self.inner = self._find_inner()

    def _find_inner(self) -> list[bool]:
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
                and not self.exact[position]
                and not self.exact[reader]
                and FAMILIES.get(program.instructions[reader][0]) == family
            )
        return found

    def rebuild(self) -> Program:
        """The new program."""
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation in ("input", "constant"):
                new = self.builder.emit(operation, *operands)
            elif self.inner[position]:
                new = -1  # its reader takes its operands
            elif self.exact[position] or operation not in FAMILIES:
                new = self.builder.emit(operation, *[self.at[o] for o in operands])
            else:
                new = self.rebuild_chain(position)
            self.at.append(new)
            if new >= 0:
                self.mask_of[new] = self.masks[position]
        self.builder.program.outputs = {name: self.at[p] for name, p in self.program.outputs.items()}
        return eliminate_dead_code(self.builder.program)

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

    def rebuild_chain(self, position: int) -> int:
        """The new position of a chain, given the old one of its last operation."""
        over, under = self.leaves(position)
        family = FAMILIES[self.program.instructions[position][0]]
        if family == "sum":
            return self.build_sum(self.expand(over), self.expand(under))
        if family == "product":
            return self.build_product(over, under)
        return self.build_lattice(list(dict.fromkeys(over)), family)

    # --- maxima and minima

    def build_lattice(self, nodes: list[int], family: str) -> int:
        """A minimum of maxima (or the reverse): what several of them share is taken out of them, which is exact.

        min(max(a, b), max(a, c)) is max(a, min(b, c)), by the distributive law of the lattice of numbers.
        """
        other = "max" if family == "min" else "min"
        # 1. Of the operands, those that are an extremum of the other kind, used here alone, are taken apart.
        parts: dict[int, list[int]] = {}
        for node in nodes:
            if self.program.instructions[node][0] == other and self.uses[node] == 1 and not self.exact[node]:
                parts[node] = list(dict.fromkeys(self.leaves(node)[0]))
        values = [self.at[node] for node in nodes if node not in parts]
        # 2. Again and again the operand that most of them share is taken out of all that have it.
        while parts:
            shared, most = Counter(o for operands in parts.values() for o in operands).most_common(1)[0]
            if most < 2:
                break
            rests = [parts.pop(node) for node in list(parts) if shared in parts[node]]
            if all(len(rest) > 1 for rest in rests):
                within = [self.build_extremum([self.at[o] for o in rest if o != shared], other) for rest in rests]
                values.append(self.join_by(other)(self.at[shared], self.build_extremum(within, family)))
            else:  # one of them is the shared operand alone, and absorbs the others: min(a, max(a, b)) is a
                values.append(self.at[shared])
        # 3. What shares nothing is combined as it was.
        values += [self.at[node] for node in parts]
        return self.build_extremum(values, family)

    def build_extremum(self, values: Sequence[int], family: str) -> int:
        """The largest or smallest of new values; a factor that is not negative is taken out of those that share it."""
        left = list(dict.fromkeys(values))
        while self.nonnegative:
            # Which products have each factor, where what is left of the product depends on fewer axes.
            members: dict[int, list[tuple[int, int]]] = {}
            for value in left:
                operation, *operands = self.builder.program.instructions[value]
                if operation == "multiply":
                    for factor, rest in (operands, operands[::-1]):
                        if self.mask_of[rest] != self.mask_of[value] and self.is_nonnegative(factor):
                            members.setdefault(factor, []).append((value, rest))
            factor = max(members, key=lambda f: (len(members[f]), -f), default=-1)
            if factor < 0 or len(members[factor]) < 2:
                break
            rest = self.build_extremum([r for _, r in members[factor]], family)
            gone = {value for value, _ in members[factor]}
            left = [value for value in left if value not in gone]
            left.append(self.join_by("multiply")(factor, rest))
        groups: dict[int, int] = {}
        self.group(groups, left, self.join_by(family))
        return self.merge(groups, self.join_by(family))

    def is_nonnegative(self, value: int) -> bool:
        """Whether a new value is known not to be below zero if no input is."""
        for operation, *operands in self.builder.program.instructions[len(self.signs) : value + 1]:
            self.signs.append(is_nonnegative(operation, operands, self.signs))
        return self.signs[value]

    # --- what sums, products and extrema share

    def join_by(self, operation: str) -> Join:
        """A function that joins two new values by an operation."""

        def join(a: int, b: int) -> int:
            new = self.builder.emit(operation, a, b)
            self.mask_of[new] = self.mask_of[a] | self.mask_of[b]
            return new

        return join

    def group(self, groups: dict[int, int], values: Iterable[int], join: Join) -> None:
        """Add new values to groups, of one value for each mask."""
        for value in values:
            mask = self.mask_of[value]
            groups[mask] = join(groups[mask], value) if mask in groups else value

    def merge(self, groups: dict[int, int], join: Join) -> int:
        """One value from one value a mask, the pair of the smallest union first.

        So what depends on few axes is joined before it meets what depends on many.
        """
        left = dict(groups)
        while len(left) > 1:
            names = sorted(left, key=lambda m: (m.bit_count(), m))
            _, _, a, b = min(((a | b).bit_count(), a | b, a, b) for k, a in enumerate(names) for b in names[k + 1 :])
            first, second = left.pop(a), left.pop(b)
            new = join(first, second)
            left[a | b] = join(left[a | b], new) if a | b in left else new
        return next(iter(left.values()))

    def constant(self, value: float) -> int:
        """The new position of a number, which depends on no axis."""
        new = self.builder.emit("constant", value)
        self.mask_of[new] = 0
        return new

    def union(self, nodes: Iterable[int]) -> int:
        """The axes that any of some old nodes depends on."""
        found = 0
        for node in nodes:
            found |= self.masks[node]
        return found

    # --- sums

    def expand(self, terms: Sequence[int]) -> list[int]:
        """Terms, where a sum with one costly term of its own is replaced by its terms."""
        found: list[int] = []
        todo = list(reversed(terms))
        while todo:
            term = todo.pop()
            if self.program.instructions[term][0] == "add" and not self.exact[term]:
                over, under = self.leaves(term)
                if not under and sum(self.masks[o] == self.masks[term] for o in over) == 1:
                    todo += reversed(over)
                    continue
            found.append(term)
        return found

    def build_sum(self, over: Sequence[int], under: Sequence[int]) -> int:
        """The sum of some terms less the sum of others."""
        add, subtract = self.join_by("add"), self.join_by("subtract")
        plus, minus = (self.add_by_mask(self.factor(side), add) for side in (over, under))
        for mask in [m for m in minus if m in plus]:
            plus[mask] = subtract(plus[mask], minus.pop(mask))
        if not plus:
            plus[0] = self.constant(0)
        if minus:  # of masks that no positive term has
            return subtract(self.merge(plus, add), self.merge(minus, add))
        return self.merge(plus, add)

    def add_by_mask(self, terms: Sequence[tuple[int, int]], add: Join) -> dict[int, int]:
        """The sum of new values, each so many times, for each mask."""
        groups: dict[int, int] = {}
        for value, count in terms:
            new = value if count == 1 else self.join_by("multiply")(value, self.constant(count))
            mask = self.mask_of[value]
            groups[mask] = add(groups[mask], new) if mask in groups else new
        return groups

    def factor(self, terms: Sequence[int]) -> list[tuple[int, int]]:
        """New values of terms and how often each is there; a b + a c is a (b + c) if b and c depend on fewer axes."""
        # 1. Products that are used here alone are taken apart; they are sorted by the axes that they depend on.
        counts = Counter(terms)
        found: list[tuple[int, int]] = []
        parts: dict[int, dict[int, tuple[Counter[int], list[int]]]] = {}
        for term, count in counts.items():
            family = FAMILIES.get(self.program.instructions[term][0])
            if family == "product" and self.uses[term] == count and not self.exact[term]:
                over, under = self.leaves(term)
                parts.setdefault(self.masks[term], {})[term] = (Counter(over), under)
            else:
                found.append((self.at[term], count))
        # 2. Of those of equal axes, the factors that most of them share are taken out, as long as two share any.
        add, multiply = self.join_by("add"), self.join_by("multiply")
        for mask, products in parts.items():
            while products:
                common, members = self.find_common_factors(mask, products)
                if len(members) < 2:
                    found += [(self.at[term], counts[term]) for term in products]
                    break
                cofactors = []
                for term in members:
                    factors, divisors = products.pop(term)
                    cofactors.append((self.build_product([*(factors - common).elements()], divisors), counts[term]))
                rest = self.merge(self.add_by_mask(cofactors, add), add)
                found.append((multiply(self.build_product([*common.elements()], []), rest), 1))
        return found

    def find_common_factors(
        self, mask: int, products: dict[int, tuple[Counter[int], list[int]]]
    ) -> tuple[Counter[int], list[int]]:
        """Factors that most products share, and which these are, where what is left depends on fewer axes.

        Args:
            mask: of each of the products.
            products: factors and divisors by old position.
        """
        best: tuple[Counter[int], list[int]] = (Counter(), [])
        items = list(products.items())
        # What several share, some two of them share: every pair is a candidate.
        for k, (_, (first, _)) in enumerate(items):
            for _, (second, _) in items[k + 1 :]:
                common = first & second
                members, left = [], 0
                for term, (over, under) in items:
                    if common and not common - over:
                        rest = self.union([*(over - common), *under])
                        if left | rest != mask:  # else the sum of what is left is as costly as that of the products
                            members.append(term)
                            left |= rest
                if len(members) > max(1, len(best[1])):
                    best = common, members
        return best

    # --- products

    def build_product(self, over: Sequence[int], under: Sequence[int]) -> int:
        """The product of some factors over the product of others."""
        multiply, divide = self.join_by("multiply"), self.join_by("divide")
        # 1. One factor and one divisor for each mask.
        top: dict[int, int] = {}
        bottom: dict[int, int] = {}
        for groups, side in ((top, over), (bottom, under)):
            for node in side:
                mask, new = self.masks[node], self.at[node]
                groups[mask] = multiply(groups[mask], new) if mask in groups else new
        whole = 0
        for mask in (*top, *bottom):
            whole |= mask
        # 2. Each divisor divides the factor of its own mask, or 1, so that the quotient is as cheap as it is.
        last = bottom.pop(whole, None)
        for mask in sorted(bottom, key=lambda m: (m.bit_count(), m)):
            if mask not in top:
                top[mask] = self.constant(1)
            top[mask] = divide(top[mask], bottom[mask])
        # 3. A divisor of all axes divides last: in its place a reciprocal would be one more operation innermost.
        if not top:
            top[0] = self.constant(1)
        if last is None:
            return self.merge(top, multiply)
        if whole in top:
            top[whole] = divide(top[whole], last)
            return self.merge(top, multiply)
        return divide(self.merge(top, multiply), last)
