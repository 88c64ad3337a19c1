"""Many programs in one list of instructions: what several structures compute alike is written once.

Two structures of one model share most of their terms, so that a hundred of them take a few times the room of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codegen.builder import Builder
from ..codegen.program import OPERATIONS
from ..plans.grammar_forms import emit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..plans.grammar import Node

CODES = {name: chr(ord("a") + place) for place, name in enumerate(OPERATIONS)}
"""A letter for each operation, in the order of the compiler's table."""
RULE = "rule/"
"""Begins the name of an input that only rules read: a choice as a number, or a size as rules see it."""


class Pool:
    """Instructions that programs share.

    A `let` is shared where two programs give the same value the same name: as a term of either it stays an instruction
    of its own, so that its slope can be asked for.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self._lets: dict[tuple[int, str], int] = {}

    def add(self, program: Program, given: Mapping[str, int]) -> list[int]:
        """Write a program.

        Args:
            program: what is written.
            given: values here that stand for inputs of the program, by name.

        Returns:
            The position of each of its instructions.
        """
        names = {position: name for name, position in program.lets.items()}
        at: list[int] = []
        for position, (operation, *operands) in enumerate(program.instructions):
            if operation == "input":
                known = given.get(operands[0])
                at.append(self.builder.emit(operation, operands[0]) if known is None else known)
            elif operation == "constant":
                at.append(self.builder.emit(operation, *operands))
            elif operation == "let":
                at.append(self._let(at[operands[0]], names.get(position, "")))
            else:
                at.append(self.builder.emit(operation, *(at[operand] for operand in operands)))
        return at

    def _let(self, operand: int, name: str) -> int:
        found = self._lets.get((operand, name))
        if found is None:
            found = self._lets[(operand, name)] = self.builder.let(operand)
        return found

    def expression(self, node: Node, named: Mapping[str, str | int]) -> int:
        """Write an expression of the grammar; of a condition, its slack.

        Args:
            node: the expression.
            named: for names that it reads, an input or a position here that stands for it; others are rules' own.
        """
        return emit(node, _Names(self.builder, named))

    def symbols(self) -> list[str]:
        """The names of all inputs, in the order in which instructions number them."""
        return list(self.builder.program.inputs)

    def packed(self) -> dict[str, Any]:
        """The instructions as plain data.

        A letter says what each does. An operand is how far back it stands; of an input it is the number of its symbol,
        of a constant that of its value.
        """
        letters, first, second = [], [], []
        constants: dict[float, int] = {}
        symbols = {name: place for place, name in enumerate(self.symbols())}
        for position, (operation, *operands) in enumerate(self.builder.program.instructions):
            letters.append(CODES[operation])
            if operation == "input":
                pair = [symbols[operands[0]]]
            elif operation == "constant":
                pair = [constants.setdefault(float(operands[0]), len(constants))]
            else:
                pair = [position - operand for operand in operands]
            first.append(pair[0])
            second.append(pair[1] if len(pair) > 1 else 0)
        return {"operations": "".join(letters), "first": first, "second": second, "constants": list(constants)}


class _Names:
    """Names as a rule sees them."""

    def __init__(self, builder: Builder, named: Mapping[str, str | int]) -> None:
        self.builder, self.names = builder, named

    def constant(self, value: float) -> int:
        return self.builder.emit("constant", value)

    def emit(self, operation: str, *operands: int) -> int:
        return self.builder.emit(operation, *operands)

    def named(self, name: str) -> int:
        known = self.names.get(name, RULE + name)
        return known if isinstance(known, int) else self.builder.emit("input", known)
