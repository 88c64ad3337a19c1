"""How the outputs of a program move with quantities of a technology, proved instruction by instruction.

The rules are those of `formulas.discipline`, on a compiled program: sums, products, maxima, minima and quotients of
non-negative values keep or turn a shared direction. Two things are added.

* **Waves.** The units of a chip share its matrix rate F, so T tiles of w FLOPs take ceil(T / u) u w / F on u units,
  which is not monotone in u. Each value is tracked as u^e g; of ceil(T / u) that is e = -1 and g = ceil(T / u) u, the
  tiles that fill whole waves. Where the u that is multiplied by takes that power away, u is in nothing but such g, and
  the value never falls when they rise. For u from u_0 to u_1, ceil(T / u) u >= max(T, ceil(T / u_1) u_0), since a
  rounded-up quotient never rises with u (`corner` writes this bound).
* **Splits.** Few tiles are split into floor(u / T) = ceil((u + 1) / T) - 1 parts, which never fall with u: a value that
  never rises with them is bounded by those of u_1. Partial sums are as many as units: a value u g, g >= 0, is bounded
  by u_0 g. "Filled waves rise" stands for these two as well: fewer parts, more units.
* **Degree.** The exponent of the second in each value. A time that is of degree one in latencies and reciprocal rates
  grows by the factor by which all of these grow, so that plans keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...codegen.builder import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...codegen.builder import Builder
    from ...codegen.program import Program

LEAST_UNITS, MOST_UNITS = "least units", "most units"
"""Inputs of a corner's program: the ends of the units in a block."""
ANY = None
"""Degree of a constant 0, which is of every degree."""


@dataclass(frozen=True)
class Known:
    """What is known of a value.

    Attributes:
        rises: bit k where the value may rise when the k-th coordinate rises, the others held; of the units, when the
            filled waves do.
        falls: bit k where it may fall.
        power: exponent of the units, taken out of the value.
        degree: exponent of the second; `ANY` where every one is right.
        nonnegative: whether the value is never negative.
        homogeneous: whether it has a degree at all.
    """

    rises: int = 0
    falls: int = 0
    power: float = 0.0
    degree: float | None = 0.0
    nonnegative: bool = True
    homogeneous: bool = True


@dataclass(frozen=True)
class Directions:
    """What is proved of some outputs together.

    Attributes:
        ways: by coordinate +1 (no output ever falls when it rises), -1 (none ever rises), 0 (undecided).
        homogeneous: whether all outputs are of degree one in the second.
        leaves: positions that no coordinate reaches and that the proof takes to be non-negative.
    """

    ways: dict[str, int]
    homogeneous: bool
    leaves: tuple[int, ...]


def directions(
    program: Program,
    outputs: Sequence[str],
    degrees: Mapping[str, float],
    units: str = "",
) -> Directions:
    """The directions of some outputs in some inputs, and whether they are homogeneous.

    Args:
        program: without lets; its inputs are non-negative.
        outputs: names of the outputs.
        degrees: the inputs to judge (the coordinates), each with its exponent of the second. All others are of degree 0
            and held; what is computed from them alone is taken to be non-negative (`leaves`).
        units: the coordinate that counts the units that share a rate; it may be none of them.
    """
    names = [name for name in degrees if name in program.inputs]
    bits = {name: 1 << k for k, name in enumerate(names)}
    found: list[Known | None] = []
    leaves: set[int] = set()

    def at(position: int) -> Known:
        value = found[position]
        if value is not None:
            return value
        operation, *operands = program.instructions[position]
        if operation == "constant":
            return Known(degree=ANY if operands[0] == 0 else 0.0, nonnegative=operands[0] >= 0)
        leaves.add(position)
        return Known()

    needed = _needed_positions(program, outputs)
    for position, (operation, *operands) in enumerate(program.instructions):
        if position not in needed or operation == "constant":
            found.append(None)
        elif operation == "input":
            name = operands[0]
            if name not in bits:
                found.append(None)
                continue
            counts = name == units
            found.append(Known(0 if counts else bits[name], power=float(counts), degree=degrees[name]))
        elif all(found[operand] is None for operand in operands):
            found.append(None)
        elif operation == "ceil_div" and found[operands[0]] is None and _is_input(program, operands[1], units):
            at(operands[0])
            found.append(Known(rises=bits[units], power=-1.0))
        elif operation == "ceil_div" and found[operands[1]] is None and _is_one_more(program, operands[0], units):
            at(operands[1])
            found.append(Known(falls=bits[units]))
        else:
            found.append(_judge(operation, [at(operand) for operand in operands], bits.get(units, 0)))
    results = [_fold_units(at(program.outputs[name]), bits.get(units, 0)) for name in outputs]
    ways = {}
    for name in degrees:
        bit = bits.get(name, 0)
        rises, falls = any(r.rises & bit for r in results), any(r.falls & bit for r in results)
        ways[name] = 0 if rises and falls else -1 if falls else 1
    homogeneous = all(r.homogeneous and r.degree in (ANY, 1.0) for r in results)
    return Directions(ways, homogeneous, tuple(sorted(leaves)))


def _needed_positions(program: Program, outputs: Sequence[str]) -> set[int]:
    wanted = {program.outputs[name] for name in outputs}
    for position in range(len(program) - 1, -1, -1):
        operation, *operands = program.instructions[position]
        if position in wanted and operation not in ("input", "constant"):
            wanted.update(operands)
    return wanted


