"""What a structure is compiled into: its program, and what the program's inputs and terms mean.

The program holds every term of the step as a `let`, so that one reverse pass tells how much of the step's time each
term is responsible for, and another how much each symbol is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.program import Program
from ..common.artefacts import load_or_make

if TYPE_CHECKING:
    from collections.abc import Callable

Bound = dict[str, tuple[float, str]]
"""Value and provenance of symbols, by name."""


@dataclass(frozen=True)
class Term:
    """One named term of the step: an operation, or idle time (which has no demand)."""

    path: str
    idle: bool


@dataclass(frozen=True)
class Compiled:
    """A structure's program with what its inputs and terms mean.

    Attributes:
        program: outputs are "time", "memory", metrics, "memory/..." and "term/<path>/flops|bytes|message|count".
        terms: of the step, in the order of execution.
        resources: for each input that is a rate or a latency, its resource.
    """

    program: Program
    terms: tuple[Term, ...]
    resources: dict[str, str]


def load_or_compile(kind: str, key: str, build: Callable[[], Compiled]) -> Compiled:
    """The compiled form of a structure, from the cache folder or built now and kept there.

    Args:
        kind: of the structure.
        key: the structure as canonical text.
        build: builds it.
    """
    return load_or_make(kind, key, build, _to_json, _from_json)


def _to_json(result: Compiled) -> dict[str, Any]:
    return {
        "program": result.program.to_json(),
        "terms": [[term.path, term.idle] for term in result.terms],
        "resources": result.resources,
    }


def _from_json(data: dict[str, Any]) -> Compiled:
    terms = tuple(Term(str(path), bool(idle)) for path, idle in data["terms"])
    return Compiled(Program.from_json(data["program"]), terms, dict(data["resources"]))
