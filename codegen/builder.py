"""Writes a `Program` instruction by instruction, each value once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Rule = Callable[["Builder", str, Sequence[Any], int], int]
    """From a builder, an operation, its operands there and its position in the old program to a new position."""

FREE = frozenset({"input", "constant", "let"})
"""Operations that cost no arithmetic."""
COMMUTATIVE = frozenset({"add", "multiply"})
"""Operations whose operands may change places without changing a bit or a derivative (a maximum's tie names one)."""


class Builder:
    """A program in the making: what is emitted twice is one instruction, except a `let`.

    Attributes:
        program: what has been written so far.
    """

    def __init__(self) -> None:
        self.program = Program()
        self._known: dict[Any, int] = {}

    def emit(self, operation: str, *operands: Any) -> int:
        """The position of an operation on earlier positions (of an input by its name, a constant by its value)."""
        key: Any = (operation, *operands)
        if operation == "constant":
            key = (*key, math.copysign(1.0, operands[0]))
        elif operation in COMMUTATIVE and operands[0] > operands[1]:
            key = (operation, operands[1], operands[0])
        position = self._known.get(key)
        if position is None:
            position = self._known[key] = self._append(operation, *operands)
            if operation == "input":
                self.program.inputs[operands[0]] = position
        return position

    def let(self, position: int) -> int:
        """A new identity of the value at `position`, never shared."""
        return self._append("let", position)

    def _append(self, operation: str, *operands: Any) -> int:
        self.program.instructions.append((operation, *operands))
        return len(self.program.instructions) - 1


def operands_of(program: Program, position: int) -> Sequence[int]:
    """The positions that an instruction reads."""
    operation, *operands = program.instructions[position]
    return () if operation in ("input", "constant") else operands


def copy(builder: Builder, operation: str, operands: Sequence[Any], _: int) -> int:
    """The rule that changes nothing but shares what has become equal."""
    return builder.emit(operation, *operands)


def rewrite(program: Program, rule: Rule, *, keep_lets: bool = True) -> Program:
    """Every instruction but lets through a rule; what is needed no more goes.

    Args:
        program: the program.
        rule: gives the new position of an instruction.
        keep_lets: keep each needed `let` as an instruction; otherwise its name is given to the value it stands for.
    """
    builder = Builder()
    at: list[int] = []
    for position, (operation, *operands) in enumerate(program.instructions):
        moved = operands if operation in ("input", "constant") else [at[operand] for operand in operands]
        if operation == "let":
            at.append(builder.let(moved[0]) if keep_lets else moved[0])
        else:
            at.append(rule(builder, operation, moved, position))
    builder.program.outputs = {name: at[position] for name, position in program.outputs.items()}
    builder.program.lets = {name: at[position] for name, position in program.lets.items()}
    return eliminate_dead_code(builder.program)


def append(builder: Builder, program: Program, inputs: Mapping[str, int]) -> list[int]:
    """Write a whole program into a builder; its names are not taken over.

    Args:
        builder: what is written to.
        program: what is written.
        inputs: values there that stand for inputs of the program, by name.

    Returns:
        The new position of every instruction.
    """
    at: list[int] = []
    for operation, *operands in program.instructions:
        if operation == "input" and operands[0] in inputs:
            at.append(inputs[operands[0]])
        elif operation == "let":
            at.append(builder.let(at[operands[0]]))
        else:
            moved = operands if operation in ("input", "constant") else [at[operand] for operand in operands]
            at.append(builder.emit(operation, *moved))
    return at


def eliminate_dead_code(program: Program, outputs: Mapping[str, int] | None = None) -> Program:
    """Without the instructions, and their names, that no output needs; inputs keep their order.

    Args:
        program: the program.
        outputs: position by name; by default those that it has, and then what its lets need stays too.
    """
    if outputs is None:
        outputs = program.outputs
        roots = [*outputs.values(), *program.lets.values()]
    else:
        roots = [*outputs.values()]
    needed = [False] * len(program)
    for root in roots:
        needed[root] = True
    for position in range(len(program) - 1, -1, -1):
        if needed[position]:
            for operand in operands_of(program, position):
                needed[operand] = True
    at: dict[int, int] = {}
    instructions = []
    for position, (operation, *operands) in enumerate(program.instructions):
        if needed[position]:
            at[position] = len(at)
            moved = operands if operation in ("input", "constant") else [at[operand] for operand in operands]
            instructions.append((operation, *moved))
    names = (program.inputs, program.lets, outputs)
    return Program(instructions, *({name: at[p] for name, p in named.items() if p in at} for named in names))
