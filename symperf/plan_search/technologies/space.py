"""What a search over technologies needs of a space of plans: coordinates, their directions, and units of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...plans.plan import Plan
from ...systems.system_symbols import SYMBOLS
from ...systems.units import BANDWIDTH, RATE, TIME
from ...train.binding import LIMITS, precision_of
from ..evaluate import lay_out_space
from ..family import families, program_of, structures_of
from .direction import directions
from .unit import MEMBERS, RATES, UNITS, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..evaluate import SearchSpace
    from ..space import SearchQuestion


def half_precision(question: SearchQuestion) -> str:
    """The precision that the column of rates is of."""
    return precision_of(Plan(), question.system)


def degree(name: str) -> float:
    """The exponent of the second of a quantity of a system, or of a value that a run may be given."""
    if name in RATES:
        return -1.0
    limit = SYMBOLS.get(name) or LIMITS.get(name)
    if limit is None:
        return 0.0
    return -1.0 if limit.dimension in (RATE, BANDWIDTH) else 1.0 if limit.dimension.name == TIME.name else 0.0


def apart(question: SearchQuestion, varying: Sequence[str]) -> list[str]:
    """Of some quantities those in which some time has no proved direction."""
    programs = _programs(question)

    def undecided(names: Sequence[str]) -> set[str]:
        without: set[str] = set()
        for program, count in programs:
            outputs = [f"time/{k}" for k in range(count)]
            ways = directions(program, outputs, {name: degree(name) for name in names}, UNITS).ways
            without |= {name for name, way in ways.items() if not way}
        return without

    found: set[str] = set()
    for name in varying:
        if not degree(name):  # one without a direction spoils those of others
            found |= undecided([name])
    if undecided([name for name in varying if name not in found]):
        for name in varying:
            found |= undecided([name])
    if not question.system.quantities.get("fp8_efficiency"):  # that of 16 bits stands in for it
        found |= {"matrix_efficiency"} & set(varying)
    left = [name for name in varying if name not in found]
    return sorted(found | (undecided([*left, *RATES]) & set(varying)))


def _programs(question: SearchQuestion) -> list[tuple[Any, Any]]:
    space = lay_out_space(question)
    return [
        (program_of(structures_of(group), question.columns).program, len(structures_of(group)))
        for group in families(space.members)
    ]


def units_of(space: SearchSpace, coordinates: Iterable[str], base: float) -> list[Unit]:
    """The plans of a space, by family and table.

    Args:
        space: the plans.
        coordinates: quantities that technologies differ in.
        base: the 16-bit matrix rate of the space's system.
    """
    degrees = {name: degree(name) for name in dict.fromkeys([*coordinates, *RATES])}
    found = []
    for group in families(space.members):
        structures = structures_of(group)
        program = program_of(structures, space.question.columns).program
        by_table: dict[int, list[Any]] = {}
        for member in group:
            by_table.setdefault(member.table, []).append(member)
        for number, members in by_table.items():
            legal = np.stack([member.legal for member in members])
            for start in range(0, len(members), MEMBERS):
                part = slice(start, start + MEMBERS)
                found.append(
                    Unit(
                        members[part],
                        program,
                        structures,
                        space.tables[number].columns,
                        legal[part],
                        degrees,
                        base,
                        number,
                    )
                )
    return found
