"""Runs a part of a program over few points: an instruction after the other in compiled code that knows no program.

A kernel's scalars, the tables of its axes and the outputs of the points that it found are some hundred operations on
short arrays. In NumPy each takes a microsecond whatever its length; here it takes some nanoseconds, and the compiled
code is the same for all programs. The values are those of `evaluate`, bit for bit where no general power is left.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiling import load_function
from .passes import inputs_along, masks
from .printers.numba import bytecode_module

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from .passes import Axis
    from .program import Program
    from .store import Store

    Array = np.ndarray[Any, Any]

OPERATIONS = {
    "add": "add({0}, {1})",
    "subtract": "subtract({0}, {1})",
    "multiply": "multiply({0}, {1})",
    "divide": "divide({0}, {1})",
    "max": "largest({0}, {1})",
    "min": "smallest({0}, {1})",
    "power": "power({0}, {1})",
    "sqrt": "root({0})",
    "log2": "log2({0})",
    "ceil_div": "ceil_div({0}, {1})",
    "above_one": "above({0}, 1.0)",
    "stop_gradient": "add({0}, 0.0)",
    "at_least": "at_least({0}, {1})",
}
"""Texts of the operations, as `printers.numba.TABLE`, but undefined operands of a maximum make it undefined."""
CHUNK = 256
"""Points computed together, so that their rows stay in a cache."""
NUMBERS = {operation: k for k, operation in enumerate(OPERATIONS)}


class Bytecode:
    """The instructions that some values need, in rows that are used again after the last use of what they hold.

    Args:
        program: the program, without lets.
        wanted: positions of the values to compute, each once.
        given: positions of the values that are known; inputs are too.
    """

    def __init__(self, program: Program, wanted: Sequence[int], given: Collection[int] = ()) -> None:
        self.wanted = list(wanted)
        needed = set(wanted)
        last = dict.fromkeys(wanted, len(program))
        for position in range(len(program) - 1, -1, -1):
            operation, *operands = program.instructions[position]
            if position in needed and position not in given and operation not in ("input", "constant"):
                for operand in operands:
                    last.setdefault(operand, position)
                needed.update(operands)
        self.inputs: list[tuple[int, str]] = []
        self.given: list[tuple[int, int]] = []
        self.constants: list[tuple[int, float]] = []
        outside = [p for p in sorted(needed) if p in given or program.instructions[p][0] in ("input", "constant")]
        row = {position: k for k, position in enumerate(outside)}
        for position, k in row.items():
            operation, operand, *_ = program.instructions[position]
            if position in given:
                self.given.append((k, position))
            elif operation == "input":
                self.inputs.append((k, operand))
            else:
                self.constants.append((k, float(operand)))
        self.rows = len(row)
        free: list[int] = []
        code = []
        for position in sorted(needed - set(outside)):
            operation, *operands = program.instructions[position]
            read = [row[operand] for operand in operands]
            if not free:
                free.append(self.rows)
                self.rows += 1
            row[position] = free.pop()  # before those of the operands: loops are quick where rows differ
            free += [row[o] for o in dict.fromkeys(operands) if last[o] == position]
            code.append([NUMBERS[operation], row[position], read[0], read[-1]])
        self.code: Array = np.array(code, dtype=np.int64).reshape(-1, 4)
        self._placed: tuple[int, Array] = (1, self.code.ravel())
        self.results = [row[position] for position in self.wanted]

    def run(
        self, kernel: Any, shape: tuple[int, ...], inputs: Mapping[str, Any], given: Mapping[int, Any] | None = None
    ) -> Array:
        """The values wanted.

        Args:
            kernel: the compiled code, see `bytecode_machine`.
            shape: of each of them.
            inputs: numbers, or arrays that broadcast to the shape, by name.
            given: the same by position, of the values known.

        Returns:
            An array with a row of this shape for each.
        """
        count = prod(shape)
        x: Array = np.empty((self.rows, *shape))
        for row, name in self.inputs:
            x[row] = inputs[name]
        for row, position in self.given:
            assert given is not None
            x[row] = given[position]
        for row, value in self.constants:
            x[row] = value
        if self._placed[0] != count:
            self._placed = (count, (self.code * np.array([1, count, count, count])).ravel())
        kernel(self._placed[1], x.reshape(-1), count)
        return x[self.results]


class LoopInvariants:
    """Values by the set of axes that they depend on: each set once, over its own points only.

    Args:
        program: the program, without lets.
        axes: the inputs that vary.
        wanted: positions of the values to compute, no constants.
    """

    def __init__(self, program: Program, axes: Sequence[Axis], wanted: Iterable[int]) -> None:
        self.axes = tuple(axes)
        self.depends = masks(program, axes)
        found = set(wanted)
        shared = set(found)
        for position in range(len(program) - 1, -1, -1):
            operation, *operands = program.instructions[position]
            if position in found and operation not in ("input", "constant"):
                found.update(operands)
                shared.update(
                    operand
                    for operand in operands
                    if self.depends[operand] != self.depends[position]
                    and program.instructions[operand][0] not in ("input", "constant")
                )
        inputs = [position for position in shared if program.instructions[position][0] == "input"]
        self.inputs: dict[int, str] = {position: program.instructions[position][1] for position in inputs}
        by_mask: dict[int, list[int]] = {}
        for position in sorted(shared - set(inputs)):
            by_mask.setdefault(self.depends[position], []).append(position)
        self.parts = [
            (mask, Bytecode(program, by_mask[mask], {p for p in shared if self.depends[p] != mask}))
            for mask in sorted(by_mask, key=int.bit_count)
        ]

    def run(self, kernel: Any, columns: Mapping[str, Array], scalars: Mapping[str, Any]) -> dict[int, Array]:
        """By position the values wanted, with a dimension for each axis that they depend on, in the order given."""
        found = {p: columns[name] if name in columns else np.array(scalars[name]) for p, name in self.inputs.items()}
        for mask, steps in self.parts:
            along = [inputs_along(axis) for k, axis in enumerate(self.axes) if mask >> k & 1]
            shape = tuple(len(columns[names[0]]) for names in along)
            inputs = dict(scalars)
            for k, names in enumerate(along):
                lie = [-1 if k == other else 1 for other in range(len(along))]
                inputs |= {name: columns[name].reshape(lie) for name in names}
            given = {p: self._broadcast(found[p], self.depends[p], mask) for _, p in steps.given}
            found.update(zip(steps.wanted, steps.run(kernel, shape, inputs, given), strict=True))
        return found

    def _broadcast(self, value: Array, inside: int, mask: int) -> Array:
        """A view with a dimension for each axis of a larger set."""
        if not inside or inside == mask:
            return value
        sizes = iter(value.shape)
        each = [k for k in range(len(self.axes)) if mask >> k & 1]
        return value.reshape([next(sizes) if inside >> k & 1 else 1 for k in each])


def bytecode_machine(store: Store) -> Any:
    """The compiled code, from a store."""
    module = store.module(bytecode_module(tuple(OPERATIONS.values()), CHUNK))
    return load_function(module, "kernel", (np.empty(0, np.int64), np.empty(0), 0))
