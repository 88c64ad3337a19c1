"""One structure, compiled: its program, kept on disk so that a second prediction needs no SymPy.

The program holds every term of the step as a `let`, so that one reverse pass tells how much of the step's time each
term is responsible for, and another how much each symbol is.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .codegen.program import Program
from .codegen.store import Store, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .generation.structure import InferenceStructure
    from .structure import Structure

T = TypeVar("T")
FORMAT = "1"
"""Changes with the layout of the artefact."""


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


def compiled(structure: Structure) -> Compiled:
    """The compiled form of a structure: from this process, from the cache folder, or built now and kept there."""
    return _compiled(structure)


@lru_cache(maxsize=64)
def _compiled(structure: Structure) -> Compiled:
    def make() -> Compiled:
        from .build import build

        return build(structure)

    return kept("training", structure.key(), make, _to_json, _from_json)


@lru_cache(maxsize=64)
def compiled_inference(structure: InferenceStructure) -> Compiled:
    """The compiled form of an inference's structure, kept like that of a training step."""

    def make() -> Compiled:
        from .generation.build import build

        return build(structure)

    return kept("inference", structure.key(), make, _to_json, _from_json)


def inference_memory_program(structure: InferenceStructure) -> Program:
    """A small program with the one output "memory" of an inference."""

    def make() -> Program:
        import sympy

        from .codegen.lower import lower
        from .generation.footprint import footprint

        return lower([], {"memory": sympy.Add(*footprint(structure).values())})

    return kept("inference memory", structure.key(), make, Program.to_json, Program.from_json)


def memory_program(structure: Structure) -> Program:
    """A small program with the one output "memory", for questions that are about nothing else."""

    def make() -> Program:
        import sympy

        from .codegen.lower import lower
        from .footprint import footprint

        return lower([], {"memory": sympy.Add(*footprint(structure).values())})

    return kept("memory", structure.key(), make, Program.to_json, Program.from_json)


def kept(
    kind: str,
    text: str,
    make: Callable[[], T],
    to_json: Callable[[T], dict[str, Any]],
    from_json: Callable[[dict[str, Any]], T],
) -> T:
    """What `make` makes for `text`, from the cache folder if it is there and whole."""
    store = Store(cache_folder())
    key = digest(FORMAT, kind, text, fingerprint())
    data = store.load(key)
    if data is not None:
        try:
            return from_json(data)
        except (KeyError, TypeError, ValueError):
            pass
    result = make()
    store.save(key, to_json(result))
    return result


def cache_folder() -> Path:
    """Where compiled structures are kept: `SYMPERF_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("SYMPERF_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("symperf", appauthor=False)


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A text that changes with any source file of the package, or with the Python that runs it."""
    root = Path(__file__).parent
    files = [p for folder in (root, root / "formulas", root / "codegen") for p in folder.rglob("*.py")]
    marks = []
    for path in sorted(set(files)):
        status = path.stat()
        marks.append(f"{path.relative_to(root)}:{status.st_size}:{status.st_mtime_ns}")
    return digest(sys.version, *marks)


def _to_json(result: Compiled) -> dict[str, Any]:
    return {
        "program": result.program.to_json(),
        "terms": [[term.path, term.idle] for term in result.terms],
        "resources": result.resources,
    }


def _from_json(data: dict[str, Any]) -> Compiled:
    terms = tuple(Term(str(path), bool(idle)) for path, idle in data["terms"])
    return Compiled(Program.from_json(data["program"]), terms, dict(data["resources"]))
