"""Why sequences do not fit: which part is largest, how much is missing, and the smallest changes that would do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..infer.room import Room
    from .inference_run import InferenceRun

NAMES: Final = {
    "weights": "weights",
    "cache": "the cache",
    "activations": "activations",
    "runtime": "driver and libraries",
    "unused": "what the software leaves free",
}
MOST_TAKEN: Final = 0.98
"""Part of a device's memory beyond which software finds no room for what it does not count."""
MOST_DEVICES: Final = 64
FORMATS: Final = ("fp8", "int8", "fp4", "int4")
"""Narrower formats of weights, the widest first."""


@dataclass(frozen=True)
class Shortage:
    """Sequences that do not fit a replica.

    Attributes:
        sequences: of a replica.
        needed: bytes that a device would need for them, with what the software leaves free.
        capacity: bytes that it has.
        parts: bytes by name.
        changes: of one option each, the smallest of its kind that would make them fit.
    """

    sequences: int
    needed: float
    capacity: float
    parts: dict[str, float]
    changes: tuple[str, ...]

    @property
    def missing(self) -> float:
        """Bytes."""
        return self.needed - self.capacity

    @property
    def largest(self) -> tuple[str, float]:
        """The part that takes most, and its bytes."""
        return max(self.parts.items(), key=lambda each: each[1])


def shortage(run: InferenceRun, room: Room, sequences: int) -> Shortage:
    """What is missing for sequences that do not fit.

    Args:
        run: whose software, plan and formats are changed.
        room: of a replica.
        sequences: of a replica.
    """
    cache, prompts = room.sequence * sequences, room.prompt * sequences
    parts = {
        "weights": room.weights,
        "cache": cache,
        "activations": room.reserved + prompts,
        "runtime": room.runtime,
        "unused": max(0.0, room.capacity - room.fixed - prompts - room.budget(sequences)),
    }
    return Shortage(sequences, sum(parts.values()), room.capacity, parts, tuple(_changes(run, room, sequences)))


def _changes(run: InferenceRun, room: Room, sequences: int) -> Iterator[str]:
    if replace(room, utilization=MOST_TAKEN).fits(sequences):
        part = math.ceil(room.utilization * 100) / 100
        while not replace(room, utilization=part).fits(sequences):
            part = round(part + 0.01, 2)
        yield f"memory_utilization = {part:g}"
    tries: list[tuple[str, Any]] = [("tp", run.plan.tp * 2**n) for n in range(1, 1 + int(math.log2(MOST_DEVICES)))]
    yield from _first(run, tries, sequences)
    if room.sequence:
        yield from _first(run, [("kv_precision", "fp8")], sequences)
    own = run.bound["weight_bytes"][0]
    yield from _first(run, [("precision", name) for name in FORMATS], sequences, lighter=own)


def _first(
    run: InferenceRun, tries: list[tuple[str, Any]], sequences: int, lighter: float | None = None
) -> Iterator[str]:
    """The first value of a kind of change under which the sequences fit."""
    for name, value in tries:
        try:
            other = run.bind(**{name: value})
        except InputError:
            continue
        if lighter is not None and other.bound["weight_bytes"][0] >= lighter:
            continue
        if other.room().fits(sequences):
            yield f"{name} = {value}"
            return
