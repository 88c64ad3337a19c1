"""The Numba back end: loops with explicit hoisting, vectors in rows of one scratch array.

LLVM vectorises a loop over `j` whose reads and writes are all `b[constant + j]`: their distances are known, so no
check for overlap is needed. Arithmetic is IEEE throughout, without fast-math: reassociation, reciprocals and the order
of operations are decided by passes, and a point has the same bits in a vector and alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..grid import LANES, Plan, choose_block, placements
from ..passes import masks
from ..store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..grid import Placement
    from ..program import Program

TABLE: dict[str, str] = {
    "add": "add({0}, {1})",
    "subtract": "subtract({0}, {1})",
    "multiply": "multiply({0}, {1})",
    "divide": "divide({0}, {1})",
    "max": "maximum({0}, {1})",
    "min": "minimum({0}, {1})",
    "power": "power({0}, {1})",
    "sqrt": "root({0})",
    "log2": "log2({0})",
    "ceil_div": "ceil_div({0}, {1})",
    "above_one": "above({0}, 1.0)",
    "stop_gradient": "({0} + 0.0)",
    "at_least": "at_least({0}, {1})",
}
"""Each names a function of `intrinsics`. Maxima and minima pick the second operand where they are undecided, as the
processor's own instructions do. None of the texts branches: a branch in Python costs Numba more time than the
arithmetic of a hundred statements."""


BY_RECIPROCAL = {"divide": "divide_by({0}, {1}, {2})", "ceil_div": "ceil_div_by({0}, {1}, {2})"}
"""The same quotients to the bit, given the reciprocal of the divisor."""
AHEAD = 64
"""Points ahead of those computed for which columns are asked for. Processors foresee a few streams, not fifty."""
SHARED = 3
"""Divisions by one varying divisor from which its reciprocal pays."""


@dataclass
class Level:
    """What is computed inside so many loops, before the next one.

    Attributes:
        scalars: statements run once.
        vectors: statements run for every point of the block.
    """

    scalars: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)


@dataclass
class Layout:
    """A kernel's statements, and where its values come from and lie.

    Attributes:
        program: what it computes.
        plan: its loops.
        levels: statements by number of loops around them.
        before: statements before all loops.
        scalars: instructions that depend on no axis; the kernel takes their values as `s`, in this order.
        tables: per outer axis the instructions of which it takes a table `t0`, `t1`, ..., a row for each point.
        columns: the instructions of which it takes a value for each point of the vector: the first rows of the
            scratch array, unless they are separate.
        separate: whether columns stay where they are, and the kernel takes their addresses.
        before_loops: per instruction, whether it is one of these or leads to one.
        functions: names of `intrinsics` that the statements call.
        outputs: first element of the row of each output.
        rows: rows of the scratch array.
        stride: elements from row to row.
        block: points of a block.
    """

    program: Program
    plan: Plan
    levels: list[Level]
    before: list[str]
    scalars: list[int]
    tables: list[list[int]]
    columns: list[int]
    separate: bool
    before_loops: list[bool]
    functions: list[str]
    outputs: dict[str, int]
    rows: int
    stride: int
    block: int

    @property
    def arguments(self) -> list[str]:
        """Names of the kernel's arguments, without those of the reduction."""
        tables = [f"t{k}" for k, rows in enumerate(self.tables) if rows]
        return ["lo", "hi", "b", "s", "voff", "strides", *tables, "c"]

    def indent(self, start: int) -> int:
        """Spaces before a line in the innermost loop."""
        return start + 4 * len(self.plan.outer)

    def body(self, start: int) -> Iterator[str]:
        """The lines of the loops down to the innermost vector loop, the outermost after `start` spaces."""
        for depth, level in enumerate(self.levels):
            if depth:
                k = depth - 1
                yield f"{' ' * (start - 4)}    for i{k} in range(lo[{depth}], hi[{depth}]):"
                start += 4
                before = f"f{k - 1} + " if k else ""
                yield f"{' ' * start}f{k} = {before}i{k} * strides[{k}]"
                if self.tables[k]:
                    yield f"{' ' * start}q{k} = i{k} * {len(self.tables[k])}"
                for row, position in enumerate(self.tables[k]):
                    yield f"{' ' * start}v{position} = load(t{k}, q{k}, {row})"
            for statement in level.scalars:
                yield f"{' ' * start}{statement}"
            if level.vectors and self.separate:
                for row in range(len(self.columns)):
                    yield f"{' ' * start}p{row} = c[{row}] + 8 * start"
                yield f"{' ' * start}for line in range(0, m, {LANES}):"
                start += 4
                for row in range(len(self.columns)):
                    yield f"{' ' * start}prefetch(p{row}, line + {AHEAD})"
                yield f"{' ' * start}for lane in range({LANES}):"
                yield f"{' ' * start}    j{depth} = line + lane"
            elif level.vectors:
                yield f"{' ' * start}for j{depth} in range(m):"
            for statement in level.vectors:
                yield f"{' ' * start}    {statement}"
            if level.vectors and self.separate:
                start -= 4
        yield f"{' ' * start}base = {f'f{len(self.plan.outer) - 1}' if self.plan.outer else '0'}"


