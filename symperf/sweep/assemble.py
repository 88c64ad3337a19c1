"""One program for a sweep: a structure's program with derived symbols in the place of inputs, and constraints added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen.builder import Builder
from ..codegen.passes import prune
from ..plans.grammar_forms import emit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..codegen.program import Program
    from ..plans.grammar import Node


def assemble(
    program: Program,
    outputs: Mapping[str, Node],
    derived: Mapping[str, Node],
    constraints: Mapping[str, Node],
    given: Collection[str],
) -> Program:
    """Splice expressions into a program.

    Args:
        program: of a structure.
        outputs: expressions by name, over what constraints may read.
        derived: what replaces an input, or adds a name; each may read those before it.
        constraints: conditions over inputs, derived symbols, and the program's outputs and terms.
        given: names that are inputs even where the program has an output of that name.

    Returns:
        The program of `outputs`, and of each constraint's slack under the constraint's name.
    """
    splice = _Splice(program, derived, given)
    wanted = {name: emit(node, splice) for name, node in outputs.items()}
    slacks = {name: emit(node, splice) for name, node in constraints.items()}
    made = splice.builder.program
    made.outputs = {**wanted, **slacks}
    return prune(made, list(made.outputs))


class _Splice:
    """Names as expressions see them: derived symbols first, then outputs of the program, then inputs."""

    def __init__(self, program: Program, derived: Mapping[str, Node], given: Collection[str]) -> None:
        self.given = given
        self.builder = Builder()
        self.source = program
        self.derived: dict[str, int] = {}
        self.moved: list[int] = []
        for name, node in derived.items():
            self.derived[name] = emit(node, self)
        for operation, *operands in program.instructions:
            if operation == "input":
                self.moved.append(self.input(operands[0]))
            elif operation == "constant":
                self.moved.append(self.builder.emit(operation, *operands))
            elif operation == "let":
                self.moved.append(self.moved[operands[0]])
            else:
                self.moved.append(self.builder.emit(operation, *(self.moved[o] for o in operands)))

    def constant(self, value: float) -> int:
        return self.builder.emit("constant", value)

    def emit(self, operation: str, *operands: int) -> int:
        return self.builder.emit(operation, *operands)

    def named(self, name: str) -> int:
        if self.moved and name not in self.derived and name not in self.given:
            for names in (self.source.outputs, self.source.lets):
                if name in names:
                    return self.moved[names[name]]
        return self.input(name)

    def input(self, name: str) -> int:
        return self.derived[name] if name in self.derived else self.builder.emit("input", name)
