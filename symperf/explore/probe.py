"""Which symbols a page may move: those that a run takes a value of without becoming another structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..systems.system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from ..systems.units import COUNT
from ..train.inputs import limits_of
from .cases import Numbered

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..runs.full_run import FullRun

SPAN = 10.0
"""A control reaches from a tenth of a value to ten times it, as far as its limits let it."""


def movable(run: FullRun, used: Collection[str]) -> tuple[Numbered, ...]:
    """The figures of a system that can be moved, each with what takes its value too.

    The run is asked with another value of each, and what it then binds is compared: a symbol whose value decides the
    form of the cost, or from which another number follows by more than being the same, is left out.

    Args:
        run: whose bindings are tried.
        used: inputs of its programs.
    """
    found = (_tried(run, name) for name in (*SYSTEM_SYMBOLS, "matrix_rate") if name in used)
    return tuple(each for each in found if each is not None)


def _tried(run: FullRun, name: str) -> Numbered | None:
    now, limits = run.bound[name][0], limits_of(name)
    if limits is None or now <= 0 or limits.dimension is COUNT:
        return None
    low, high = max(limits.low, now / SPAN), min(limits.high, now * SPAN)
    other = now * 0.97 if now * 0.97 >= low else min(now * 1.03, high)
    try:
        moved = run.bind(**{name: other})
    except InputError:
        return None
    if moved.structure != run.structure or moved.bound[name][0] != other or other == now:
        return None
    changed = [key for key, (value, _) in moved.bound.items() if value != run.bound[key][0] and key != name]
    if any(moved.bound[key][0] != other for key in changed):
        return None
    return Numbered(name, "system", now, low, high, follows=tuple(changed))
