"""What follows a comparison: changes taken together, what each side is near a crossing, what fits, what is skipped."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .cross import BAND, SHOWN
from .laws import law
from .measures import spell

if TYPE_CHECKING:
    from .cross import Cross


def notes(cross: Cross) -> list[str]:
    """All sentences about a comparison."""
    told = [f"Of {cross.over}, {cross.found.told}."] if cross.found is not None and cross.found.told else []
    return [*_flickers(cross), *told, *_laws(cross), *_unfit(cross), *_reasons(cross.over, cross.skipped)]


def _flickers(cross: Cross) -> list[str]:
    found = []
    for each in sorted((*cross.crossings, *cross.flickers), key=lambda each: each.low):
        if each.changes > 1:
            span = f"{spell(cross.over, each.low)} and {spell(cross.over, each.at)}"
            found.append(
                f"Between {cross.over} {span} the lead changes {each.changes} times while the two differ by less than "
                f"{BAND:.0%}; {each.then or 'neither'} leads after it."
            )
    more = [f"So it is in {len(found) - SHOWN} more places."] if len(found) > SHOWN else []
    return found[:SHOWN] + more


def _laws(cross: Cross) -> list[str]:
    """What each side is near the first crossing along a real symbol."""
    if cross.whole or not cross.crossings or cross.crossings[0].at <= 0:
        return []
    at, sides = cross.crossings[0].at, [side for side in (cross.a, cross.b) if side.faithful]
    found = [f"{side.label} is {told}" for side in sides if (told := law(side, at)) is not None]
    return [f"Near {spell(cross.over, at)}, in SI units: {'; '.join(found)}."] if found else []


def _unfit(cross: Cross) -> list[str]:
    """Which side does not fit where the lead changes, or begins and ends."""
    if cross.of in (None, "memory"):
        return []
    places = [crossing.at for crossing in cross.crossings[:SHOWN]] or [x for x, _ in cross.near()]
    found = []
    for side in (cross.a, cross.b):
        for x in places:
            try:
                bound = side.bind(x)
            except InputError:
                continue
            memory, capacity = bound.needed_bytes, bound.value("capacity_bytes")
            if memory > capacity:
                told = f"{spell('memory', memory)} of {spell('memory', capacity)}"
                found.append(f"At {cross.over} = {spell(cross.over, x)}, {side.label} does not fit: memory is {told}.")
                break
    return found


def _reasons(name: str, skipped: dict[int, str]) -> list[str]:
    """Which numbers were skipped and why: one sentence for each kind of reason."""
    kinds: dict[str, list[int]] = {}
    for n, reason in skipped.items():
        kinds.setdefault(re.sub(r"[0-9]+", "N", reason), []).append(n)
    found = []
    for numbers in itertools.islice(kinds.values(), SHOWN):
        more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
        found.append(f"Skipped {name} {', '.join(map(str, numbers[:SHOWN]))}{more}: {skipped[numbers[0]]}.")
    return found
