"""Passes: from a `Program` to a `Program`, or to a fact about each of its instructions.

A pass keeps the order of the outputs and never changes its argument. Inputs that nothing reads any more are dropped.
Axes are named inputs that loops run over.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from .builder import COMMUTATIVE, FREE, Builder, copy, eliminate_dead_code, rewrite
from .interpret import floats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .program import Program

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
