"""Compiled training steps, kept on disk, so that a second prediction of a structure needs no SymPy."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.artefacts import load_or_make_program
from ..operations.compiled import load_or_compile

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..operations.compiled import Compiled
    from ..plans.structure import Structure


@lru_cache(maxsize=64)
def compile_step(structure: Structure) -> Compiled:
    """The compiled form of a structure: from this process, from the cache folder, or built now and kept there."""

    def make() -> Compiled:
        from .build import build

        return build(structure)

    return load_or_compile("training", structure.key(), make)


def memory_program(structure: Structure) -> Program:
    """A small program of the bytes "memory" and "reserved", for questions that are about nothing else."""

    def make() -> Program:
        from ..codegen.lower import lower
        from .memory.footprint import memory
        from .memory.reserved import reserved

        return lower([], {"memory": memory(structure), "reserved": reserved(structure)}, share=True)

    return load_or_make_program("memory", structure.key(), make)
