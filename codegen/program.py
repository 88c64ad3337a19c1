"""A flat, single-assignment program: what every back end reads, and nothing of SymPy is left in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OPERATIONS: dict[str, int] = {
    "input": 0,
    "constant": 0,
    "let": 1,
    "add": 2,
    "subtract": 2,
    "multiply": 2,
    "divide": 2,
    "max": 2,
    "min": 2,
    "power": 2,
    "sqrt": 1,
    "log2": 1,
    "ceil_div": 2,
    "above_one": 1,
    "stop_gradient": 1,
    "at_least": 2,
}
"""Every operation and how many operands it has. An input's argument is its name, a constant's its value; `let` is a
named identity that common-subexpression sharing never merges, so that its adjoint can be asked for. `above_one` is 1
where its operand is above 1, `at_least` where the first operand is not below the second, and both are 0 elsewhere;
`stop_gradient` is its operand, and has no derivative."""

JUMPS = frozenset({"ceil_div", "above_one", "at_least"})
"""Operations whose value jumps: a rounding of what they read can change it by a whole step."""

Instruction = tuple[Any, ...]
"""(operation, operand, ...): operands are positions of earlier instructions."""


@dataclass
class Program:
    """Instructions in order, with the positions of inputs, of named intermediate values and of outputs."""

    instructions: list[Instruction] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    lets: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instructions)

    def to_json(self) -> dict[str, Any]:
        """The program as plain lists and dictionaries."""
        return {
            "instructions": [list(i) for i in self.instructions],
            "inputs": self.inputs,
            "lets": self.lets,
            "outputs": self.outputs,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Program:
        """The program that `to_json` wrote.

        Raises:
            ValueError: an unknown operation, a wrong number or kind of operands, or an operand that is not defined yet.
        """
        program = cls([tuple(i) for i in data["instructions"]], data["inputs"], data["lets"], data["outputs"])
        program.check()
        return program

    def check(self) -> None:
        """Check that each instruction is known and reads only what comes before it.

        Raises:
            ValueError: naming the first instruction that is wrong.
        """
        for position, instruction in enumerate(self.instructions):
            if len(instruction) == 3 and OPERATIONS.get(instruction[0]) == 2:  # most are so, and there are many
                _, first, second = instruction
                if type(first) is int and type(second) is int and 0 <= first < position and 0 <= second < position:
                    continue
            operation, *operands = instruction
            if operation not in OPERATIONS:
                raise ValueError(f"instruction {position}: unknown operation {operation!r}")
            if operation in ("input", "constant"):
                kinds = (str,) if operation == "input" else (int, float)
                good = len(operands) == 1 and isinstance(operands[0], kinds)
            else:
                good = len(operands) == OPERATIONS[operation] and all(
                    isinstance(o, int) and 0 <= o < position for o in operands
                )
            if not good:
                raise ValueError(f"instruction {position}: {operation} of {operands}")
        named = [*self.inputs.values(), *self.lets.values(), *self.outputs.values()]
        if not all(0 <= position < len(self) for position in named):
            raise ValueError("a name points outside the program")

    def text(self) -> str:
        """The program, one readable line an instruction; after a semicolon the names of its value.

        >>> print(Program([("input", "x"), ("sqrt", 0)], {"x": 0}, {}, {"root": 1}).text())
        %0 = input x
        %1 = sqrt %0  ; root
        """
        names: dict[int, list[str]] = {}
        for name, position in self.outputs.items():
            names.setdefault(position, []).append(name)
        for name, position in self.lets.items():
            names.setdefault(position, []).append(f"let {name}")
        lines = []
        for position, (operation, *operands) in enumerate(self.instructions):
            leaf = operation in ("input", "constant")
            shown = str(operands[0]) if leaf else " ".join(f"%{operand}" for operand in operands)
            after = f"  ; {', '.join(names[position])}" if position in names else ""
            lines.append(f"%{position} = {operation} {shown}{after}")
        return "\n".join(lines)
