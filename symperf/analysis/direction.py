"""Which way a program moves with a symbol: a proof over all values between two ends, instruction by instruction.

Each instruction is known by the interval of its values, which tells its sign, and by its direction. Sums of what rises
rise, products of what rises and is not negative rise, a reciprocal turns round, and so on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .subject import Subject

Interval = tuple[float, float]
Way = int | None
"""+1 never falls, -1 never rises, 0 does not depend on the symbol, None is undecided."""


def direction(subject: Subject, symbol: str, low: float, high: float) -> Way:
    """The proved direction of a subject's output in a symbol between two values."""
    ranges: list[Interval] = []
    ways: list[Way] = []
    instructions = subject.program.instructions
    for operation, *operands in instructions:
        if operation == "input":
            name = operands[0]
            ranges.append((low, high) if name == symbol else (subject.values[name],) * 2)
            ways.append(1 if name == symbol else 0)
        elif operation == "constant":
            ranges.append((float(operands[0]),) * 2)
            ways.append(0)
        else:
            args = [ranges[operand] for operand in operands]
            moves = [ways[operand] for operand in operands]
            if operation == "divide" and args[1][0] > 0 and _is_share(subject, operands):
                ranges.append((1 - 1 / args[1][0], 1 - 1 / args[1][1]))
                ways.append(moves[1])
            else:
                ranges.append(_range(operation, args))
                ways.append(_way(operation, args, moves))
    return ways[subject.position]


def _is_share(subject: Subject, operands: list[int]) -> bool:
    """Whether a quotient is (r - 1) / r, which rises with r although both its operands do."""
    operation, *inner = subject.program.instructions[operands[0]]
    if operation != "subtract" or inner[0] != operands[1]:
        return False
    return bool(subject.program.instructions[inner[1]] == ("constant", 1))


def _way(operation: str, args: list[Interval], moves: list[Way]) -> Way:
    if all(move == 0 for move in moves):
        return 0
    match operation:
        case "let" | "sqrt" | "log2" | "above_one" | "stop_gradient":
            return moves[0]
        case "add" | "max" | "min":
            return _join(moves)
        case "subtract" | "at_least":
            return _join([moves[0], _turn(moves[1], -1)])
        case "multiply":
            return _join([_turn(moves[0], _sign(args[1])), _turn(moves[1], _sign(args[0]))])
        case "divide" | "ceil_div":
            under = _sign(args[1])
            if not under or args[1][0] <= 0 <= args[1][1]:
                return None
            over = _sign(args[0])
            return _join([_turn(moves[0], under), _turn(moves[1], None if over is None else -over)])
        case "power" if moves[1] == 0 and args[0][0] >= 0:
            return _turn(moves[0], 1 if args[1][0] >= 0 else -1)
    return None


def _join(moves: list[Way]) -> Way:
    found = {move for move in moves if move != 0}
    if not found:
        return 0
    return found.pop() if len(found) == 1 else None


def _turn(move: Way, sign: int | None) -> Way:
    if move == 0 or sign == 0:
        return 0
    return None if move is None or sign is None else move * sign


def _sign(values: Interval) -> int | None:
    """Of all values of an interval: 1 where none is negative, -1 where none is positive, 0 of zero."""
    if values == (0.0, 0.0):
        return 0
    if values[0] >= 0:
        return 1
    return -1 if values[1] <= 0 else None


def _range(operation: str, args: list[Interval]) -> Interval:
    a = args[0]
    b = args[-1]
    match operation:
        case "let" | "stop_gradient":
            return a
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "subtract":
            return a[0] - b[1], a[1] - b[0]
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "multiply":
            return _hull([x * y if x and y else 0.0 for x in a for y in b])
        case "divide" | "ceil_div":
            if b[0] <= 0 <= b[1]:
                return -math.inf, math.inf
            found = _hull([x / y if x and math.isfinite(y) else 0.0 for x in a for y in b])
            return _round_outwards(found) if operation == "ceil_div" else found
        case "sqrt":
            return math.sqrt(max(a[0], 0.0)), math.sqrt(a[1])
        case "log2":
            return (math.log2(a[0]) if a[0] > 0 else -math.inf), (math.log2(a[1]) if a[1] > 0 else -math.inf)
        case "power" if a[0] > 0:
            return _hull([x**y for x in a for y in b])
        case "above_one" | "at_least":
            return 0.0, 1.0
    return -math.inf, math.inf


def _round_outwards(values: Interval) -> Interval:
    low, high = (float(math.ceil(value)) if math.isfinite(value) else value for value in values)
    return low, high


def _hull(values: list[float]) -> Interval:
    return min(values), max(values)
