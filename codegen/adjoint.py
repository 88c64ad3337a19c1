"""Reverse mode: from a program to the program of its derivatives, so that every back end can compute them.

The rules are those of `interpret.adjoints`: `max` and `min` give the derivative of the branch that wins, the first of
equals; `ceil_div` is differentiated as the exact quotient that it rounds; `above_one`, `stop_gradient` and `at_least`
are constants.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .builder import Builder
from .passes import fold, masks, prune

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .program import Program

SMALLEST = 2.0**-1000
"""Stands for a base of 0, whose power has no slope in its exponent, and for the 0 whose root stays 0."""
PREFIX = "d/"
"""The partial by input `x` is the output `d/x`."""


def gradient(program: Program, output: str, inputs: Sequence[str]) -> Program:
    """The program of an output and of its partial derivatives.

    Args:
        program: the program.
        output: the output to differentiate.
        inputs: by which; one that the output does not depend on has the partial zero.

    Returns:
        A program with the outputs `output` and "d/<input>" for each input, in units of output per unit of input.

    Raises:
        KeyError: an output or an input that the program does not have.
        ValueError: the output has the name of one of the partials.
    """
    missing = [name for name in inputs if name not in program.inputs]
    if missing:
        raise KeyError(missing[0])
    if output in {PREFIX + name for name in inputs}:
        raise ValueError(f"the output {output!r} has the name of a partial derivative")
    # 1. The program itself: slopes read its values. Positions stay, as the builder has nothing to share in it.
    builder = Builder()
    smaller = prune(program, [output])
    for operation, *operands in smaller.instructions:
        builder.emit(operation, *operands)
    # 2. From the output, whose slope by itself is 1, backwards: when an instruction's turn comes, all that read it have
    #    passed their slopes on, so its own is complete. Only what depends on one of the inputs has any.
    slopes = _Slopes(builder, [mask != 0 for mask in masks(smaller, inputs)])
    seed = smaller.outputs[output]
    slopes.add(seed, builder.emit("constant", 1.0))
    for position in range(seed, -1, -1):
        slopes.pass_on(position)
    # 3. The slopes of the inputs are the partials; products with 1 and sums with 0 are folded away.
    result = builder.program
    result.outputs[output] = seed
    for name in inputs:
        slope = slopes.found.get(smaller.inputs[name]) if name in smaller.inputs else None
        result.outputs[PREFIX + name] = builder.emit("constant", 0.0) if slope is None else slope
    return prune(fold(result), list(result.outputs))


class _Slopes:
    """The derivatives of the seed by each instruction that matters, as positions in the program being written."""

    def __init__(self, builder: Builder, wanted: Sequence[bool]) -> None:
        self.builder = builder
        self.wanted = wanted
        self.found: dict[int, int] = {}

    def add(self, operand: int, slope: int) -> None:
        if self.wanted[operand]:
            known = self.found.get(operand)
            self.found[operand] = slope if known is None else self.builder.emit("add", known, slope)

    def take(self, operand: int, slope: int) -> None:
        if self.wanted[operand]:
            known = self.found.get(operand)
            start = self.builder.emit("constant", 0.0) if known is None else known
            self.found[operand] = self.builder.emit("subtract", start, slope)

    def pass_on(self, position: int) -> None:
        """Give the slope of an instruction to what it reads."""
        slope = self.found.get(position)
        if slope is None:
            return
        emit = self.builder.emit
        operation, *args = self.builder.program.instructions[position]
        match operation:
            case "input" | "constant" | "above_one" | "stop_gradient" | "at_least":
                return
            case "add":
                self.add(args[0], slope)
                self.add(args[1], slope)
            case "subtract":
                self.add(args[0], slope)
                self.take(args[1], slope)
            case "multiply":
                self.times(args[0], slope, args[1])
                self.times(args[1], slope, args[0])
            case "divide" | "ceil_div":
                # d(a/b) = da / b - (a/b) db / b
                quotient = position if operation == "divide" else emit("divide", *args)
                part = emit("divide", slope, args[1])
                self.add(args[0], part)
                if self.wanted[args[1]]:
                    self.take(args[1], emit("multiply", part, quotient))
            case "max" | "min":
                # 1 for the operand that wins, 0 for the other, as a product: no back end needs a branch.
                first = emit("at_least", *(args if operation == "max" else reversed(args)))
                won = emit("multiply", slope, first)
                self.add(args[0], won)
                if self.wanted[args[1]]:
                    self.add(args[1], emit("subtract", slope, won))
            case "power":
                # d(a^b) = b a^b / a da + a^b ln(a) db
                partial = emit("divide", emit("multiply", args[1], position), args[0])
                self.times(args[0], slope, partial)
                if self.wanted[args[1]]:
                    base = emit("max", args[0], emit("constant", SMALLEST))
                    grown = emit("multiply", emit("log2", base), emit("constant", math.log(2.0)))
                    self.times(args[1], slope, emit("multiply", position, grown))
            case "sqrt":
                # d sqrt(a) = sqrt(a) / (2 a) da: of a = 0 it is 0, not infinite
                half = emit("multiply", emit("constant", 0.5), position)
                self.times(args[0], slope, emit("divide", half, emit("max", args[0], emit("constant", SMALLEST))))
            case "log2":
                scaled = emit("multiply", args[0], emit("constant", math.log(2.0)))
                self.add(args[0], emit("divide", slope, scaled))
            case _:
                raise ValueError(f"no derivative of {operation}")

    def times(self, operand: int, slope: int, partial: int) -> None:
        if self.wanted[operand]:
            self.add(operand, self.builder.emit("multiply", slope, partial))
