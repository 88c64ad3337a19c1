"""Passes: from a `Program` to a `Program`, or to a fact about each of its instructions.

A pass keeps the order of the outputs and never changes its argument. Inputs that nothing reads any more are dropped.
Axes are named inputs that loops run over; the loops are numbered from the outermost, and an instruction of depth `k`
can be computed inside the `k` outermost loops and outside the others.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from .builder import COMMUTATIVE, FREE, Builder, live, operands_of, rewritten, unchanged
from .interpret import floats
from .program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


MAX_AXES = 12
"""The order of more axes than these is not searched: the search doubles with each."""
STEPS = frozenset({"ceil_div", "above_one", "at_least"})
"""Operations whose value jumps: what they read must be exact at the jump."""
_ARITHMETIC = floats()


def prune(program: Program, outputs: Sequence[str], *, keep_lets: bool = False) -> Program:
    """The part of a program that some of its outputs need.

    Args:
        program: the program.
        outputs: names of the outputs to keep, in the order wanted.
        keep_lets: keep each needed `let` as an instruction; otherwise its name is given to the value it stands for,
            and what differed in nothing else is shared.

    Returns:
        The smaller program; lets that no output needs are gone.

    Raises:
        KeyError: an output that the program does not have.
    """
    roots = {name: program.outputs[name] for name in outputs}
    smaller = live(Program(program.instructions, program.inputs, program.lets, roots), roots.values())
    return smaller if keep_lets else rewritten(smaller, unchanged, keep_lets=False)


def specialise(program: Program, values: Mapping[str, float]) -> Program:
    """Bind some inputs to numbers and fold what has become constant.

    Args:
        program: the program.
        values: numbers by input; names that are not inputs of the program are left aside.

    Returns:
        A program without these inputs, of the same value bit for bit in floats.
    """

    def bind(builder: Builder, operation: str, operands: Sequence[Any], position: int) -> int:
        if operation == "input" and operands[0] in values:
            return builder.emit("constant", float(values[operands[0]]))
        return _folded(builder, operation, operands, position)

    return rewritten(program, bind)


def fold(program: Program) -> Program:
    """Fold operations on constants, and identities that are exact: x*1, x+0, x-0, x/1, x**1, max(x, x), min(x, x).

    An operation that fails or overflows is left to fail where it runs.
    """
    return rewritten(program, _folded)


def dependencies(program: Program) -> list[int]:
    """Per instruction, which inputs it depends on: bit `k` for the k-th of `list(program.inputs)`."""
    return masks(program, list(program.inputs))


def masks(program: Program, axes: Sequence[str]) -> list[int]:
    """Per instruction, which axes it depends on: bit `k` for `axes[k]`."""
    bits = {axis: 1 << k for k, axis in enumerate(axes)}
    found: list[int] = []
    for operation, *operands in program.instructions:
        mask = 0
        if operation == "input":
            mask = bits.get(operands[0], 0)
        elif operation != "constant":
            for operand in operands:
                mask |= found[operand]
        found.append(mask)
    return found


def depths(program: Program, order: Sequence[str]) -> list[int]:
    """Per instruction, the number of outermost loops that it has to be inside of; 0 is before all loops."""
    return [mask.bit_length() for mask in masks(program, order)]


def choose_order(program: Program, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The order of loops, outermost first, that computes the fewest operations in all.

    The cost of an order is the sum over operations (inputs, constants and lets are free) of the product of the sizes
    of the loops around it. The search is exact. Of equal orders, the one with the longer axes further in.

    Args:
        program: the program.
        sizes: points by axis, at least one each.

    Raises:
        ValueError: more than `MAX_AXES` axes.
    """
    if len(sizes) > MAX_AXES:
        raise ValueError(f"choose_order: at most {MAX_AXES} axes, not {len(sizes)}")
    axes = sorted(sizes, key=lambda axis: -sizes[axis])
    points = [max(1, sizes[axis]) for axis in axes]
    held = [0] * (1 << len(axes))
    for (operation, *_), mask in zip(program.instructions, masks(program, axes), strict=True):
        held[mask] += operation not in FREE
    volume = [1] * len(held)
    for k, size in enumerate(points):
        for chosen in range(len(held)):
            if chosen >> k & 1:
                held[chosen] += held[chosen ^ 1 << k]
                volume[chosen] *= size
    best = [0] * len(held)
    last = [0] * len(held)
    for chosen in range(1, len(held)):
        options = []
        for k in range(len(axes)):
            if chosen >> k & 1:
                outer = chosen ^ 1 << k
                options.append((best[outer] + volume[chosen] * (held[chosen] - held[outer]), k))
        best[chosen], last[chosen] = min(options)
    order = []
    chosen = len(held) - 1
    while chosen:
        order.append(axes[last[chosen]])
        chosen ^= 1 << last[chosen]
    return tuple(reversed(order))


