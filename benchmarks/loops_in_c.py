"""The loops that a C programmer would write over a grid: what `bench_kernels.py` holds generated kernels against.

A second route from the same formulas, with nothing of the kernels' passes: values as `lower` left them, sums and
divisions as the formulas have them, each value computed in the outermost loop that knows what it reads. Loops over the
innermost axis are split by how deep they lie, so that what needs fewer of the other axes is kept in an array. A divisor
that is known further out is divided by there, once, unless the quotient is rounded up later. The rest (vectors,
registers) is the C compiler's.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf.codegen.printers.c import TABLE, number
from symperf.codegen.program import JUMPS
from symperf.codegen.store import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from symperf.codegen.program import Program

FINITE = ["-fno-math-errno", "-fno-trapping-math", "-ffinite-math-only", "-fno-signed-zeros"]
"""All of -ffast-math but -funsafe-math-optimizations: with it GCC divides by reciprocals what is rounded up, too."""
GCC = ["gcc", "-O3", "-march=native", *FINITE, "-fopenmp", "-shared", "-fPIC"]
QUICK = ["gcc", "-O0", "-fopenmp", "-shared", "-fPIC"]
"""Compiles in a tenth of the time, for results without speed."""
SEARCH = """
    long hits = 0;
    for (long j = 0; j < n{deep}; j++) hits += (({time}) < mine) & (({slack}) >= 0.0);
    if (hits)
        for (long j = 0; j < n{deep}; j++)
            if (({time}) < mine && ({slack}) >= 0.0) mine = ({time}), here = ({index}) * n{deep} + j;
