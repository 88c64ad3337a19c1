"""Instructions of a program as text: the branch that a maximum takes, in the names of symbols and terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program

LONGEST = 160
_INFIX = {"add": (" + ", 1), "subtract": (" - ", 1), "multiply": ("*", 2), "divide": ("/", 2)}


def formula(program: Program, position: int, sides: Mapping[int, int]) -> str:
    """An instruction in symbols and terms; each maximum or minimum inside it is replaced by the branch that wins.

    Args:
        program: the program.
        position: of the instruction.
        sides: which operand wins, for the maxima and minima that are decided.

    Returns:
        At most `LONGEST` characters; a longer formula ends in dots.
    """
    names = {at: name for name, at in program.lets.items()}
    text = _text(program, position, sides, names, LONGEST)[0]
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _text(
    program: Program, position: int, sides: Mapping[int, int], names: Mapping[int, str], room: int
) -> tuple[str, int]:
    """Text, and how tightly it binds."""
    if position in names:
        return names[position], 3
    operation, *operands = program.instructions[position]
    if operation == "input":
        return str(operands[0]), 3
    if operation == "constant":
        return f"{operands[0]:.10g}", 3
    if operation in ("max", "min") and position in sides:
        return _text(program, operands[sides[position]], sides, names, room)
    if room <= 0:
        return "...", 3
    parts: list[tuple[str, int]] = []
    for operand in operands:
        parts.append(_text(program, operand, sides, names, room - sum(len(text) for text, _ in parts) - 2))
    if operation in _INFIX:
        sign, level = _INFIX[operation]
        left = parts[0][0] if parts[0][1] >= level else f"({parts[0][0]})"
        tight = level + (operation in ("subtract", "divide"))
        right = parts[1][0] if parts[1][1] >= tight else f"({parts[1][0]})"
        return left + sign + right, level
    return f"{operation}({', '.join(text for text, _ in parts)})", 3
