"""A whole program along one symbol, as exact pieces.

Each instruction becomes a function of x that is one `PowerQuotient` between neighbouring cuts. A maximum or minimum
adds cuts wherever its winner changes; they are all sign changes of the difference of its operands, so none is missed.
"""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .forms import FormError, PowerQuotient, constant, plain
from .roots import between, sign_at, sign_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..codegen.program import Program

SAME = 1e-14
"""Cuts closer than this, relative, are one: they are the same point up to rounding."""
SWITCHES = frozenset({"max", "min", "above_one", "at_least"})


@dataclass(frozen=True)
class Pieces:
    """A function that is `parts[k]` between the k-th and the next of `(low, *cuts, high)`."""

    cuts: tuple[float, ...]
    parts: tuple[Any, ...]

    def at(self, x: float) -> Any:
        """The part that holds just above x."""
        return self.parts[bisect.bisect_right(self.cuts, x)]


class PiecewiseProgram:
    """A program between two values of a symbol.

    Args:
        program: without a `ceil_div` that depends on the symbol.
        inputs: the form of every input.
        low: 0 or above.
        high: above `low`; may be infinite.

    Attributes:
        values: the pieces of every instruction.
        sides: per maximum or minimum, which operand wins (0 the first, also of equals, or 1); per `above_one` or
            `at_least`, its value.

    Raises:
        FormError: an instruction is no quotient of sums of powers.
    """

    def __init__(self, program: Program, inputs: Mapping[str, PowerQuotient], low: float, high: float) -> None:
        self.program, self.low, self.high = program, low, high
        self.known: list[float] = []
        self.values: list[Pieces] = []
        self.sides: dict[int, Pieces] = {}
        for position, (operation, *operands) in enumerate(program.instructions):
            try:
                self.values.append(self._instruction(position, operation, operands, inputs))
            except FormError as error:
                raise FormError(f"instruction {position} ({operation}): {error}") from None

    def _instruction(
        self, position: int, operation: str, operands: Sequence[Any], inputs: Mapping[str, PowerQuotient]
    ) -> Pieces:
        if operation == "input":
            return Pieces((), (inputs[operands[0]],))
        if operation == "constant":
            return Pieces((), (constant(operands[0]),))
        args: list[Pieces] = [self.values[operand] for operand in operands]
        if operation in SWITCHES:
            return self._switch(position, operation, args)
        if operation == "let":
            return args[0]
        if operation == "power":
            exponent = args[1].parts[0].number() if len(args[1].parts) == 1 else None
            if exponent is None:
                raise FormError("the exponent is not a number")
            return self._each(lambda base: base.power(exponent), args[:1])
        return self._each(COMPUTED[operation], args)

    def _each(self, function: Callable[..., Any], args: Sequence[Pieces]) -> Pieces:
        if all(not arg.cuts for arg in args):
            return Pieces((), (function(*(arg.parts[0] for arg in args)),))
        cuts, columns = align_cuts(args)
        return join_pieces(cuts, [function(*column) for column in columns])

    def _switch(self, position: int, operation: str, args: Sequence[Pieces]) -> Pieces:
        if operation == "above_one":
            args = [args[0], Pieces((), (constant(1),))]
        cuts, columns = align_cuts(args)
        edges = (self.low, *cuts, self.high)
        found: list[float] = []
        sides: list[int] = []
        parts: list[Any] = []
        for k, (first, second) in enumerate(columns):
            left, right = edges[k], edges[k + 1]
            if k:
                found.append(left)
            inside, signs = self._signs(first, second, left, right)
            found += inside
            for sign in signs:
                side = _side(operation, sign)
                sides.append(side)
                parts.append((first, second)[side] if operation in ("max", "min") else constant(side))
        self.sides[position] = join_pieces(found, sides)
        return join_pieces(found, parts)

    def _signs(
        self, first: PowerQuotient, second: PowerQuotient, left: float, right: float
    ) -> tuple[list[float], list[int]]:
        """Where the difference of two forms changes its sign, and its sign on each side."""
        if first is second:
            return [], [0]
        difference = first - second
        over = plain(difference.over)
        under = plain(difference.under) if difference.under is not None else None
        if not over:
            return [], [0]
        points = set(sign_changes(over, left, right))
        if under is not None:
            points |= set(sign_changes(under, left, right))
        inside = sorted({point for point in map(self._snapped, points) if left < point < right})
        edges = [left, *inside, right]
        signs = []
        for a, b in itertools.pairwise(edges):
            middle = between(a, b)
            signs.append(sign_at(over, middle) * (1 if under is None else sign_at(under, middle)))
        return inside, signs

    def equal(self, first: PowerQuotient, second: PowerQuotient, left: float, right: float) -> list[float]:
        """Where two forms change their order between two points."""
        return self._signs(first, second, left, right)[0]

    def _snapped(self, point: float) -> float:
        """The known cut that this point is, up to rounding; or itself, known from now on."""
        place = bisect.bisect_left(self.known, point)
        for known in self.known[max(0, place - 1) : place + 1]:
            if math.isclose(known, point, rel_tol=SAME):
                return known
        self.known.insert(place, point)
        return point


def align_cuts(args: Sequence[Pieces]) -> tuple[tuple[float, ...], list[tuple[Any, ...]]]:
    """The cuts of several functions together, and the parts of each between them."""
    first = args[0].cuts
    if all(arg.cuts == first for arg in args):
        return first, list(zip(*(arg.parts for arg in args), strict=True))
    cuts = tuple(sorted({cut for arg in args for cut in arg.cuts}))
    return cuts, [tuple(arg.at(left) for arg in args) for left in (-math.inf, *cuts)]


def join_pieces(cuts: Sequence[float], parts: Sequence[Any]) -> Pieces:
    """Pieces without cuts where nothing changes."""
    kept: list[float] = []
    held = [parts[0]]
    for cut, part in zip(cuts, parts[1:], strict=True):
        if part is not held[-1] and part != held[-1]:
            kept.append(cut)
            held.append(part)
    return Pieces(tuple(kept), tuple(held))


def _side(operation: str, sign: int) -> int:
    if operation == "max":
        return 0 if sign >= 0 else 1
    if operation == "min":
        return 0 if sign <= 0 else 1
    return int(sign > 0) if operation == "above_one" else int(sign >= 0)


def _bins(amount: PowerQuotient, size: PowerQuotient) -> PowerQuotient:
    quotient = (amount / size).number()
    if quotient is None:
        raise FormError("a rounding that depends on the symbol")
    return constant(math.ceil(float(quotient)))  # as a run does: a chance of 1e-200 makes no tile more


COMPUTED: dict[str, Callable[..., PowerQuotient]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "stop_gradient": lambda a: a,
    "sqrt": lambda a: a.sqrt(),
    "log2": lambda a: a.log2(),
    "ceil_div": _bins,
}
"""Operations that are one form where their operands are."""
