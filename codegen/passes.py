"""Passes: from a `Program` to a `Program`, or to a fact about each of its instructions.

A pass keeps the order of the outputs and never changes its argument. Inputs that nothing reads any more are dropped.
Axes are inputs that loops run over, each its own or several together.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any

from .builder import COMMUTATIVE, FREE, Builder, copy, eliminate_dead_code, operands_of, rewrite
from .interpret import floats
from .program import JUMPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Sized

    from .program import Program

Axis = str | tuple[str, ...]
"""What varies along an axis: an input, or several inputs together, as the columns of a table do."""
MAX_AXES = 12
"""The order of more axes than these is not searched: the search doubles with each."""
_ARITHMETIC = floats()


def prune(program: Program, outputs: Sequence[str]) -> Program:
    """The part of a program that some of its outputs need.

    Args:
        program: the program.
        outputs: names of the outputs to keep, in the order wanted.

    Returns:
        The smaller program. It has no `let`: the name of one that is needed is given to the value it stands for, and
        what differed in nothing else is shared.

    Raises:
        KeyError: an output that the program does not have.
    """
    smaller = eliminate_dead_code(program, {name: program.outputs[name] for name in outputs})
    return rewrite(smaller, copy, keep_lets=False)


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
        return _emit_folded(builder, operation, operands, position)

    return rewrite(program, bind)


def fold(program: Program) -> Program:
    """Fold operations on constants, and identities that are exact: x*1, x+0, x-0, x/1, x**1, max(x, x), min(x, x).

    An operation that fails or overflows is left to fail where it runs.
    """
    return rewrite(program, _emit_folded)


def inputs_along(axis: Axis) -> tuple[str, ...]:
    """The inputs that vary along an axis."""
    return (axis,) if isinstance(axis, str) else axis


def axis_sizes(columns: Mapping[str, Sized], axes: Sequence[Axis]) -> dict[Axis, int]:
    """Points by axis, given those of each input."""
    return {axis: len(columns[inputs_along(axis)[0]]) for axis in axes}


def masks(program: Program, axes: Sequence[Axis]) -> list[int]:
    """Per instruction, which axes it depends on: bit `k` for `axes[k]`."""
    bits = {name: 1 << k for k, axis in enumerate(axes) for name in inputs_along(axis)}
    found: list[int] = []
    for instruction in program.instructions:
        if instruction[0] == "input":
            mask = bits.get(instruction[1], 0)
        elif instruction[0] == "constant":
            mask = 0
        elif len(instruction) == 3:
            mask = found[instruction[1]] | found[instruction[2]]
        else:
            mask = found[instruction[1]]
        found.append(mask)
    return found


def nonnegative(program: Program) -> list[bool]:
    """Per instruction, whether it is known not to be below zero if no input is."""
    found: list[bool] = []
    for operation, *operands in program.instructions:
        found.append(is_nonnegative(operation, operands, found))
    return found


def is_nonnegative(operation: str, operands: Sequence[Any], known: Sequence[bool]) -> bool:
    """Whether the value of an operation is known not to be below zero, from whether those of its operands are."""
    if operation in ("input", "constant"):
        return operation == "input" or operands[0] >= 0
    if operation == "max":
        return any(known[o] for o in operands)
    if operation in ("above_one", "at_least"):
        return True
    return operation not in ("subtract", "log2") and all(known[o] for o in operands)


def choose_order(program: Program, sizes: Mapping[Axis, int]) -> tuple[Axis, ...]:
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
    # `held` counts the operations that depend on just these axes, and below on these or fewer; see `loop_nest` for
    # the same search with costs.
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


def strength_reduce(program: Program, axes: Sequence[Axis], *, exact: Iterable[str] = ()) -> Program:
    """Multiply by a reciprocal where the divisor depends on fewer axes than the quotient, or divides twice or more.

    A quotient that a `ceil_div`, a `above_one`, a `at_least` or an exact output reads stays a true division: 525 *
    (1/75) is above 7.

    Args:
        program: the program, without lets.
        axes: the inputs that loops run over.
        exact: outputs that must not change by a bit.

    Returns:
        A program whose values differ by some units in the last place.
    """
    depends = masks(program, axes)
    fixed = exact_cone(program, exact)
    free = [op == "divide" and not fixed[p] for p, (op, *_) in enumerate(program.instructions)]
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
    return eliminate_dead_code(builder.program)


def exact_cone(program: Program, exact: Iterable[str] = ()) -> list[bool]:
    """Per instruction, whether an operation that jumps reads it, or an output in `exact` is it or reads it."""
    reaches = [False] * len(program)
    for name in exact:
        reaches[program.outputs[name]] = True
    for position in range(len(program) - 1, -1, -1):
        if reaches[position] or program.instructions[position][0] in JUMPS:
            for operand in operands_of(program, position):
                reaches[operand] = True
    return reaches


def _emit_folded(builder: Builder, operation: str, operands: Sequence[Any], _: int) -> int:
    """Emit an operation, or what it is known to be."""
    if operation in ("input", "constant"):
        return builder.emit(operation, *operands)
    numbers = [_number(builder.program, operand) for operand in operands]
    if None not in numbers:
        value = _compute(operation, numbers)
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


def _compute(operation: str, numbers: Sequence[Any]) -> float | None:
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
