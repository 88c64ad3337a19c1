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

from ..loop_nest import LANES, LoopNest, choose_block, placements
from ..passes import masks
from ..store import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..loop_nest import Placement
    from ..passes import Axis
    from ..program import Program
    from ..reduce import TopK

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
SHARED = 3
"""Divisions by one varying divisor from which its reciprocal pays."""


@dataclass
class LoopLevel:
    """What is computed inside so many loops, before the next one.

    Attributes:
        scalars: statements run once.
        vectors: statements run for every point of the block.
    """

    scalars: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)


@dataclass
class KernelBody:
    """A kernel's statements, and where its values come from and lie.

    Attributes:
        program: what it computes.
        nest: its loops.
        levels: statements by number of loops around them.
        before: statements before all loops.
        scalars: instructions that depend on no axis; the kernel takes their values as `s`, in this order.
        tables: per outer axis the instructions of which it takes a table `t0`, `t1`, ..., a row for each point.
        columns: the instructions of which it takes a value for each point of the vector: the first rows of the
            scratch array.
        functions: names of `intrinsics` that the statements call.
        outputs: first element of the row of each output.
        rows: rows of the scratch array.
        stride: elements from row to row.
        block: points of a block.
    """

    program: Program
    nest: LoopNest
    levels: list[LoopLevel]
    before: list[str]
    scalars: list[int]
    tables: list[list[int]]
    columns: list[int]
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
        return start + 4 * len(self.nest.outer)

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
            if level.vectors:
                yield f"{' ' * start}for j{depth} in range(m):"
            for statement in level.vectors:
                yield f"{' ' * start}    {statement}"
        yield f"{' ' * start}base = {f'f{len(self.nest.outer) - 1}' if self.nest.outer else '0'}"


def place_instructions(
    program: Program, nest: LoopNest, *, block: int | None = None, tabled: frozenset[Axis] = frozenset()
) -> KernelBody:
    """Give every instruction its place in the loops.

    Args:
        program: the program, scheduled; its outputs are what the kernel computes.
        nest: its loops.
        block: points of a block, a multiple of `loop_nest.LANES`; by default what suits the number of rows.
        tabled: outer axes, and all vector axes or none: what depends on one of these outer axes alone,
            or on the vector alone, is computed before and read from a table.

    Raises:
        ValueError: an operation that the table lacks.
    """
    return _Placer(program, nest, tabled).body(block)


