"""A program as a few arrays: quick to load and to check, and what `row_machine` runs.

The row of a value is where it lies while it is read: after its last use the row holds another. What is the same at
every point, inputs and constants, has rows of its own.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .builder import operands_of
from .program import OPERATIONS, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, Any]

NAMES = tuple(OPERATIONS)
NUMBERS = {name: k for k, name in enumerate(NAMES)}
INPUT, CONSTANT = NUMBERS["input"], NUMBERS["constant"]
ARRAYS = ("operation", "left", "right", "row")


@dataclass(frozen=True, eq=False)
class PackedProgram:
    """Instructions as columns.

    Attributes:
        operation: of each instruction, its place in `program.OPERATIONS`; int32, as all columns.
        left: position of the first operand; of an input or a constant its own.
        right: likewise of the second; the first where there is one.
        row: where the value lies.
        inputs: names, in the order of their instructions.
        constants: values, likewise.
        outputs: positions by name.
    """

    operation: Array
    left: Array
    right: Array
    row: Array
    inputs: list[str]
    constants: list[float]
    outputs: dict[str, int]

    def __len__(self) -> int:
        return len(self.operation)

    @classmethod
    def of(cls, program: Program) -> PackedProgram:
        """The columns of a program; names of lets are left out."""
        read = [operands_of(program, at) or (at,) for at in range(len(program))]
        return cls(
            np.array([NUMBERS[operation] for operation, *_ in program.instructions], np.int32),
            np.array([operands[0] for operands in read], np.int32),
            np.array([operands[-1] for operands in read], np.int32),
            np.array(_rows(program, read), np.int32),
            [name for operation, name, *_ in program.instructions if operation == "input"],
            [value for operation, value, *_ in program.instructions if operation == "constant"],
            dict(program.outputs),
        )

    def to_json(self) -> dict[str, Any]:
        """The columns as text, little-endian."""
        columns = {name: base64.b64encode(getattr(self, name).astype("<i4").tobytes()).decode() for name in ARRAYS}
        return columns | {"inputs": self.inputs, "constants": self.constants, "outputs": self.outputs}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PackedProgram:
        """The program that `to_json` wrote.

        Raises:
            ValueError: columns of different lengths, an unknown operation, or an operand that is not defined yet.
        """
        operation, left, right, row = (
            np.frombuffer(base64.b64decode(data[name]), "<i4").astype(np.int32) for name in ARRAYS
        )
        found = cls(operation, left, right, row, data["inputs"], data["constants"], data["outputs"])
        found.check()
        return found

    def check(self) -> None:
        """Check that each instruction is known, reads what comes before it, and lies in a row.

        Raises:
            ValueError: saying what is wrong.
        """
        count, at = len(self), np.arange(len(self))
        if any(len(getattr(self, name)) != count for name in ARRAYS):
            raise ValueError("columns of different lengths")
        if not ((self.operation >= 0) & (self.operation < len(NAMES))).all():
            raise ValueError("an unknown operation")
        leaves = self.leaves
        for operand in (self.left, self.right):
            if not ((operand >= 0) & (operand < at + leaves)).all():
                raise ValueError("an operand that is not defined yet")
        kinds = [int(np.count_nonzero(self.operation == kind)) for kind in (INPUT, CONSTANT)]
        if kinds != [len(self.inputs), len(self.constants)]:
            raise ValueError("inputs or constants without a name or a value")
        if not ((self.row >= 0) & (self.row < count)).all():
            raise ValueError("a row outside the program")
        if not all(0 <= position < count for position in self.outputs.values()):
            raise ValueError("a name points outside the program")

    @property
    def leaves(self) -> Array:
        """Which instructions are inputs or constants."""
        return np.isin(self.operation, (INPUT, CONSTANT))

    def unpack(self, positions: Array | None = None, outputs: dict[str, int] | None = None) -> Program:
        """The program, or the part of it at some positions, which need no others.

        Args:
            positions: in rising order; by default all.
            outputs: names of positions; by default all outputs.
        """
        outputs = self.outputs if outputs is None else outputs
        every = np.arange(len(self)) if positions is None else positions
        place = np.zeros(len(self), np.int64)
        place[every] = np.arange(len(every))
        named = _leaf_values(self.operation == INPUT, self.inputs) | _leaf_values(
            self.operation == CONSTANT, self.constants
        )
        columns = self.operation[every], place[self.left[every]], place[self.right[every]], every
        program = Program(outputs={name: int(place[position]) for name, position in outputs.items()})
        for number, left, right, position in zip(*(column.tolist() for column in columns), strict=True):
            name = NAMES[number]
            if number in (INPUT, CONSTANT):
                if number == INPUT:
                    program.inputs[named[position]] = len(program.instructions)
                program.instructions.append((name, named[position]))
            else:
                program.instructions.append((name, left, right) if OPERATIONS[name] == 2 else (name, left))
        return program


def _leaf_values(which: Array, values: Sequence[Any]) -> dict[int, Any]:
    return dict(zip(np.flatnonzero(which).tolist(), values, strict=True))


def _rows(program: Program, read: Sequence[Sequence[int]]) -> list[int]:
    """Where each value lies, if all are computed in order; each may be taken away as soon as it is there."""
    leaves = [operation in ("input", "constant") for operation, *_ in program.instructions]
    last: dict[int, int] = {}
    for position in range(len(program) - 1, -1, -1):
        for operand in read[position]:
            last.setdefault(operand, position)
    rows, free, used = [0] * len(program), list[int](), 0
    for position in range(len(program)):
        operands = () if leaves[position] else tuple(dict.fromkeys(read[position]))
        free += [rows[operand] for operand in operands if last[operand] == position and not leaves[operand]]
        if leaves[position] or not free:
            rows[position], used = used, used + 1
        else:
            rows[position] = free.pop()
        if position not in last:
            free.append(rows[position])
    return rows
