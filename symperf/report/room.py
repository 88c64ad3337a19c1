"""What fits, in the words and units of serving software's own start-up lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import gibibytes

if TYPE_CHECKING:
    from ..infer.room import Room
    from ..runs.shortage import Shortage

WORDS = {"total": "of the device's memory", "free": "of what weights leave", "static": "for weights and cache"}
"""What the part of memory that software takes is a part of."""


def as_json(room: Room, longest: int | None, context: int | None) -> dict[str, Any]:
    """The keys of a replica's room; None where they mean nothing."""
    return {
        "kv_tokens": room.kv_tokens,
        "kv_blocks": room.kv_blocks,
        "concurrency": room.concurrency,
        "longest_context": longest,
        "model_context": context,
        "memory_utilization": room.utilization,
        "memory_parts": room.parts(),
    }


def rows(room: Room, longest: int | None, sequences: int, context: int | None) -> list[tuple[str, str]]:
    """Rows of a table of facts."""
    parts = room.parts()
    taken = ", ".join(f"{name} {gibibytes(size)}" for name, size in parts.items() if size and name != "cache")
    found = [("when full", f"{taken}; takes {room.utilization:g} {WORDS[room.rule]}")]
    if room.kv_tokens is not None and room.concurrency is not None:
        text = f"{gibibytes(parts['cache'])}: {room.kv_tokens:,} tokens"
        blocks = f" in {room.kv_blocks:,} blocks of {room.block:g}" if room.block > 1 else ""
        found.append(("cache", f"{text}{blocks}; {room.concurrency:.2f} times {room.slots:,.0f} tokens"))
    return [*found, ("longest context", _longest(longest, sequences, context))]


def _longest(longest: int | None, sequences: int, context: int | None) -> str:
    each = "" if sequences == 1 else f" each of {sequences} sequences"
    if longest is None:
        return f"any length fits{each}"
    if not longest:
        return f"not one token fits{each}"
    own = f"; the model is made for {context:,}" if context is not None and context < longest else ""
    return f"{longest:,} tokens{each}{own}"


def why_not(found: Shortage, names: dict[str, str]) -> str:
    """In one sentence which part takes most, how much is missing, and what would make it fit."""
    part, size = found.largest
    text = (
        f"does not fit: needs {gibibytes(found.needed)} of {gibibytes(found.capacity)} a device, "
        f"{gibibytes(found.missing)} too much; most is {names[part]}, {gibibytes(size)}"
    )
    would = f"would fit with {' or '.join(found.changes)}" if found.changes else "no single change makes it fit"
    return f"{text}; {would}"
