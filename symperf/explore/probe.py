"""Which symbols a page may move: those that a run takes a value of without becoming another structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..systems.system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from ..systems.units import COUNT
from ..train.inputs import limits_of
from .cases import Numbered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..runs.full_run import FullRun

SPAN = 10.0
"""A control reaches from a tenth of a value to ten times it, as far as its limits let it."""


def movable(runs: Mapping[str, FullRun], used: Collection[str]) -> tuple[Numbered, ...]:
    """The figures of a system that can be moved, each with what takes its value too.

    Every run is asked with other values of each, and what it then binds is compared: a symbol whose value decides the
    form of the cost, or from which another number follows by more than being the same, is left out.

    Args:
        runs: whose bindings are tried, by the places of their model, system and format.
        used: inputs of their programs.
    """
    found = []
    for name in (*SYSTEM_SYMBOLS, "matrix_rate"):
        those = {place: run for place, run in runs.items() if name in run.bound} if name in used else {}
        tried = {place: _tried(run, name) for place, run in those.items()}
        known = [each for each in tried.values() if each is not None]
        if known and len(known) == len(tried):
            follows = {place: each[2] for place, each in tried.items() if each is not None}
            low, high = min(each[0] for each in known), max(each[1] for each in known)
            now = next(iter(those.values())).bound[name][0]
            found.append(Numbered(name, "system", now, low, high, follows=follows))
    return tuple(found)


def _tried(run: FullRun, name: str) -> tuple[float, float, tuple[str, ...]] | None:
    """The ends between which a run takes a symbol, and what takes its value too; None where it is no such symbol."""
    now, limits = run.bound[name][0], limits_of(name)
    if limits is None or now <= 0 or limits.dimension is COUNT:
        return None
    low, high = max(limits.low, now / SPAN), min(limits.high, now * SPAN)
    changed: set[tuple[str, ...]] = set()
    for value in {low, high, now * 0.97, now * 1.03} - {now}:
        if not low <= value <= high:
            continue
        try:
            moved = run.bind(**{name: value})
        except InputError:
            return None
        keys = tuple(key for key, (other, _) in moved.bound.items() if other != run.bound[key][0])
        if moved.structure != run.structure or any(moved.bound[key][0] != value for key in keys):
            return None
        changed.add(tuple(key for key in keys if key != name))
    return (low, high, changed.pop()) if len(changed) == 1 else None
