"""Families: structures that share most of their operations, compiled into one program with a time and a memory of each.

Structures that differ only in their schedule, in what is sharded or in what is recomputed run the same layers. Merged,
50 structures have twice the instructions of one, are loaded once, and compute what they share once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.packed import PackedProgram
from ..codegen.rows import RowProgram
from ..codegen.store import Store
from ..common.artefacts import cache_folder, load_or_make

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ..codegen.program import Program
    from ..plans.structure import Structure
    from .evaluate import Member

APART = ("attention", "sequence_parallel", "context", "dropout", "loss_scaling")
"""Fields of a structure that change most of its operations: one program for each of their combinations."""
MOST = 64
"""Structures of one program."""


class Family(list["Member"]):
    """Members with the same numbers, of structures that have one program.

    Attributes:
        structures: those of the program, of which members with other numbers may have some; its output `time/k` is of
            the k-th.
    """

    structures: tuple[Structure, ...]


def families(members: Sequence[Member]) -> list[Family]:
    """The members by program, and by the numbers that are bound to their symbols, in the order of the search."""
    places: dict[tuple[Hashable, ...], dict[Structure, int]] = {}
    found: dict[tuple[tuple[Hashable, ...], int, int], Family] = {}
    for member in members:
        structure = member.structure
        key = tuple(getattr(structure, name) for name in APART)
        of_key = places.setdefault(key, {})
        place = of_key.setdefault(structure, len(of_key)) // MOST
        found.setdefault((key, place, id(member.scalars)), Family()).append(member)
    programs = {key: tuple(of_key) for key, of_key in places.items()}
    for (program, place, _), family in found.items():
        family.structures = programs[program][place * MOST : (place + 1) * MOST]
    return list(found.values())


def structures_of(family: Family) -> tuple[Structure, ...]:
    """The different structures of the program of a family."""
    return family.structures


@lru_cache(maxsize=64)
def program_of(structures: tuple[Structure, ...], columns: tuple[str, ...], *, memory_only: bool = False) -> RowProgram:
    """The program of some structures: from this process, from the cache folder, or built now and kept there.

    Its outputs are `memory/k`, what a device must have, and, unless only that is asked for, `time/k` of the k-th
    structure.
    """
    text = "\n".join(repr(structure) for structure in structures)
    kind = "search memory" if memory_only else "search"
    return _row_program(kind, text, columns, lambda: compile_structures(structures, memory_only=memory_only))


def _row_program(kind: str, text: str, columns: tuple[str, ...], make: Callable[[], Program]) -> RowProgram:
    packed = load_or_make(kind, text, lambda: PackedProgram.of(make()), PackedProgram.to_json, PackedProgram.from_json)
    return RowProgram(packed, columns, Store(cache_folder()))


@lru_cache(maxsize=64)
def energy_program_of(structures: tuple[Structure, ...], columns: tuple[str, ...]) -> RowProgram:
    """The program of the energies of some structures: `energy/k` is the joules of all devices of the k-th.

    They are those of FLOPs and bytes, and of static power for `busy_time`.
    """
    text = "\n".join(repr(structure) for structure in structures)

    def make() -> Program:
        from ..codegen.lower import lower
        from ..codegen.passes import prune
        from ..spending.forms import spending_forms

        forms = {f"energy/{k}": spending_forms(structure)["energy"] for k, structure in enumerate(structures)}
        return prune(lower([], forms, share=True), list(forms))

    return _row_program("search energy", text, columns, make)


def compile_structures(structures: Sequence[Structure], *, memory_only: bool = False) -> Program:
    """Compile structures together: operations and passes of equal time are one, whichever structure runs them."""
    from ..codegen.lower import lower
    from ..codegen.passes import prune
    from ..formulas.language.symbols import UNITS
    from ..operations.named_times import NamedTimes
    from ..operations.vocabulary import pad_vocabulary
    from ..train.memory.reserved import reserved
    from ..train.step.step import TrainingStep

    times = NamedTimes()
    outputs: dict[str, Any] = {}
    for k, structure in enumerate(structures):
        outputs[f"memory/{k}"] = reserved(structure, times.name)
        if not memory_only:
            outputs[f"time/{k}"] = times.of(pad_vocabulary(structure, TrainingStep(structure).tree()))
    return prune(lower(times.definitions, outputs, share=True, stand_for=UNITS), list(outputs))
