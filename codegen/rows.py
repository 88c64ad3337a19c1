"""A program over the rows of a table, in machine code that serves every program (`row_machine`).

Values are those of `evaluate`, bit for bit but for the sign of a zero. One table serves many programs, and no code is
generated.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .evaluate import evaluate
from .packed import CONSTANT, INPUT, NAMES, PackedProgram
from .row_machine import CHUNK, COLUMN, FIELDS, NUMBERS, row_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .program import Program
    from .row_machine import RowMachine
    from .store import Store

    Array = np.ndarray[Any, Any]

BLOCK = 1 << 13
"""Rows between which a run can be stopped."""
_MACHINE = np.array([NUMBERS.get(name, -1) for name in NAMES], np.int32)
"""The machine's number of each operation; -1 of what it has not, or what it does not compute."""


class PointTable:
    """A table of scattered points.

    Args:
        columns: values by input, 1-D and of one length.

    Raises:
        ValueError: columns of different lengths, or none.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = {name: np.ascontiguousarray(column, dtype=np.float64) for name, column in columns.items()}
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns of lengths {', '.join(map(str, sorted(lengths)))}, expected one length")
        (self.length,) = lengths
        self.names = tuple(self.columns)


class RowProgram:
    """A program whose inputs are the columns of tables, and scalars.

    Args:
        program: without lets.
        columns: names of the inputs that tables have; those that the program does not read do no harm.
        store: where machine code is kept; without one NumPy computes, as it does where a general power is left.
    """

    def __init__(self, program: PackedProgram, columns: Sequence[str], store: Store | None = None) -> None:
        self.packed = program
        self.columns = tuple(columns)
        leaves = program.leaves
        self.store = None if (_MACHINE[program.operation[~leaves]] < 0).any() else store
        self._parts: dict[tuple[str, ...], Array] = {}

    @cached_property
    def program(self) -> Program:
        """The program, one instruction after another."""
        return self.packed.unpack()

    def __len__(self) -> int:
        return len(self.packed)

    def part(self, outputs: dict[str, str]) -> Program:
        """The part that some outputs need, by their new names."""
        found = {name: self.packed.outputs[old] for name, old in outputs.items()}
        return self.packed.unpack(np.flatnonzero(self.needed(tuple(outputs.values()))), found)

    def needed(self, outputs: tuple[str, ...]) -> Array:
        """Which positions some outputs need."""
        packed, found = self.packed, np.zeros(len(self.packed), np.uint8)
        found[[packed.outputs[name] for name in outputs]] = 1
        if self.store is not None:
            row_machine(self.store).mark(packed.left, packed.right, found)
        else:
            left, right = packed.left.tolist(), packed.right.tolist()
            for position in range(len(packed) - 1, -1, -1):
                if found[position]:
                    found[left[position]] = found[right[position]] = 1
        return found.astype(bool)

    def run(
        self, table: PointTable, scalars: Mapping[str, float], outputs: Sequence[str], rows: Array | None = None
    ) -> Iterator[tuple[Array, Array]]:
        """Compute some outputs at some rows, a block of rows after another.

        Args:
            table: with this program's columns.
            scalars: the other inputs.
            outputs: their names.
            rows: which rows; by default all.

        Yields:
            The rows of a block, and an array with a row for each output and a column for each row of the table.

        Raises:
            ValueError: a table with other columns.
        """
        if table.names != self.columns:
            raise ValueError(f"found columns {', '.join(table.names)}; expected {', '.join(self.columns)}")
        chosen = np.arange(table.length) if rows is None else rows
        by_machine = None if self.store is None else _Run(self, row_machine(self.store), scalars, outputs)
        for start in range(0, len(chosen), BLOCK):
            block = chosen[start : start + BLOCK]
            columns = {name: column[block] for name, column in table.columns.items()}
            yield block, by_machine(columns) if by_machine else self._by_numpy(columns, scalars, outputs)

    def _by_numpy(self, columns: Mapping[str, Array], scalars: Mapping[str, float], outputs: Sequence[str]) -> Array:
        only = self.needed(tuple(outputs))
        wanted = [self.packed.outputs[name] for name in outputs]
        values = evaluate(self.program, {**scalars, **columns}, set(wanted), only.tolist())
        found = np.empty((len(outputs), len(columns[self.columns[0]])))
        for k, position in enumerate(wanted):
            found[k] = values[position]
        return found

    @cached_property
    def code(self) -> tuple[Array, dict[int, str], Array, Array]:
        """All instructions for the machine, the inputs that are scalars by row, and rows and values of constants."""
        packed = self.packed
        code = np.empty((len(packed), FIELDS), np.int32)
        code[:, 0] = _MACHINE[packed.operation]
        code[:, 1] = packed.row
        code[:, 2] = packed.row[packed.left]
        code[:, 3] = packed.row[packed.right]
        code[:, 4] = -1
        scalars: dict[int, str] = {}
        for position, name in zip(np.flatnonzero(packed.operation == INPUT).tolist(), packed.inputs, strict=True):
            if name in self.columns:
                code[position, [0, 2]] = COLUMN, self.columns.index(name)
            else:
                scalars[position] = name
        rows = packed.row[packed.operation == CONSTANT]
        return code, scalars, rows, np.array(packed.constants, dtype=np.float64)


class _Run:
    """Some outputs of a program, at some values of its scalars."""

    def __init__(
        self, program: RowProgram, machine: RowMachine, scalars: Mapping[str, float], outputs: Sequence[str]
    ) -> None:
        self.machine, self.names = machine, program.columns
        packed, needed = program.packed, program.needed(tuple(outputs))
        code, inputs, constant_rows, constants = program.code
        self.rows = np.empty((int(packed.row.max()) + 1, CHUNK))
        self.rows[constant_rows] = constants[:, None]
        for position, name in inputs.items():
            if needed[position]:
                self.rows[packed.row[position]] = scalars[name]
        positions = list(dict.fromkeys(packed.outputs[name] for name in outputs))
        place = {position: k for k, position in enumerate(positions)}
        self.take = [place[packed.outputs[name]] for name in outputs]
        self.steps = code[needed & (code[:, 0] >= 0)]
        results = np.full(len(packed), -1, np.int32)
        results[positions] = np.arange(len(positions))
        self.steps[:, 4] = results[needed & (code[:, 0] >= 0)]
        self.same = {k: packed.row[p] for p, k in place.items() if code[p, 0] < 0}
        """Rows of results that are the same at every point."""

    def __call__(self, columns: Mapping[str, Array]) -> Array:
        """The outputs at some rows of the columns."""
        count = len(columns[self.names[0]])
        whole = -(-count // CHUNK) * CHUNK
        given = np.empty((len(self.names), whole))
        for k, name in enumerate(self.names):
            given[k, :count] = columns[name]
            given[k, count:] = columns[name][-1]
        results = np.empty((len(set(self.take)), whole))
        self.machine.run(self.steps, self.rows, given, results)
        for k, row in self.same.items():
            results[k] = self.rows[row, 0]
        return results[self.take, :count]
