"""Folders of terms: "layer/mlp" stands for all executions of every operation below it, "memory/weights" for its bytes.

A term itself, as "layer/mlp/up/forward", is one execution of an operation. A folder is what one device does below it in
the whole run: executions times the seconds of one, hidden behind other work or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operations.compiled import Compiled

MEMORY = ("memory", "reserved")
"""Bytes of tensors, and what is held beside them."""
BYTES = tuple(f"{name}/" for name in MEMORY)
"""What their paths begin with."""
DEMANDS = ("flops", "bytes")
"""What a folder can be asked for beside its seconds, before its path."""


def folder_parts(compiled: Compiled, path: str) -> list[tuple[int, int | None]]:
    """What a folder is the sum of, or several folders and terms with "+" between; empty where there is no such folder.

    Args:
        compiled: of the run.
        path: of the folder; after "flops/" its FLOPs, after "bytes/" the bytes of device memory that it moves.

    Returns:
        The position of each term in the program, and that of how often it is executed; None where it counts once.
    """
    if "+" in path:
        names = [part.strip() for part in path.split("+") if part.strip()]
        each = [_all_executions(compiled, name) or folder_parts(compiled, name) for name in names]
        return [found for parts in each for found in parts] if all(each) else []
    program, inside = compiled.program, f"{path}/"
    if path in MEMORY or path.startswith(BYTES):
        return [(at, None) for name, at in program.outputs.items() if name.startswith(inside)]
    what, _, below = path.partition("/")
    if what in DEMANDS:
        return [
            (program.outputs[key], program.outputs[f"term/{term.path}/count"])
            for term in compiled.terms
            if f"{term.path}/".startswith(f"{below}/") and (key := f"term/{term.path}/{what}") in program.outputs
        ]
    return [
        (program.lets[term.path], program.outputs.get(f"term/{term.path}/count"))
        for term in compiled.terms
        if term.path.startswith(inside)
    ]


def _all_executions(compiled: Compiled, path: str) -> list[tuple[int, int | None]]:
    """A term of a sum: all its executions."""
    program = compiled.program
    if path.startswith(BYTES) and path in program.outputs:
        return [(program.outputs[path], None)]
    return [
        (program.lets[t.path], program.outputs.get(f"term/{t.path}/count")) for t in compiled.terms if t.path == path
    ]


def folders(compiled: Compiled) -> list[str]:
    """The paths of all folders, of time and of memory."""
    memory = [name for name in compiled.program.outputs if name.startswith(BYTES)]
    return list(dict.fromkeys(_above([*(term.path for term in compiled.terms), *memory])))


def _above(paths: Iterable[str]) -> list[str]:
    return [path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"]
