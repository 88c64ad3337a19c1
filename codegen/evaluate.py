"""Runs programs on arrays and forgets each value after its last use."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from .interpret import arrays

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from .program import Program

CHUNK = 4096
HALF_ROOT = 0.7071067811865476
LOG2_SERIES = tuple(2.0 / ((2 * k + 1) * log(2.0)) for k in range(11, -1, -1))
"""Coefficients of log2((1 + r) / (1 - r)) = r (c_11 r^22 + ... + c_0), the last first."""


def log2(value: Any) -> Any:
    """The logarithm to base 2 within some units in the last place, exact at powers of two.

    Generated kernels take the same steps, so that it makes no difference what is computed where.
    """
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(value)
        low = mantissa < HALF_ROOT
        mantissa = np.where(low, mantissa * 2.0, mantissa)
        exponent = np.where(low, exponent - 1.0, exponent)
        ratio = (mantissa - 1.0) / (mantissa + 1.0)
        square = ratio * ratio
        series: Any = LOG2_SERIES[0]
        for term in LOG2_SERIES[1:]:
            series = series * square + term
        return np.where((value > 0) & (value < np.inf), ratio * series + exponent, np.log2(value))


def evaluate(
    program: Program, inputs: Mapping[str, Any], wanted: Container[int], only: Sequence[bool] | None = None
) -> dict[int, Any]:
    """The values of some instructions.

    Args:
        program: the program.
        inputs: numbers or arrays that broadcast, by name.
        wanted: positions of the instructions to return.
        only: per instruction, whether to run it at all; by default each is.
    """
    arithmetic = arrays()
    forward = {**arithmetic.forward, "log2": log2}
    last: dict[int, int] = {}
    for position, (operation, *operands) in enumerate(program.instructions):
        if operation not in ("input", "constant") and (only is None or only[position]):
            last.update(dict.fromkeys(operands, position))
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for position, (operation, *operands) in enumerate(program.instructions):
            if only is not None and not only[position]:
                continue
            if operation == "input":
                values[position] = arithmetic.number(inputs[operands[0]])
            elif operation == "constant":
                values[position] = arithmetic.number(operands[0])
            else:
                values[position] = forward[operation](*[values[o] for o in operands])
                for operand in dict.fromkeys(operands):
                    if last[operand] == position and operand not in wanted:
                        del values[operand]
    return {position: value for position, value in values.items() if position in wanted}


def outputs_at(program: Program, inputs: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The outputs of a program at scattered points, as the reference interpreter computes them.

    Args:
        program: the program; `prune` leaves only the outputs wanted.
        inputs: numbers, or an array of `count` values, by name.
        count: of points.
    """
    wanted = set(program.outputs.values())
    found: dict[str, Any] = {name: np.empty(count) for name in program.outputs}
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        part = {n: v[start:stop] if np.ndim(v) else v for n, v in inputs.items() if n in program.inputs}
        values = evaluate(program, part, wanted)
        for name, position in program.outputs.items():
            found[name][start:stop] = values[position]
    return found