class _Placer:
    """Gives the instructions of a program their places.

    Each is computed in one of these places: before the kernel, where it depends on no axis, on one outer axis or on the
    vector alone (`outside`); inside some outer loops, once; or there for every point of a block. A value for every
    point has a row of the scratch array if another loop reads it, and else lives in a register.
    """

    def __init__(self, program: Program, nest: LoopNest, tabled: frozenset[Axis]) -> None:
        self.program = program
        self.nest = nest
        self.depth = len(nest.outer)
        self.where: list[Placement] = placements(program, nest)
        self.outside = self._find_outside(tabled)
        self.levels = [LoopLevel() for _ in range(self.depth + 1)]
        self.local: list[set[int]] = [set() for _ in self.levels]
        """The values that the vector loop of each level computes itself."""
        self.loaded: set[str] = set()
        """Names of values that a vector loop has read from their row, or of reciprocals that it has computed."""
        self.row_of: dict[int, int] = {}
        self.stride = 0
        self.text: list[str] = []
        """What stands for the value of each instruction where it was computed."""
        self.functions = {"load", "store", "divide"}
        # A reciprocal is shared by the divisions by one divisor in one loop; that of a scalar costs one division.
        self.divisions = Counter(
            (place.level, instruction[2])
            for place, instruction, outside in zip(self.where, program.instructions, self.outside, strict=True)
            if outside is None and place.vector and instruction[0] in BY_RECIPROCAL
        )
        self.scalar_divisors = {divisor for _, divisor in self.divisions if not self.where[divisor].vector}

    def _find_outside(self, tabled: frozenset[Axis]) -> list[int | None]:
        """Per instruction -1 where its value is a scalar, k in a table of outer axis k, the depth in a column."""
        found: list[int | None] = []
        vector = tabled.issuperset(self.nest.vector)
        alone = {1 << k: k for k, axis in enumerate(self.nest.outer) if axis in tabled}
        outer = masks(self.program, self.nest.outer)
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

    def _find_needed(self) -> list[int]:
        """Instructions that one inside the kernel, or the end, reads."""
        found = set(self.program.outputs.values())
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation not in ("input", "constant") and self.outside[position] is None:
                found.update(operands)
        return sorted(found)

    def body(self, block: int | None) -> KernelBody:
        """The statements of all levels, and where the kernel's values lie."""
        program, depth = self.program, self.depth
        # 1. What the kernel is given, by where it comes from.
        by_place: dict[int | None, list[int]] = {}
        for position in self._find_needed():
            by_place.setdefault(self.outside[position], []).append(position)
        scalars, columns = by_place.get(-1, []), by_place.get(depth, [])
        # 2. Rows of the scratch array: columns first, then what one loop leaves to another, then the results.
        for position in (*columns, *self._find_leaving()):
            self.row_of.setdefault(position, len(self.row_of))
        results = {name: len(self.row_of) + k for k, name in enumerate(program.outputs)}
        rows = len(self.row_of) + len(results)
        block = block or choose_block(rows)
        self.stride = block + LANES
        # 3. The statements, each at its level, in the order of the program.
        before = [f"v{position} = load(s, 0, {k})" for k, position in enumerate(scalars)]
        for position, (operation, *operands) in enumerate(program.instructions):
            self.text.append(repr(float(operands[0])) if operation == "constant" else f"v{position}")
            outside = self.outside[position]
            if operation != "constant" and outside is None:
                self._add_statement(position)
            if position in self.scalar_divisors:
                shared = f"y{position} = divide(1.0, {self.text[position]})"
                level = self.where[position].level
                (self.levels[level].scalars if level else before).append(shared)
        for name, position in program.outputs.items():
            value = self._text_of(position, depth)
            self.levels[-1].vectors.append(f"store(b, {results[name] * self.stride}, j{depth}, {value})")
        return KernelBody(
            program,
            self.nest,
            self.levels,
            before,
            scalars,
            [by_place.get(k, []) for k in range(depth)],
            columns,
            sorted(self.functions),
            {name: row * self.stride for name, row in results.items()},
            rows,
            self.stride,
            block,
        )

    def _add_statement(self, position: int) -> None:
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
            shown = [self._text_of(operand, place.level) for operand in operands]
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

    def _text_of(self, position: int, level: int) -> str:
        """The text of a value inside a vector loop, loaded first if another loop computed it."""
        if not self.where[position].vector or position in self.local[level]:
            return self.text[position]
        name = f"r{level}_{position}"
        if name not in self.loaded:
            self.loaded.add(name)
            self.levels[level].vectors.append(f"{name} = load(b, {self.row_of[position] * self.stride}, j{level})")
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
            self.levels[level].vectors.append(f"{name} = divide(1.0, {self._text_of(divisor, level)})")
        return name

    def _find_leaving(self) -> list[int]:
        """Vector instructions of the kernel that an inner loop, or the end, reads: these need a row."""
        kept: set[int] = set()
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation not in ("input", "constant") and self.outside[position] is None:
                kept.update(o for o in operands if self.where[o].level < self.where[position].level)
        kept.update(p for p in self.program.outputs.values() if self.where[p].level < self.depth)
        return sorted(p for p in kept if self.where[p].vector and self.outside[p] is None)


def render(body: KernelBody, outputs: Sequence[str], constraints: Sequence[str], top: TopK | None) -> str:
    """The text of a kernel's module.

    Args:
        body: its statements.
        outputs: what it stores of every point.
        constraints: outputs that are at least zero where a point counts.
        top: the points to keep; without it all are stored.
    """
    more: dict[str, Any] = {"keys": [body.outputs[name] for name in outputs]}
    if top is not None:
        more = {"key": body.outputs[top.output], "sign": "-" if top.largest else ""}
    template = _environment().get_template("numba_fill.j2" if top is None else "numba_top.j2")
    rows = [body.outputs[name] for name in constraints]
    known = {"package": __package__, "version": _version(), "lanes": LANES}
    return str(template.render(body=body, constraints=rows, **known, **more))


@cache
def bytecode_module(forms: tuple[str, ...], chunk: int) -> str:
    """The text of the module of `bytecode.py`: texts of operations in the order of their numbers."""
    template = _environment().get_template("numba_bytecode.j2")
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

    return jinja2.Environment(  # programs, not pages  # nosec B701
        loader=jinja2.PackageLoader(__package__.rpartition(".")[0], "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
