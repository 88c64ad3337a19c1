"""The compiled program of what a run spends, kept on disk like that of its time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make_program

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..infer.structure import InferenceStructure
    from ..plans.structure import Structure


@lru_cache(maxsize=32)
def spending_program(structure: Structure | InferenceStructure) -> Program:
    """The program of a structure's work and energy; built now, or from the cache folder."""

    def make() -> Program:
        from ..codegen.lower import lower
        from .forms import spending_forms

        forms: dict[str, Any] = spending_forms(structure)
        return lower([], forms, share=True)

    return load_or_make_program(f"spending {type(structure).__name__}", structure.key(), make)


@lru_cache(maxsize=1)
def bill_program() -> Program:
    """The program of power, cost and carbon from energy and time."""

    def make() -> Program:
        from ..codegen.lower import lower
        from .forms import bill_forms

        return lower([], bill_forms())

    return load_or_make_program("bill", "", make)
