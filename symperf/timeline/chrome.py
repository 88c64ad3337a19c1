"""Timelines as a file: the trace event format of Chrome, which Perfetto opens, written as it is made.

A JSON object with `traceEvents` (Trace Event Format, "JSON Object Format"): complete events (`"ph": "X"`, with `ts` and
`dur` in microseconds) on threads, and metadata events (`"ph": "M"`) that name and sort these. A stage of the pipeline
is a process, a track is a thread of it. Slices of a thread nest or follow each other, as viewers require it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .slices import Piece, Template
    from .values import Values

LINES = 2000
"""Events that are written at once."""
ORDER = ("step", "compute", "host launches", "tensor", "context", "experts", "pipeline", "parameters", "gradients")


class Event(NamedTuple):
    """A slice of a stage.

    Attributes:
        stage: its number, from 0.
        start: nanoseconds.
        duration: nanoseconds.
        track: that it is on.
        name: what it is; empty where there is nothing but what is inside.
        args: what else is told of it.
        inside: the slices of the pass that it is.
    """

    stage: int
    start: int
    duration: int
    track: str
    name: str
    args: dict[str, Any]
    inside: Template | None = None


class Timeline(NamedTuple):
    """What is written.

    Attributes:
        values: tell what the operations need.
        stages: a name for each stage.
        about: what the whole is of.
        events: in any order, an outer before an inner one.
    """

    values: Values
    stages: tuple[str, ...]
    about: dict[str, Any]
    events: Iterable[Event]

    def text(self) -> Iterator[str]:
        """The file in parts."""
        head = json.dumps({"displayTimeUnit": "ms", "otherData": self.about}, ensure_ascii=True)
        yield f'{head[:-1]}, "traceEvents": [\n'
        waiting: list[str] = []
        for line in _Lines(self).lines():
            waiting.append(line)
            if len(waiting) >= LINES:
                yield ",\n".join(waiting) + ",\n"
                waiting.clear()
        yield ",\n".join(waiting) + "\n]}\n"


class _Lines:
    """The lines of a timeline, with what those of one operation have in common."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.threads: dict[tuple[int, str], int] = {}
        self.heads: dict[tuple[str, float], tuple[str, str]] = {}

    def lines(self) -> Iterator[str]:
        """Every event as JSON; threads are named where they first occur, and the last line names the processes."""
        for event in self.timeline.events:
            yield from self._event(event)
        for stage, name in enumerate(self.timeline.stages):
            yield _metadata("process_name", stage, {"name": name})
            yield _metadata("process_sort_index", stage, {"sort_index": stage})
        for (stage, track), thread in self.threads.items():
            yield _metadata("thread_name", stage, {"name": track}, thread)
            yield _metadata("thread_sort_index", stage, {"sort_index": thread}, thread)

    def _event(self, event: Event) -> Iterator[str]:
        stage = event.stage
        if event.name:
            head = f'{{"name": {json.dumps(event.name)}, "cat": {json.dumps(event.name.split()[0])}, "ph": "X"'
            times, args = _times(event.start, event.duration), json.dumps(event.args)
            yield f'{head}, "pid": {stage}, "tid": {self._thread(stage, event.track)}, {times}, "args": {args}}}'
        for piece in event.inside.pieces if event.inside else ():
            start, args = self._piece(piece)
            thread = self._thread(stage, piece.track)
            times = _times(event.start + piece.start, piece.end - piece.start)
            yield f'{start}, "pid": {stage}, "tid": {thread}, {times}{args}}}'

    def _thread(self, stage: int, track: str) -> int:
        if (stage, track) not in self.threads:
            known = ORDER.index(track) if track in ORDER else len(ORDER)
            taken = {thread for (other, _), thread in self.threads.items() if other == stage}
            while known in taken:
                known += 1
            self.threads[stage, track] = known
        return self.threads[stage, track]

    def _piece(self, piece: Piece) -> tuple[str, str]:
        key = piece.name, piece.times
        if key not in self.heads:
            self.heads[key] = self._texts(piece)
        return self.heads[key]

    def _texts(self, piece: Piece) -> tuple[str, str]:
        name = json.dumps(piece.name)
        if piece.op is None:
            return f'{{"name": {name}, "cat": {json.dumps(piece.name.split()[0])}, "ph": "X"', ""
        facts, times = self.timeline.values.facts(piece.op), piece.times
        args = {
            "formula": facts.formula,
            "bound": facts.bound,
            "executions": times,
            "seconds_each": self.timeline.values.time(piece.op),
            "flops": times * facts.flops,
            "memory_bytes": times * facts.bytes,
            "message_bytes": times * facts.message,
        }
        return f'{{"name": {name}, "cat": "{piece.track}", "ph": "X"', f', "args": {json.dumps(args)}'


def _times(start: int, duration: int) -> str:
    return f'"ts": {_microseconds(start)}, "dur": {_microseconds(duration)}'


def _microseconds(nano: int) -> str:
    return f"{nano // 1000}.{nano % 1000:03d}"


def _metadata(name: str, stage: int, args: dict[str, Any], thread: int = 0) -> str:
    return json.dumps({"name": name, "ph": "M", "ts": 0, "pid": stage, "tid": thread, "args": args})
