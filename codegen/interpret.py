"""The reference back end: runs a `Program` on Python floats or NumPy arrays, forward and in reverse.

Reverse mode gives the derivative of any instruction with respect to every earlier one. The derivative of `max` and
`min` is that of the branch that wins (the first of equals); `ceil_div` is differentiated as the exact quotient it
rounds, `above_one`, `stop_gradient` and `at_least` as constants.
"""

from __future__ import annotations

import heapq
import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from .program import Program

Partials = tuple[Any, ...]


@dataclass(frozen=True)
class Arithmetic:
    """How one kind of number is made, computes each operation, and is chosen where a condition holds."""

    number: Callable[[Any], Any]
    forward: dict[str, Callable[..., Any]]
    where: Callable[[Any, Any, Any], Any]


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return yes if condition else no


_SCALAR: dict[str, Callable[..., Any]] = {
    "let": lambda a: a,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "max": lambda a, b: a if a >= b else b,
    "min": lambda a, b: a if a <= b else b,
    "above_one": lambda a: 1 if a > 1 else 0,
    "stop_gradient": lambda a: a,
    "at_least": lambda a, b: 1 if a >= b else 0,
}


def floats() -> Arithmetic:
    """Python floats."""
    return Arithmetic(
        float,
        _SCALAR
        | {
            "power": operator.pow,
            "sqrt": math.sqrt,
            "log2": math.log2,
            "ceil_div": lambda a, b: float(math.ceil(a / b)),
        },
        _choose,
    )


def exact() -> Arithmetic:
    """Exact rational numbers; a root, a logarithm or a fractional power is refused."""

    def refuse(*_: Any) -> Any:
        raise ValueError("the program has operations that are not rational")

    return Arithmetic(
        Fraction,
        _SCALAR
        | {"power": refuse, "sqrt": refuse, "log2": refuse, "ceil_div": lambda a, b: Fraction(math.ceil(a / b))},
        _choose,
    )


def arrays() -> Arithmetic:
    """NumPy arrays of float64, broadcast against each other."""
    import numpy as np

    return Arithmetic(
        lambda value: np.asarray(value, dtype=np.float64),
        {
            "let": lambda a: a,
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.divide,
            "max": np.maximum,
            "min": np.minimum,
            "power": np.power,
            "sqrt": np.sqrt,
            "log2": np.log2,
            "ceil_div": lambda a, b: np.ceil(np.divide(a, b)),
            "above_one": lambda a: np.where(np.greater(a, 1), 1.0, 0.0),
            "stop_gradient": lambda a: a,
            "at_least": lambda a, b: np.where(np.greater_equal(a, b), 1.0, 0.0),
        },
        np.where,
    )


def run(program: Program, inputs: Mapping[str, Any], arithmetic: Arithmetic) -> list[Any]:
    """The value of every instruction.

    Raises:
        KeyError: an input without a value.
    """
    values: list[Any] = []
    forward = arithmetic.forward
    for operation, *operands in program.instructions:
        if operation == "input":
            values.append(arithmetic.number(inputs[operands[0]]))
        elif operation == "constant":
            values.append(arithmetic.number(operands[0]))
        else:
            values.append(forward[operation](*[values[o] for o in operands]))
    return values


def adjoints(
    program: Program, values: list[Any], seed: int, arithmetic: Arithmetic, stop: Container[int] = ()
) -> dict[int, Any]:
    """The derivative of instruction `seed` with respect to every instruction that it depends on.

    Args:
        program: the program.
        values: what `run` returned for it.
        seed: the position of the instruction to differentiate.
        arithmetic: the one that `values` were computed with.
        stop: positions through which nothing is passed on.
    """
    found: dict[int, Any] = {seed: 1.0}
    heap = [-seed]
    while heap:
        position = -heapq.heappop(heap)
        operation, *operands = program.instructions[position]
        if operation in ("input", "constant") or position in stop:
            continue
        slope = found[position]
        partials = _partials(operation, [values[o] for o in operands], values[position], arithmetic)
        for operand, partial in zip(operands, partials, strict=True):
            if partial is None:
                continue
            if operand in found:
                found[operand] = found[operand] + slope * partial
            else:
                found[operand] = slope * partial
                heapq.heappush(heap, -operand)
    return found


def _partials(operation: str, args: list[Any], value: Any, arithmetic: Arithmetic) -> Partials:
    where = arithmetic.where
    match operation:
        case "add":
            return (1.0, 1.0)
        case "subtract":
            return (1.0, -1.0)
        case "multiply":
            return (args[1], args[0])
        case "divide" | "ceil_div":
            return (1.0 / args[1], -args[0] / (args[1] * args[1]))
        case "max":
            first = where(args[0] >= args[1], 1.0, 0.0)
            return (first, 1.0 - first)
        case "min":
            first = where(args[0] <= args[1], 1.0, 0.0)
            return (first, 1.0 - first)
        case "power":
            base = where(args[0] > 0, args[0], 1.0)  # what is 0 stays 0
            return (args[1] * value / base, value * arithmetic.forward["log2"](base) * math.log(2.0))
        case "sqrt":
            root = where(value > 0, value, 1.0)
            return (0.5 * value / (root * root),)  # what is 0 stays 0
        case "log2":
            return (1.0 / (args[0] * math.log(2.0)),)
        case "let":
            return (1.0,)
        case "above_one" | "stop_gradient":
            return (None,)
        case "at_least":
            return (None, None)
    raise ValueError(f"no derivative of {operation}")