def _is_input(program: Program, position: int, name: str) -> bool:
    return bool(name) and program.instructions[position] == ("input", name)


def _is_one_more(program: Program, position: int, name: str) -> bool:
    """Whether an instruction is an input plus 1."""
    operation, *operands = program.instructions[position]
    if operation != "add" or not name:
        return False
    found = [program.instructions[operand] for operand in operands]
    return ("input", name) in found and ("constant", 1) in found


def _fold_units(value: Known, bit: int) -> Known:
    """The value without a power of the units: above 0 it rises with them; below, no direction in them is known."""
    if not value.power:
        return value
    if value.power > 0 and value.nonnegative:
        return Known(value.rises | bit, value.falls, 0.0, value.degree, True, value.homogeneous)
    return Known(value.rises | bit, value.falls | bit, 0.0, value.degree, value.nonnegative, value.homogeneous)


def _judge(operation: str, parts: list[Known], bit: int) -> Known:
    match operation:
        case "multiply":
            return _product(parts[0], parts[1], 1)
        case "divide":
            return _product(parts[0], parts[1], -1)
        case "add" | "min":
            return _join(parts[0], parts[1], bit)
        case "max":
            both = _join(parts[0], parts[1], bit)
            return replace(both, nonnegative=parts[0].nonnegative or parts[1].nonnegative)
        case "subtract":
            first, second = _fold_units(parts[0], bit), _fold_units(parts[1], bit)
            turned = Known(second.falls, second.rises, 0.0, second.degree, False, second.homogeneous)
            both = _join(first, turned, bit)
            return Known(both.rises, both.falls, 0.0, both.degree, False, both.homogeneous)
        case "ceil_div":
            whole = _fold_units(_product(parts[0], parts[1], -1), bit)
            flat = whole.homogeneous and whole.degree in (ANY, 0.0)
            return Known(whole.rises, whole.falls, 0.0, 0.0, whole.nonnegative, flat)
        case "sqrt":
            (one,) = parts
            degree = None if one.degree is None else one.degree / 2
            return Known(one.rises, one.falls, one.power / 2, degree, one.nonnegative, one.homogeneous)
        case "stop_gradient":
            return parts[0]
        case "above_one" | "log2":
            one = _fold_units(parts[0], bit)
            flat = one.homogeneous and one.degree in (ANY, 0.0)
            return Known(one.rises, one.falls, 0.0, 0.0, operation == "above_one", flat)
    every = [_fold_units(part, bit) for part in parts]
    moved = every[0].rises | every[0].falls
    for part in every[1:]:
        moved |= part.rises | part.falls
    return Known(moved, moved, 0.0, 0.0, False, False)


def _product(first: Known, second: Known, sign: int) -> Known:
    """The product, or with sign -1 the quotient; undecided where a factor may be negative."""
    rises, falls = (second.rises, second.falls) if sign > 0 else (second.falls, second.rises)
    nonnegative = first.nonnegative and second.nonnegative
    if nonnegative:
        rises, falls = first.rises | rises, first.falls | falls
    else:
        rises = falls = first.rises | first.falls | rises | falls
    zero = first.degree is None or (sign > 0 and second.degree is None)
    degree = ANY if zero else (first.degree or 0.0) + sign * (second.degree or 0.0)
    power = first.power + sign * second.power
    return Known(rises, falls, power, degree, nonnegative, first.homogeneous and second.homogeneous)


def _join(first: Known, second: Known, bit: int) -> Known:
    """The sum, maximum or minimum."""
    if first.power != second.power:
        first, second = _fold_units(first, bit), _fold_units(second, bit)
    fits = first.degree is None or second.degree is None or first.degree == second.degree
    return Known(
        first.rises | second.rises,
        first.falls | second.falls,
        first.power,
        second.degree if first.degree is None else first.degree,
        first.nonnegative and second.nonnegative,
        first.homogeneous and second.homogeneous and fits,
    )


def corner(program: Program, units: str) -> Program:
    """The program at its bound over all u from `LEAST_UNITS` to `MOST_UNITS`.

    Filled waves ceil(T / u) u and parts ceil((u + 1) / T) - 1 are at the bounds that the head of this file derives; any
    other u is the least.

    Args:
        program: one whose outputs never fall when filled waves and units rise and parts fall.
        units: the input that counts the units, which the result does not read.
    """

    def bind(builder: Builder, operation: str, operands: Sequence[Any], position: int) -> int:
        before = program.instructions[position]
        if before == ("input", units):
            return builder.emit("input", LEAST_UNITS)
        if operation == "ceil_div" and _is_input(program, before[2], units):
            tiles, count = operands
            waves = builder.emit("multiply", builder.emit("ceil_div", tiles, builder.emit("input", MOST_UNITS)), count)
            return builder.emit("divide", builder.emit("max", tiles, waves), count)
        if operation == "ceil_div" and _is_one_more(program, before[1], units):
            more = builder.emit("add", builder.emit("input", MOST_UNITS), builder.emit("constant", 1))
            return builder.emit("ceil_div", more, operands[1])
        return builder.emit(operation, *operands)

    return rewrite(program, bind)
