"""A program at many points at once: values, and what each resource is responsible for in every instruction.

The part of a resource in f is the sum of its latencies' x df/dx less that of its rates'. Of a time the parts add up to
the time (Euler), so the largest is the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.interpret import adjoints, arrays
from ..codegen.passes import masks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .subject import Subject

Array = np.ndarray[Any, Any]
FORWARD = arrays().forward


@dataclass(frozen=True)
class Numbers:
    """A subject at points.

    Attributes:
        subject: what was evaluated.
        count: of the points.
        values: per instruction, a number or an array over the points.
        parts: per instruction, seconds by resource and point, of shape (resources, 1 or points); nothing where no
            resource enters.
    """

    subject: Subject
    count: int
    values: list[Any]
    parts: list[Array | None]

    def bounds(self, position: int) -> Array:
        """The index of the largest resource at every point, or -1 where the value is no time."""
        parts = self.parts[position]
        if parts is None:
            return np.full(self.count, -1)
        wide = np.broadcast_to(parts, (len(parts), self.count))
        return np.where(wide.max(axis=0) > 0, wide.argmax(axis=0), -1)

    def bound(self, position: int, point: int) -> str | None:
        """The resource that is responsible for most of an instruction at one point."""
        parts = self.parts[position]
        if parts is None:
            return None
        column = parts[:, point if parts.shape[1] > 1 else 0]
        largest = int(column.argmax())
        return self.subject.names[largest] if column[largest] > 0 else None

    def bearers(self, position: int, point: int) -> tuple[str, ...]:
        """Every resource that an instruction is due to at one point, the largest first."""
        parts = self.parts[position]
        if parts is None:
            return ()
        column = parts[:, point if parts.shape[1] > 1 else 0]
        return tuple(self.subject.names[at] for at in np.argsort(-column, kind="stable") if column[at] > 0)

    def shares(self, point: int) -> dict[str, float]:
        """Of what bears the output, by resource, at one point; empty where it is no time."""
        parts = self.parts[self.subject.bearing]
        total = self.at(self.subject.bearing, point)
        if parts is None or total == 0:
            return {}
        with np.errstate(all="ignore"):
            column = parts[:, point if parts.shape[1] > 1 else 0] / total
        if not abs(column.sum() - 1) <= 1e-6:  # of numbers beyond a double's range it is no number
            return {}
        return {name: float(share) for name, share in zip(self.subject.names, column, strict=True)}

    def all_shares(self) -> Array:
        """The same at all points, of shape (resources, points); zero where it is no time."""
        parts, shape = self.parts[self.subject.bearing], (len(self.subject.names), self.count)
        if parts is None:
            return np.zeros(shape)
        with np.errstate(all="ignore"):
            found = np.broadcast_to(parts / self.values[self.subject.bearing], shape)
            return np.where(abs(found.sum(axis=0) - 1) <= 1e-6, found, 0.0)

    def at(self, position: int, point: int) -> float:
        """The value of an instruction at one point."""
        value = self.values[position]
        return float(value if np.ndim(value) == 0 else value[point])

    def side(self, position: int) -> Any:
        """Of a maximum or minimum: 0 where its first operand wins, or equals the second, else 1; else its value."""
        operation, *operands = self.subject.program.instructions[position]
        if operation in ("above_one", "at_least"):
            return np.broadcast_to(self.values[position], (self.count,)).astype(np.int8)
        first, second = (self.values[operand] for operand in operands)
        lost = np.less(first, second) if operation == "max" else np.greater(first, second)
        return np.broadcast_to(lost, (self.count,)).astype(np.int8)

    def matters(self) -> dict[int, Any]:
        """Per instruction that the output depends on, at which points its derivative is not zero."""
        with np.errstate(all="ignore"):
            slopes = adjoints(self.subject.program, self.values, self.subject.position, arrays())
        return {at: np.broadcast_to(np.not_equal(slope, 0), (self.count,)) for at, slope in slopes.items()}


def numbers(subject: Subject, points: Mapping[str, Any]) -> Numbers:
    """A subject at points.

    Args:
        subject: the program and the values of the symbols that do not vary.
        points: arrays of one length, by symbol.
    """
    at = {name: np.asarray(value, dtype=np.float64) for name, value in points.items()}
    count = len(next(iter(points.values())))
    known, moving = _apart(subject, frozenset(points))
    values, parts = list(known.values), list(known.parts)
    for position in moving:
        _evaluate(subject, position, at, values, parts)
    return Numbers(subject, count, values, parts)


def _apart(subject: Subject, names: frozenset[str]) -> tuple[Numbers, list[int]]:
    """What does not depend on symbols, evaluated, and the positions of what does; kept with the subject."""
    found: tuple[Numbers, list[int]] | None = subject.known.get(names)
    if found is None:
        depends = masks(subject.program, sorted(names))
        values: list[Any] = [None] * len(depends)
        parts: list[Array | None] = [None] * len(depends)
        for position, mask in enumerate(depends):
            if not mask:
                _evaluate(subject, position, subject.values, values, parts)
        moving = [position for position, mask in enumerate(depends) if mask]
        found = subject.known[names] = Numbers(subject, 1, values, parts), moving
    return found


def _evaluate(
    subject: Subject, position: int, inputs: Mapping[str, Any], values: list[Any], parts: list[Array | None]
) -> None:
    """One instruction, from those before it."""
    operation, *operands = subject.program.instructions[position]
    if operation == "input":
        value = inputs[operands[0]]
        tag = np.array(subject.tag(operands[0]), dtype=float)[:, None]
        values[position] = value
        parts[position] = tag * np.atleast_1d(value) if tag.size else None
    elif operation == "constant":
        values[position] = float(operands[0])
    else:
        args = [values[operand] for operand in operands]
        with np.errstate(all="ignore"):
            values[position] = value = FORWARD[operation](*args)
            parts[position] = _parts(operation, args, [parts[operand] for operand in operands], value)


def _parts(operation: str, args: list[Any], given: list[Array | None], value: Any) -> Array | None:
    if all(part is None for part in given) or operation in ("ceil_div", "above_one", "stop_gradient", "at_least"):
        return None
    first, second = [*given, None][:2]
    match operation:
        case "let":
            return first
        case "add":
            return _sum(first, second, 1.0)
        case "subtract":
            return _sum(first, second, -1.0)
        case "multiply":
            return _sum(_times(first, args[1]), _times(second, args[0]), 1.0)
        case "divide":
            return _sum(_times(first, 1.0 / args[1]), _times(second, value / args[1]), -1.0)
        case "max" | "min":
            wins = np.atleast_1d(args[0] >= args[1] if operation == "max" else args[0] <= args[1])
            return np.where(wins, 0.0 if first is None else first, 0.0 if second is None else second)
        case "sqrt":
            return _times(first, 0.5 / value)
        case "log2":
            return _times(first, 1.0 / (args[0] * math.log(2.0)))
        case "power":
            return _times(first, args[1] * value / args[0])
    raise ValueError(f"no resources of {operation}")


def _times(part: Array | None, factor: Any) -> Array | None:
    return None if part is None else part * factor


def _sum(first: Array | None, second: Array | None, sign: float) -> Array | None:
    if second is None:
        return first
    return sign * second if first is None else first + sign * second
