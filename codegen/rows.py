"""A program over the rows of a table: what some of its columns alone decide is computed once for their distinct values.

The columns of a table of choices take few values each. An instruction that reads three of them has far fewer different
results than the table has rows; it is computed for these, and its results are looked up where a row needs them. Values
are those of `evaluate`, bit for bit. One table serves many programs, and no code is generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .builder import operands_of
from .evaluate import log2
from .interpret import arrays
from .passes import masks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .program import Program

    Array = np.ndarray[Any, Any]

_Step = tuple[int, "Callable[..., Any] | None", list[Any], list[int]]
"""A position, what computes it of which others (None: the column of an input), and those that are not read after it."""
BLOCK = 1 << 13
"""Rows computed together, so that their values stay in a cache."""
DENSE = 1 << 16
"""Codes up to which a table of all of them is always small."""
WIDE = 4
"""Rows to a distinct combination from which on computing the combinations alone pays for looking them up."""


class PointTable:
    """A table of scattered points, which knows the distinct combinations of any of its columns.

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
        found = [np.unique(column, return_inverse=True) for column in self.columns.values()]
        self._codes = [(code, len(values)) for values, code in found]
        self._sets: dict[int, tuple[Array, Array]] = {}
        self._links: dict[tuple[int, int], Array] = {}

    def distinct(self, mask: int) -> tuple[Array, Array]:
        """Of the columns in a mask: the combination that each row has, and a row that has each combination."""
        if mask not in self._sets:
            code, size = np.zeros(self.length, np.int64), 1
            for k, (column, values) in enumerate(self._codes):
                if mask >> k & 1:
                    code, size = _renumber(code * values + column, size * values)
            first = np.empty(size, np.int64)
            first[code[::-1]] = np.arange(self.length - 1, -1, -1)
            self._sets[mask] = code, first
        return self._sets[mask]

    def link(self, inner: int, outer: int) -> Array:
        """Of each combination of some columns, the combination of fewer of them that it contains."""
        key = inner, outer
        if key not in self._links:
            self._links[key] = self.distinct(inner)[0][self.distinct(outer)[1]]
        return self._links[key]


def _renumber(code: Array, size: int) -> tuple[Array, int]:
    """Codes below `size` as codes without gaps, in the same order, and how many there are."""
    if size > 8 * len(code) + DENSE:
        values, small = np.unique(code, return_inverse=True)
        return small, len(values)
    there = np.zeros(size, dtype=bool)
    there[code] = True
    numbers = np.cumsum(there) - 1
    return numbers[code], int(numbers[-1]) + 1 if len(code) else 0


class RowProgram:
    """A program whose inputs are the columns of tables, and scalars.

    Args:
        program: without lets.
        columns: names of the inputs that tables have; those that the program does not read do no harm.
    """

    def __init__(self, program: Program, columns: Sequence[str]) -> None:
        self.program = program
        self.columns = tuple(columns)
        self.depends = masks(program, self.columns)
        self._live: dict[tuple[str, ...], list[int]] = {}

    def positions_of(self, outputs: tuple[str, ...]) -> list[int]:
        """The positions that some outputs need, in order."""
        if outputs not in self._live:
            wanted = {self.program.outputs[name] for name in outputs}
            stack = list(wanted)
            while stack:
                new = set(operands_of(self.program, stack.pop())) - wanted
                wanted |= new
                stack.extend(new)
            self._live[outputs] = sorted(wanted)
        return self._live[outputs]

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
        needed = self.positions_of(tuple(outputs))
        narrow = {0: True}
        for mask in {self.depends[position] for position in needed} - {0}:
            narrow[mask] = len(table.distinct(mask)[1]) * WIDE <= table.length
        with np.errstate(all="ignore"):
            held = self._narrow(table, scalars, [p for p in needed if narrow[self.depends[p]]])
            code = self._code([p for p in needed if not narrow[self.depends[p]]], outputs)
            chosen = np.arange(table.length) if rows is None else rows
            for start in range(0, len(chosen), BLOCK):
                block = chosen[start : start + BLOCK]
                yield block, self._block(table, held, code, outputs, block)

    def _narrow(self, table: PointTable, scalars: Mapping[str, float], positions: Sequence[int]) -> dict[int, Any]:
        """Values by position, one for each distinct combination of the columns that the position depends on."""
        arithmetic = arrays()
        forward = {**arithmetic.forward, "log2": log2}
        held: dict[int, Any] = {}
        moved: dict[tuple[int, int], Any] = {}

        instructions, depends = self.program.instructions, self.depends

        def at(operand: int, mask: int) -> Any:
            key = operand, mask
            if key not in moved:
                moved[key] = held[operand][table.link(depends[operand], mask)]
            return moved[key]

        for position in positions:
            operation, *operands = instructions[position]
            mask = depends[position]
            if operation == "constant":
                held[position] = np.float64(operands[0])
            elif operation == "input":
                column = table.columns.get(operands[0])
                held[position] = np.float64(scalars[operands[0]]) if column is None else column[table.distinct(mask)[1]]
            else:
                there = [held[o] if depends[o] in (0, mask) else at(o, mask) for o in operands]
                held[position] = forward[operation](*there)
        return held

    def _code(self, positions: Sequence[int], outputs: Sequence[str]) -> list[_Step]:
        """Instructions of a block."""
        forward = {**arrays().forward, "log2": log2}
        instructions, depends = self.program.instructions, self.depends
        last: dict[int, int] = {}
        for position in positions:
            operation, *operands = instructions[position]
            if operation != "input":
                for operand in operands:
                    last[operand] = position
        kept = {self.program.outputs[name] for name in outputs}
        own = set(positions)
        ends: dict[int, list[int]] = {}
        for operand, position in last.items():
            if operand not in kept and (operand in own or depends[operand]):
                ends.setdefault(position, []).append(operand)
        found: list[_Step] = []
        for position in positions:
            operation, *operands = instructions[position]
            function = None if operation == "input" else forward[operation]
            found.append((position, function, operands, ends.get(position, [])))
        return found

    def _block(
        self,
        table: PointTable,
        held: Mapping[int, Any],
        code: Sequence[_Step],
        outputs: Sequence[str],
        block: Array,
    ) -> Array:
        values: dict[int, Any] = {}
        places: dict[int, Array] = {}

        def at(position: int) -> Any:
            mask = self.depends[position]
            value = held[position]
            if mask:
                if mask not in places:
                    places[mask] = table.distinct(mask)[0][block]
                value = values[position] = value[places[mask]]
            return value

        for position, function, operands, ends in code:
            if function is None:
                values[position] = table.columns[operands[0]][block]
            else:
                values[position] = function(*[values[o] if o in values else at(o) for o in operands])
            for operand in ends:
                values.pop(operand, None)
        found = np.empty((len(outputs), len(block)))
        for k, name in enumerate(outputs):
            position = self.program.outputs[name]
            found[k] = values[position] if position in values else at(position)
        return found
