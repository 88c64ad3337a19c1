"""Compiled inferences, kept on disk like training steps."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.artefacts import load_or_make_program
from ..operations.compiled import load_or_compile

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..operations.compiled import Compiled
    from .structure import InferenceStructure


@lru_cache(maxsize=64)
def compile_inference(structure: InferenceStructure) -> Compiled:
    """The compiled form of a structure: from this process, from the cache folder, or built now and kept there."""

    def make() -> Compiled:
        from .build import build

        return build(structure)

    return load_or_compile("inference", structure.key(), make)


def inference_memory_program(structure: InferenceStructure) -> Program:
    """A small program of "memory" and "needed" bytes, for questions that are about nothing else."""

    def make() -> Program:
        import sympy

        from ..codegen.lower import lower
        from .footprint import footprint, needed

        return lower([], {"memory": sympy.Add(*footprint(structure).values()), "needed": needed(structure)})

    return load_or_make_program("inference memory", structure.key(), make)
