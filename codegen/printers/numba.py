"""The Numba back end: loops with explicit hoisting, vectors in rows of one scratch array.

LLVM vectorises a loop over `j` whose reads and writes are all `b[constant + j]`: their distances are known, so no
check for overlap is needed. Arithmetic is IEEE throughout, without fast-math: reassociation, reciprocals and the order
of operations are decided by passes, and a point has the same bits in a vector and alone.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..builder import operands_of
from ..loop_nest import LANES, LoopNest, choose_block, placements
from ..passes import masks
from ..store import digest
from .kernel_body import KernelBody, LoopLevel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def place_instructions(
    program: Program,
    nest: LoopNest,
    *,
    block: int | None = None,
    tabled: frozenset[Axis] = frozenset(),
    parts: Sequence[Sequence[str]] = (),
) -> KernelBody:
    """Give every instruction its place in the loops.

    Args:
        program: the program, scheduled; its outputs are what the kernel computes.
        nest: its loops.
        block: points of a block, a multiple of `loop_nest.LANES`; by default what suits the number of rows.
        tabled: outer axes, and all vector axes or none: what depends on one of these outer axes alone,
            or on the vector alone, is computed before and read from a table.
        parts: the outputs that each of the innermost loops computes; by default there is one.

    Raises:
        ValueError: an operation that the table lacks.
    """
    return _Placer(program, nest, tabled, parts or [list(program.outputs)]).body(block)


class _Placer:
    """Gives the instructions of a program their places.

    Each is computed in one of these places: before the kernel, where it depends on no axis, on one outer axis or on the
    vector alone (`outside`); inside some outer loops, once; or there for every point of a block. A value for every
    point has a row of the scratch array if another loop reads it, and else lives in a register.
    """

    def __init__(
        self, program: Program, nest: LoopNest, tabled: frozenset[Axis], parts: Sequence[Sequence[str]]
    ) -> None:
        self.program = program
        self.nest = nest
        self.depth = len(nest.outer)
        self.where: list[Placement] = placements(program, nest)
        self.outside = self._find_outside(tabled)
        self.levels = [LoopLevel() for _ in range(self.depth + 1)]
        self.parts: list[list[str]] = [[] for _ in parts]
        self.loops = [*(level.vectors for level in self.levels[:-1]), *self.parts]
        """The statements of every vector loop: one a level, and innermost one a part."""
        self.names = parts
        self.loops_of = self._find_loops()
        self.local: list[set[int]] = [set() for _ in self.loops]
        """The values that each vector loop computes itself."""
        self.loaded: set[str] = set()
        """Names of values that a vector loop has read from their row, or of reciprocals that it has computed."""
        self.row_of: dict[int, int] = {}
        self.stride = 0
        self.text: list[str] = []
        """What stands for the value of each instruction where it was computed."""
        self.functions = {"load", "store", "divide"}
        # A reciprocal is shared by the divisions by one divisor in one loop; that of a scalar costs one division.
        self.divisions = Counter(
            (loop, instruction[2])
            for loops, instruction in zip(self.loops_of, program.instructions, strict=True)
            for loop in loops
            if instruction[0] in BY_RECIPROCAL
        )
        self.scalar_divisors = {divisor for _, divisor in self.divisions if not self.where[divisor].vector}

    def _find_loops(self) -> list[list[int]]:
        """Per instruction the vector loops that compute it: in the innermost all parts that need it."""
        inside = [place.vector and found is None for place, found in zip(self.where, self.outside, strict=True)]
        needed = [[False] * len(inside) for _ in self.names]
        for part, names in zip(needed, self.names, strict=True):
            for name in names:
                part[self.program.outputs[name]] = True
            for position in range(len(inside) - 1, -1, -1):
                if part[position] and inside[position]:
                    for operand in operands_of(self.program, position):
                        part[operand] = True
        found: list[list[int]] = []
        for position, place in enumerate(self.where):
            if not inside[position]:
                found.append([])
            elif place.level < self.depth:
                found.append([place.level])
            else:
                found.append([self.depth + k for k, part in enumerate(needed) if part[position]])
        return found

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
        for loop, names in enumerate(self.names, depth):
            for name in names:
                value = self._text_of(program.outputs[name], loop)
                self.loops[loop].append(f"store(b, {results[name] * self.stride}, j{loop}, {value})")
        return KernelBody(
            program,
            self.nest,
            self.levels,
            self.parts,
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
        """Add the statement of an instruction to its level, or to the loops that compute it."""
        operation, *operands = self.program.instructions[position]
        if operation not in TABLE:
            raise ValueError(f"instruction {position}: no text for the operation {operation!r}")
        place = self.where[position]
        form = TABLE[operation]
        if not place.vector:
            self.functions.add(form.partition("(")[0])
            shown = [self.text[operand] for operand in operands]
            self.levels[place.level].scalars.append(f"v{position} = {form.format(*shown)}")
            return
        for loop in self.loops_of[position]:
            form = TABLE[operation]
            shown = [self._text_of(operand, loop) for operand in operands]
            if operation in BY_RECIPROCAL:
                shared = self._reciprocal(operands[1], loop)
                if shared:
                    form, shown = BY_RECIPROCAL[operation], [*shown, shared]
            self.functions.add(form.partition("(")[0])
            self.local[loop].add(position)
            name = self._text_of(position, loop)
            self.loops[loop].append(f"{name} = {form.format(*shown)}")
            if position in self.row_of:
                self.loops[loop].append(f"store(b, {self.row_of[position] * self.stride}, j{loop}, {name})")

    def _text_of(self, position: int, loop: int) -> str:
        """The text of a value inside a vector loop, loaded first if another loop computed it."""
        if not self.where[position].vector:
            return self.text[position]
        if position in self.local[loop]:
            return self.text[position] if loop <= self.depth else f"{self.text[position]}_{loop - self.depth}"
        name = f"r{loop}_{position}"
        if name not in self.loaded:
            self.loaded.add(name)
            self.loops[loop].append(f"{name} = load(b, {self.row_of[position] * self.stride}, j{loop})")
        return name

    def _reciprocal(self, divisor: int, loop: int) -> str:
        """The name of a divisor's reciprocal inside a vector loop; empty where a division is as quick."""
        if divisor in self.scalar_divisors:
            return f"y{divisor}"
        if self.divisions[loop, divisor] < SHARED:
            return ""
        name = f"y{loop}_{divisor}"
        if name not in self.loaded:
            self.loaded.add(name)
            self.loops[loop].append(f"{name} = divide(1.0, {self._text_of(divisor, loop)})")
        return name

    def _find_leaving(self) -> list[int]:
        """Vector instructions of the kernel that an inner loop, or the end, reads: these need a row."""
        kept: set[int] = set()
        for position, (operation, *operands) in enumerate(self.program.instructions):
            if operation not in ("input", "constant") and self.outside[position] is None:
                kept.update(o for o in operands if self.where[o].level < self.where[position].level)
        kept.update(p for p in self.program.outputs.values() if self.where[p].level < self.depth)
        return sorted(p for p in kept if self.where[p].vector and self.outside[p] is None)


def render(
    body: KernelBody,
    outputs: Sequence[str],
    constraints: Sequence[str],
    top: TopK | None,
    bounded: Mapping[str, Any] | None = None,
) -> str:
    """The text of a kernel's module.

    Args:
        body: its statements.
        outputs: what it stores of every point.
        constraints: outputs that are at least zero where a point counts.
        top: the points to keep; without it all are stored.
        bounded: with a bound, its output as "bound", those in "guards", and how often it is looked at.
    """
    more: dict[str, Any] = {"keys": [body.outputs[name] for name in outputs]}
    if top is not None:
        more = {"key": body.outputs[top.output], "sign": "-" if top.largest else ""}
    name = "numba_fill.j2" if top is None else "numba_top.j2"
    if bounded is not None:
        name = "numba_bounded.j2"
        more |= {**bounded, "bound": body.outputs[bounded["bound"]]}
        more["guards"] = [body.outputs[guard] for guard in bounded["guards"]]
    rows = [body.outputs[each] for each in constraints]
    known = {"package": __package__, "version": _version(), "lanes": LANES}
    return str(_environment().get_template(name).render(body=body, constraints=rows, **known, **more))


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
