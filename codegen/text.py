"""A program as text and back: one instruction a line, exact to the bit.

    %0 = constant 2
    %1 = input x
    %2 = multiply %0 %1  ; double, let part

After a semicolon stand the names of the value: of outputs, and after the word `let` of named intermediate values. Names
that are not plain words are JSON strings. Where names of one kind are not in the order of their lines, a last line such
as `order outputs b, a` gives their order. Numbers are written so that they are read back exactly; the reader also takes
hexadecimal floats. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .program import OPERATIONS, Instruction, Program

KINDS = ("inputs", "lets", "outputs")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*")
_TOKEN = re.compile(r"""[ \t\r]*(?:(%[0-9]{1,18})|("(?:[^"\\]|\\.)*")|([^\s;,=%"]+)|([=;,]))""")
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_DECIMAL = re.compile(r"-?(?:[0-9]{1,400}\.[0-9]{0,400}(?:e[+-]?[0-9]{1,4})?|[0-9]{1,400}e[+-]?[0-9]{1,4}|inf)|nan")
_HEXADECIMAL = re.compile(r"-?0x[01]\.[0-9a-f]{1,13}p[+-]?[0-9]{1,4}")


def to_text(program: Program) -> str:
    """The program, one readable line an instruction.

    >>> print(to_text(Program([("input", "x"), ("sqrt", 0)], {"x": 0}, {}, {"root": 1})))
    %0 = input x
    %1 = sqrt %0  ; root
    """
    names: dict[int, list[str]] = {}
    for name, position in program.outputs.items():
        names.setdefault(position, []).append(_word(name))
    for name, position in program.lets.items():
        names.setdefault(position, []).append(f"let {_word(name)}")
    lines = []
    for position, (operation, *operands) in enumerate(program.instructions):
        if operation == "input":
            shown = _word(operands[0])
        elif operation == "constant":
            value = operands[0]
            shown = repr(float(value)) if isinstance(value, float) else repr(int(value))
        else:
            shown = " ".join(f"%{operand}" for operand in operands)
        after = f"  ; {', '.join(names[position])}" if position in names else ""
        lines.append(f"%{position} = {operation} {shown}{after}")
    for kind in KINDS:
        named: dict[str, int] = getattr(program, kind)
        if list(named.values()) != sorted(named.values()):
            lines.append(f"order {kind} {', '.join(map(_word, named))}")
    return "\n".join(lines)


def from_text(text: str) -> Program:
    """The program that `to_text` wrote.

    Raises:
        ValueError: text that is no program, with the number of the line.
    """
    program = Program()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            tokens = _tokens(line)
            if tokens[:1] == ["order"]:
                _reorder(program, tokens[1:])
            elif tokens:
                _instruction(program, tokens)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return program


def _word(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _tokens(line: str) -> list[str]:
    found = []
    at, end = 0, len(line.rstrip(" \t\r"))
    while at < end:
        match = _TOKEN.match(line, at, end)
        if match is None:
            raise ValueError(f"cannot read {line[at : at + 20].strip()!r}")
        found.append(match.group(match.lastindex or 0))
        at = match.end()
    return found


def _instruction(program: Program, tokens: list[str]) -> None:
    position = len(program)
    semicolon = tokens.index(";") if ";" in tokens else len(tokens)
    head, names = tokens[:semicolon], tokens[semicolon + 1 :]
    if head[:2] != [f"%{position}", "="]:
        raise ValueError(f"expected '%{position} = ', found {' '.join(head[:2])[:40]!r}")
    if len(head) < 3 or head[2] not in OPERATIONS:
        raise ValueError(f"unknown operation {' '.join(head[2:3])[:40]!r}")
    operation, *operands = head[2:]
    count = OPERATIONS[operation] or 1
    if len(operands) != count:
        raise ValueError(f"{operation} takes {count}, found {len(operands)}")
    instruction: Instruction
    if operation == "input":
        name = _name(operands[0])
        if name in program.inputs:
            raise ValueError(f"input {name!r} a second time")
        program.inputs[name] = position
        instruction = (operation, name)
    elif operation == "constant":
        instruction = (operation, _number(operands[0]))
    else:
        instruction = (operation, *(_earlier(operand, position) for operand in operands))
    program.instructions.append(instruction)
    if semicolon < len(tokens):
        for words in _listed(names):
            kind = program.lets if len(words) == 2 and words[0] == "let" else program.outputs
            if len(words) != 1 and kind is program.outputs:
                raise ValueError(f"cannot read the name {' '.join(words)[:40]!r}")
            _add(kind, _name(words[-1]), position)


def _reorder(program: Program, tokens: list[str]) -> None:
    if not tokens or tokens[0] not in KINDS:
        raise ValueError(f"order of {' '.join(tokens[:1])[:40]!r}; expected one of {', '.join(KINDS)}")
    names = [_name(words[0]) for words in _listed(tokens[1:]) if len(words) == 1]
    known: dict[str, int] = getattr(program, tokens[0])
    if sorted(names) != sorted(known):
        raise ValueError(f"order {tokens[0]} does not name each of them once")
    setattr(program, tokens[0], {name: known[name] for name in names})


def _listed(tokens: list[str]) -> list[list[str]]:
    """What stands between commas, none of it empty."""
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token == ",":
            groups.append([])
        else:
            groups[-1].append(token)
    if not all(groups):
        raise ValueError("a name is missing")
    return groups


def _add(named: dict[str, int], name: str, position: int) -> None:
    if name in named:
        raise ValueError(f"the name {name!r} a second time")
    named[name] = position


def _name(token: str) -> str:
    if token.startswith('"'):
        return str(json.loads(token))
    if not _PLAIN.fullmatch(token):
        raise ValueError(f"{token[:40]!r} is not a name")
    return token


def _number(token: str) -> Any:
    if _INTEGER.fullmatch(token):
        return int(token)
    if _DECIMAL.fullmatch(token):
        return float(token)
    if _HEXADECIMAL.fullmatch(token):
        return float.fromhex(token)
    raise ValueError(f"{token[:40]!r} is not a number")


def _earlier(token: str, position: int) -> int:
    if token[:1] != "%" or int(token[1:]) >= position:
        raise ValueError(f"{token[:40]!r} is not an earlier value")
    return int(token[1:])