def layout(
    program: Program,
    plan: Plan,
    *,
    block: int | None = None,
    tabled: frozenset[str] = frozenset(),
    separate: bool = False,
) -> Layout:
    """Place every instruction.

    Args:
        program: the program, scheduled; its outputs are what the kernel computes.
        plan: its loops.
        block: points of a block, a multiple of `grid.LANES`; by default what suits the number of rows.
        tabled: outer axes, and the names of all vector axes or none: what depends on one of these outer axes alone,
            or on the vector alone, is computed before and read from a table.
        separate: the columns stay where they are and only their addresses come. The plan has no outer loop.

    Raises:
        ValueError: an operation that the table lacks.
    """
    return _Placing(program, plan, tabled, separate=separate).layout(block)


class _Placing:
    def __init__(self, program: Program, plan: Plan, tabled: frozenset[str], *, separate: bool) -> None:
        self.program = program
        self.plan = plan
        self.separate = separate
        self.column_of: dict[int, int] = {}
        self.depth = len(plan.outer)
        self.where: list[Placement] = placements(program, plan)
        self.outside = self._outside(tabled)
        self.levels = [Level() for _ in range(self.depth + 1)]
        self.local: list[set[int]] = [set() for _ in self.levels]
        self.loaded: set[str] = set()
        self.row_of: dict[int, int] = {}
        self.stride = 0
        self.text: list[str] = []
        self.functions = {"load", "store", "divide"}
        self.divisions = Counter(
            (place.level, instruction[2])
            for place, instruction, outside in zip(self.where, program.instructions, self.outside, strict=True)
            if outside is None and place.vector and instruction[0] in BY_RECIPROCAL
        )
        self.scalar_divisors = {divisor for _, divisor in self.divisions if not self.where[divisor].vector}

    def _outside(self, tabled: frozenset[str]) -> list[int | None]:
        """Per instruction -1 where its value is a scalar, k in a table of outer axis k, the depth in a column."""
        found: list[int | None] = []
        vector = tabled.issuperset(self.plan.vector)
        alone = {1 << k: k for k, axis in enumerate(self.plan.outer) if axis in tabled}
        outer = masks(self.program, self.plan.outer)
        for (operation, *_), mask, place in zip(self.program.instructions, outer, self.where, strict=True):
            if operation == "constant":
                found.append(None)
            elif place.vector:
                found.append(self.depth if not mask and (vector or operation == "input") else None)
            elif not mask:
                found.append(-1)
            elif operation == "input":
                found.append(mask.bit_length() - 1)
            else:
                found.append(alone.get(mask))
        return found

    def _needed(self) -> list[int]:
        """Instructions that one inside the kernel, or the end, reads."""
        found = set(self.program.outputs.values())
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation not in ("input", "constant") and self.outside[position] is None:
                found.update(operands)
        return sorted(found)

    def layout(self, block: int | None) -> Layout:
        program, depth = self.program, self.depth
        by_place: dict[int | None, list[int]] = {}
        for position in self._needed():
            by_place.setdefault(self.outside[position], []).append(position)
        scalars, columns = by_place.get(-1, []), by_place.get(depth, [])
        if self.separate:
            self.column_of = {position: k for k, position in enumerate(columns)}
            self.functions |= {"fetch", "prefetch"}
        for position in (*([] if self.separate else columns), *self._leaving()):
            self.row_of.setdefault(position, len(self.row_of))
        results = {name: len(self.row_of) + k for k, name in enumerate(program.outputs)}
        rows = len(self.row_of) + len(results)
        block = block or choose_block(rows)
        self.stride = block + LANES
        before = [f"v{position} = load(s, 0, {k})" for k, position in enumerate(scalars)]
        for position, (operation, *operands) in enumerate(program.instructions):
            self.text.append(repr(float(operands[0])) if operation == "constant" else f"v{position}")
            outside = self.outside[position]
            if operation != "constant" and outside is None:
                self._statement(position)
            if position in self.scalar_divisors:
                shared = f"y{position} = divide(1.0, {self.text[position]})"
                level = self.where[position].level
                (self.levels[level].scalars if level else before).append(shared)
        for name, position in program.outputs.items():
            value = self._read(position, depth)
            self.levels[-1].vectors.append(f"store(b, {results[name] * self.stride}, j{depth}, {value})")
        return Layout(
            program,
            self.plan,
            self.levels,
            before,
            scalars,
            [by_place.get(k, []) for k in range(depth)],
            columns,
            self.separate,
            [o is not None or i[0] == "constant" for i, o in zip(program.instructions, self.outside, strict=True)],
            sorted(self.functions),
            {name: row * self.stride for name, row in results.items()},
            rows,
            self.stride,
            block,
        )

    def _statement(self, position: int) -> None:
        """Add the statement of an instruction to its level."""
        operation, *operands = self.program.instructions[position]
        if operation not in TABLE:
            raise ValueError(f"instruction {position}: no text for the operation {operation!r}")
        place = self.where[position]
        level = self.levels[place.level]
        form = TABLE[operation]
        if not place.vector:
            shown = [self.text[operand] for operand in operands]
        else:
            shown = [self._read(operand, place.level) for operand in operands]
            if operation in BY_RECIPROCAL:
                shared = self._reciprocal(operands[1], place.level)
                if shared:
                    form, shown = BY_RECIPROCAL[operation], [*shown, shared]
        self.functions.add(form.partition("(")[0])
        statement = f"v{position} = {form.format(*shown)}"
        if not place.vector:
            level.scalars.append(statement)
            return
        level.vectors.append(statement)
        self.local[place.level].add(position)
        if position in self.row_of:
            level.vectors.append(f"store(b, {self.row_of[position] * self.stride}, j{place.level}, v{position})")

    def _read(self, position: int, level: int) -> str:
        """The text of a value inside a vector loop, loaded first if another loop computed it."""
        if not self.where[position].vector or position in self.local[level]:
            return self.text[position]
        name = f"r{level}_{position}"
        if name not in self.loaded:
            self.loaded.add(name)
            if position in self.column_of:
                text = f"fetch(p{self.column_of[position]}, j{level})"
            else:
                text = f"load(b, {self.row_of[position] * self.stride}, j{level})"
            self.levels[level].vectors.append(f"{name} = {text}")
        return name

    def _reciprocal(self, divisor: int, level: int) -> str:
        """The name of a divisor's reciprocal inside a vector loop; empty where a division is as quick."""
        if divisor in self.scalar_divisors:
            return f"y{divisor}"
        if self.divisions[level, divisor] < SHARED:
            return ""
        name = f"y{level}_{divisor}"
        if name not in self.loaded:
            self.loaded.add(name)
            self.levels[level].vectors.append(f"{name} = divide(1.0, {self._read(divisor, level)})")
        return name

    def _leaving(self) -> list[int]:
        """Vector instructions of the kernel that an inner loop, or the end, reads: these need a row."""
        kept: set[int] = set()
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation not in ("input", "constant") and self.outside[position] is None:
                kept.update(o for o in operands if self.where[o].level < self.where[position].level)
        kept.update(p for p in self.program.outputs.values() if self.where[p].level < self.depth)
        return sorted(p for p in kept if self.where[p].vector and self.outside[p] is None)


