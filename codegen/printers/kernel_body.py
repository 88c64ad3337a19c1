"""The statements of a kernel, each at its place in the loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..loop_nest import LoopNest
    from ..program import Program


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
        levels: statements by number of loops around them, those of the innermost vector loops apart.
        parts: statements of the innermost vector loops, which run one after the other, or only where it is necessary.
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
    parts: list[list[str]]
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
        """The lines of the loops down to the first of the innermost, the outermost after `start` spaces."""
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
        for line in self.part(0):
            yield f"{' ' * start}{line}"
        yield f"{' ' * start}base = {f'f{len(self.nest.outer) - 1}' if self.nest.outer else '0'}"

    def part(self, number: int) -> Iterator[str]:
        """The lines of one of the innermost vector loops."""
        if self.parts[number]:
            yield f"for j{len(self.nest.outer) + number} in range(m):"
        for statement in self.parts[number]:
            yield f"    {statement}"
