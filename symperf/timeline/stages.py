"""The forward passes of a phase on the stages of a pipeline: prefill, decode steps, iterations of serving.

A stage works on one micro-batch after the other at the pace of the slowest, each behind the stage before. What recurs
(decode steps, iterations) is drawn in its steady state: a micro-batch that passes the last stages when the next step
has begun on the first ones is drawn at the beginning of every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..operations.schedule import Ends, Overlap, Repeat, Scheduled, Sequence
from .chrome import Event
from .slices import COMPUTE, NANO, Drawn, Template, cut, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..operations.schedule import Node
    from .values import Values


class Phase(NamedTuple):
    """A phase as its tree has it.

    Attributes:
        stage: one pass of one micro-batch through a stage of the mean size.
        first: the work of the first stage beside it.
        last: that of the last one.
        launches: by the host, beside all passes.
    """

    stage: Node
    first: Node
    last: Node
    launches: Node | None

    @classmethod
    def of(cls, node: Node) -> Phase:
        """The parts of what `infer.passes.passes_of_stages` made."""
        match node:
            case Overlap(work, launches, _):
                return cls.of(work)._replace(launches=launches)
            case Sequence((Repeat(stage, _), Ends(first, last, _, _))):
                return cls(stage, first, last, None)
            case Scheduled((stage, Ends(first, _, _, _), Ends(last, _, _, _), *_), _, _):
                return cls(stage, first, last, None)
            case _:
                raise TypeError(f"a phase is no {type(node).__name__}")


class Drawing:
    """One phase, drawn once.

    Args:
        values: the seconds of its operations.
        phase: its parts.
        name: of it.
        shape: micro-batches and stages.
        seconds: that all of it takes.
        recurs: the next of its kind begins when it ends.
        layers: layers are drawn one by one.
    """

    def __init__(
        self,
        values: Values,
        phase: Phase,
        name: str,
        shape: tuple[int, int],
        seconds: float,
        *,
        recurs: bool,
        layers: bool,
    ) -> None:
        self.values, self.phase, self.name, self.layers = values, phase, name, layers
        (self.m, self.p), self.recurs = shape, recurs
        self.duration = int(seconds * NANO)
        self.placed = list(self._place())

    def _stage(self, stage: int) -> Drawn:
        drawn = Drawn(self.values, layers=self.layers)
        if stage == 0:
            drawn.add(self.phase.first)
        drawn.add(self.phase.stage)
        return drawn.add(self.phase.last) if stage == self.p - 1 else drawn

    def _place(self) -> Iterator[tuple[int, int, int, Template]]:
        """Stage, micro-batch, start and slices of each pass; one that crosses the end is in two parts."""
        drawn = [self._stage(stage) for stage in range(self.p)]
        slowest, through = max(each.end for each in drawn), sum(each.end for each in drawn)
        taken = self.m * slowest if self.recurs else through + (self.m - 1) * slowest
        scale = min(1.0, self.duration / NANO / taken) if taken else 1.0
        passes = [template(self.name, each, scale) for each in drawn]
        start, pace = 0, int(slowest * scale * NANO)
        for stage, each in enumerate(passes):
            for number in range(self.m):
                at = start + number * pace
                at = at % self.duration if self.recurs and self.duration else at
                left = self.duration - at
                if each.duration <= left or not self.recurs:
                    yield stage, number, at, each
                else:
                    before, after = cut(each, left)
                    yield stage, number, 0, after
                    yield stage, number, at, before
            start += each.duration

    def events(self, begin: int, args: dict[str, Any], *, inside: bool = True) -> Iterator[Event]:
        """All passes from a moment on."""
        until = [begin] * self.p
        for stage, number, at, each in sorted(self.placed, key=lambda one: one[:3:2]):
            start = begin + at
            if start > until[stage]:
                yield Event(stage, until[stage], start - until[stage], COMPUTE, "bubble", {})
            told = args | ({"micro_batch": number + 1} if self.m > 1 else {})
            yield Event(stage, start, each.duration, COMPUTE, self.name, told, each if inside else None)
            until[stage] = start + each.duration
        if self.phase.launches is not None and inside:
            launches = template("", Drawn(self.values, layers=False).add(self.phase.launches))
            for stage in range(self.p):
                yield Event(stage, begin, launches.duration, "", "", {}, launches)
        for stage, at in enumerate(until):
            if (left := begin + self.duration - at) > 0:
                yield Event(stage, at, left, COMPUTE, "bubble", {})

    @property
    def slices(self) -> int:
        """How many there are."""
        return sum(1 + len(each.pieces) for *_, each in self.placed)