def order_cost(program: Program, order: Sequence[str], sizes: Mapping[str, int]) -> int:
    """Operations computed in all with the loops in this order: what `choose_order` minimises."""
    volumes = [prod(max(1, sizes[axis]) for axis in order[:depth]) for depth in range(len(order) + 1)]
    levels = zip(program.instructions, depths(program, order), strict=True)
    return sum(volumes[depth] for (operation, *_), depth in levels if operation not in FREE)


def strengthen(
    program: Program, order: Sequence[str], *, exact: Iterable[str] = (), any_order: bool = False
) -> Program:
    """Multiply by a reciprocal where the divisor is known in an outer loop.

    A quotient that reaches a `ceil_div`, a `above_one` or a `at_least` stays a true division: 525 * (1/75) is above 7.

    Args:
        program: the program.
        order: axes, outermost first.
        exact: outputs that must not change by a bit, such as those compared with zero.
        any_order: decide by the set of axes that each depends on, not by their order, so that every order of the same
            axes computes the same bits. It may take a few more operations.

    Returns:
        A program whose values differ by some units in the last place.
    """
    level = masks(program, order) if any_order else depths(program, order)
    kept = _reaching(program, exact)
    divisions = {
        position
        for position, (operation, *operands) in enumerate(program.instructions)
        if operation == "divide" and not kept[position] and level[operands[1]] != level[position]
    }

    def reciprocal(builder: Builder, operation: str, operands: Sequence[Any], position: int) -> int:
        if position not in divisions:
            return builder.emit(operation, *operands)
        one = builder.emit("constant", 1)
        return builder.emit("multiply", operands[0], builder.emit("divide", one, operands[1]))

    return rewritten(program, reciprocal)


def split(program: Program, limit: int = 600) -> list[Program]:
    """Programs of some of the outputs each, together all of them, of at most `limit` operations where that can be.

    An output joins the program with which it shares most. Outputs that need more than `limit` operations each stay
    together where they share more than half, and take along what they compute anyway.
    """
    costly = sum(1 << p for p, (operation, *_) in enumerate(program.instructions) if operation not in FREE)
    if costly.bit_count() <= limit:
        return [program]
    cones = {name: cone & costly for name, cone in _cones(program).items()}
    bins: list[tuple[int, set[str]]] = []
    for name in sorted(cones, key=lambda name: -cones[name].bit_count()):
        cone = cones[name]
        count = cone.bit_count()
        options = []
        for k, (held, _) in enumerate(bins):
            shared = (held & cone).bit_count()
            if (held | cone).bit_count() <= limit or shared == count or limit < count < 2 * shared:
                options.append((shared, -k))
        if options:
            k = -max(options)[1]
            bins[k] = (bins[k][0] | cone, bins[k][1] | {name})
        else:
            bins.append((cone, {name}))
    return [prune(program, [n for n in program.outputs if n in names], keep_lets=True) for _, names in bins]


def _folded(builder: Builder, operation: str, operands: Sequence[Any], _: int) -> int:
    """Emit an operation, or what it is known to be."""
    if operation in ("input", "constant"):
        return builder.emit(operation, *operands)
    numbers = [_number(builder.program, operand) for operand in operands]
    if None not in numbers:
        value = _computed(operation, numbers)
        if value is not None:
            return builder.emit("constant", value)
    kept = _identity(operation, operands, numbers)
    return builder.emit(operation, *operands) if kept is None else operands[kept]


def _number(program: Program, position: int) -> float | None:
    """The value of a constant, also through lets."""
    operation, operand, *_ = program.instructions[position]
    while operation == "let":
        operation, operand, *_ = program.instructions[operand]
    return float(operand) if operation == "constant" else None


def _computed(operation: str, numbers: Sequence[Any]) -> float | None:
    try:
        value = _ARITHMETIC.forward[operation](*numbers)
        return float(value) if isfinite(value) else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def _identity(operation: str, operands: Sequence[int], numbers: Sequence[float | None]) -> int | None:
    """Which operand the operation is equal to, if any."""
    if operation in ("max", "min") and operands[0] == operands[1]:
        return 0
    neutral = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0, "power": 1.0}.get(operation)
    if neutral is None:
        return None
    if numbers[1] == neutral:
        return 0
    return 1 if operation in COMMUTATIVE and numbers[0] == neutral else None


def _reaching(program: Program, exact: Iterable[str]) -> list[bool]:
    """Per instruction, whether an operation that jumps, or an exact output, depends on it."""
    reaches = [False] * len(program)
    for name in exact:
        reaches[program.outputs[name]] = True
    for position in range(len(program) - 1, -1, -1):
        if reaches[position] or program.instructions[position][0] in STEPS:
            for operand in operands_of(program, position):
                reaches[operand] = True
    return reaches


def _cones(program: Program) -> dict[str, int]:
    """Per output, the set of instructions it needs as a bit mask."""
    cones: list[int] = []
    for position in range(len(program)):
        cone = 1 << position
        for operand in operands_of(program, position):
            cone |= cones[operand]
        cones.append(cone)
    return {name: cones[position] for name, position in program.outputs.items()}