def render(placed: Layout, kind: str, *, constraints: Sequence[str], **more: Any) -> str:
    """The text of a kernel's module.

    Args:
        placed: its statements.
        kind: of reduction: that of the template `numba_<kind>.j2`.
        constraints: outputs that are at least zero where a point counts.
        more: what the template asks for.
    """
    rows = [placed.outputs[name] for name in constraints]
    template = _environment().get_template(f"numba_{kind}.j2")
    known = {"package": __package__, "version": _version(), "lanes": LANES}
    return str(template.render(layout=placed, constraints=rows, **known, **more))


@cache
def steps_module(forms: tuple[str, ...], chunk: int) -> str:
    """The text of the module of `steps.py`: texts of operations in the order of their numbers."""
    template = _environment().get_template("numba_steps.j2")
    shown = [form.format("load(x, a, j)", "load(x, b, j)") for form in forms]
    functions = sorted(form.partition("(")[0] for form in forms)
    return str(template.render(package=__package__, version=_version(), forms=shown, functions=functions, chunk=chunk))


@cache
def _version() -> str:
    """A hash of the intrinsics, part of every text: object code made with older ones is never found again."""
    return digest((Path(__file__).parent / "intrinsics.py").read_text(encoding="utf-8"))[:12]


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__.rpartition(".")[0], "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