"""


@dataclass
class _Depth:
    """The statements inside so many loops: one at a time, and for each point of the innermost axis."""

    single: list[str] = field(default_factory=list)
    along: list[str] = field(default_factory=list)


def write_loops(program: Program, order: Sequence[str]) -> str:
    """A C function `best` that finds the least `time` with `slack` not below 0 over a grid of all axes in `order`."""
    deep = len(order) - 1
    needed = _needed(program)
    depth, along = _places(program, order)
    rows = _rows(program, needed, depth, along)
    rounded = _rounded(program)
    depths = [_Depth() for _ in order]
    text: list[str] = [""] * len(program)
    others = [name for name in program.inputs if name not in order]
    reads = {name: f"inputs[{k}]" for k, name in enumerate(others)}
    inverse: set[int] = set()
    reads |= {name: f"a{k}[{'j' if k == deep else f'i{k}'}]" for k, name in enumerate(order)}
    for position in sorted(needed):
        operation, *operands = program.instructions[position]
        text[position] = f"v{position}"
        if operation == "constant":
            text[position] = number(operands[0])
            continue
        at = depths[depth[position]]
        if operation == "input":
            value = reads[operands[0]]
        else:
            shown = [f"r{o}[j]" if o in rows and depth[o] != depth[position] else text[o] for o in operands]
            value = TABLE[operation].format(*shown)
            if operation == "divide" and position not in rounded:
                under = operands[1]
                if (depth[under], along[under]) != (depth[position], along[position]) and under not in rows:
                    value = f"{shown[0]} * y{under}"
                    if under not in inverse:
                        inverse.add(under)
                        where = depths[depth[under]]
                        (where.along if along[under] else where.single).append(
                            f"const double y{under} = 1.0 / {text[under]};"
                        )
        (at.along if along[position] else at.single).append(f"const double v{position} = {value};")
        if position in rows:
            at.along.append(f"r{position}[j] = v{position};")
    result = {n: f"r{p}[j]" if p in rows else text[p] for n, p in program.outputs.items()}
    index = "i0"
    for k in range(1, deep):
        index = f"({index}) * n{k} + i{k}"
    arrays = "\n".join(f"double r{p}[n{deep}];" for p in sorted(rows))
    lines = [arrays, *_body(depths[0], deep)]
    for k in range(deep):
        if k == 0:
            lines.append("#pragma omp for schedule(dynamic)")
        lines.append(f"for (long i{k} = 0; i{k} < n{k}; i{k}++) {{")
        lines += _body(depths[k + 1], deep)
    lines.append(SEARCH.format(deep=deep, index=index, **result))
    lines += ["}"] * deep
    given = ", ".join(f"const double *restrict a{k}, long n{k}" for k in range(len(order)))
    return "\n".join(
        [
            "#include <math.h>",
            f"void best(const double *restrict inputs, {given}, double *time, long *where) {{",
            "double least = INFINITY; long at = -1;",
            "#pragma omp parallel",
            "{",
            "double mine = INFINITY; long here = -1;",
            *lines,
            "#pragma omp critical",
            "if (here >= 0 && (mine < least || (mine == least && here < at))) least = mine, at = here;",
            "}",
            "*time = least, *where = at;",
            "}\n",
        ]
    )


class Loops:
    """Compiled loops: a function `best` in C.

    Args:
        source: in C.
        inputs: what the function reads beside the axes, in its order.
        order: of the axes, outermost first.
        folder: where to compile.
        command: of the compiler.
    """

    def __init__(
        self, source: str, inputs: Sequence[str], order: Sequence[str], folder: Path, command: Sequence[str] = GCC
    ) -> None:
        self.inputs, self.order = tuple(inputs), tuple(order)
        stem = folder / digest(source, *command)  # a library of the same path would not be loaded again
        text, library = stem.with_suffix(".c"), stem.with_suffix(".so")
        text.write_text(source, encoding="utf-8")
        subprocess.run([*command, str(text), "-o", str(library), "-lm"], check=True)
        self._best = ctypes.CDLL(str(library)).best

    @classmethod
    def of(cls, program: Program, order: Sequence[str], folder: Path, command: Sequence[str] = GCC) -> Loops:
        """Those written of a program with the outputs `time` and `slack`."""
        inputs = [name for name in program.inputs if name not in order]
        return cls(write_loops(program, order), inputs, order, folder, command)

    def best(self, axes: Mapping[str, Any], values: Mapping[str, float]) -> tuple[float, int]:
        """The least time, and its index in the order of the loops; -1 where nothing fits."""
        double = ctypes.POINTER(ctypes.c_double)
        columns = [np.ascontiguousarray(axes[name], dtype=float) for name in self.order]
        scalars = np.array([values[name] for name in self.inputs], dtype=float)
        given: list[Any] = [scalars.ctypes.data_as(double)]
        for column in columns:
            given += [column.ctypes.data_as(double), ctypes.c_long(len(column))]
        time, where = ctypes.c_double(), ctypes.c_long()
        self._best(*given, ctypes.byref(time), ctypes.byref(where))
        return time.value, where.value


def _body(depth: _Depth, deep: int) -> list[str]:
    if not depth.along:
        return depth.single
    return [*depth.single, f"for (long j = 0; j < n{deep}; j++) {{", *depth.along, "}"]


def _needed(program: Program) -> set[int]:
    """What the outputs read."""
    found = set(program.outputs.values())
    for position in range(len(program) - 1, -1, -1):
        operation, *operands = program.instructions[position]
        if position in found and operation not in ("input", "constant"):
            found.update(operands)
    return found


def _places(program: Program, order: Sequence[str]) -> tuple[list[int], list[bool]]:
    """Per instruction the loops around it, the innermost axis aside, and whether it depends on that one."""
    depth: list[int] = []
    along: list[bool] = []
    for operation, *operands in program.instructions:
        if operation == "input":
            axis = operands[0]
            depth.append(order.index(axis) + 1 if axis in order[:-1] else 0)
            along.append(axis == order[-1])
        else:
            read = [] if operation == "constant" else operands
            depth.append(max((depth[o] for o in read), default=0))
            along.append(any(along[o] for o in read))
    return depth, along


def _rounded(program: Program) -> set[int]:
    """Values that something that jumps reads, at once or later."""
    found: set[int] = set()
    for position in range(len(program) - 1, -1, -1):
        operation, *operands = program.instructions[position]
        if operation in JUMPS or (position in found and operation not in ("input", "constant")):
            found.update(operands)
    return found


def _rows(program: Program, needed: set[int], depth: Sequence[int], along: Sequence[bool]) -> set[int]:
    """Values along the innermost axis that another of its loops reads."""
    found = {p for p in program.outputs.values() if along[p]}
    for position in needed:
        operation, *operands = program.instructions[position]
        if operation not in ("input", "constant"):
            found.update(o for o in operands if along[o] and depth[o] != depth[position])
    return found
