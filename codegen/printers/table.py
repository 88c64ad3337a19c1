"""What the printers of every language share: a statement for each instruction of a `Program`, by a table of texts.

Each value gets a name of its own, `v` and its position, so no text ever needs parentheses; constants and inputs are
written where they are used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..program import Program

_PLAIN = re.compile(r"[A-Za-z0-9_.,/ ()=-]")


def statements(
    program: Program, table: Mapping[str, str], number: Callable[[float], str], reads: Mapping[str, str], form: str
) -> tuple[list[str], list[str]]:
    """A statement for each instruction, and the text that stands for its value.

    Args:
        program: what to print.
        table: for each operation the text of its value, with `{0}` and `{1}` for its operands.
        number: prints a constant.
        reads: for each input the text that reads it.
        form: of a statement, with `{}` for the name and `{}` for the value.

    Returns:
        Per instruction its statement, empty where it needs none (constants), and the text of its value.

    Raises:
        ValueError: an operation that the table lacks.
    """
    lines: list[str] = []
    names: list[str] = []
    for position, (operation, *operands) in enumerate(program.instructions):
        if operation == "constant":
            lines.append("")
            names.append(number(operands[0]))
            continue
        if operation == "input":
            text = reads[operands[0]]
        elif operation in table:
            text = table[operation].format(*[names[operand] for operand in operands])
        else:
            raise ValueError(f"instruction {position}: no text for the operation {operation!r}")
        names.append(f"v{position}")
        lines.append(form.format(names[-1], text))
    return lines, names


def comment(text: str) -> str:
    r"""The text as it may stand in a comment of any language: what could end the comment or its line is escaped.

    >>> print(comment("a/b */ evil();"))
    a/b \u002a/ evil()\u003b
    """
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[k : k + 2], "big") for k in range(0, len(units), 2)]
    return "".join(chr(c) if _PLAIN.fullmatch(chr(c)) else f"\\u{c:04x}" for c in codes)
