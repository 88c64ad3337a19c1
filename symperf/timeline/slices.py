"""The slices of a pass: its operations one after another, and what runs beside them on tracks of their own.

A transfer of which a part hides is one slice that ends with the work that it runs beside, and sticks out by what does
not hide; one that the work waits for (parameters that are gathered, weights that come from the host, launches by the
host) begins with it instead. Either way work and transfer take `overlapped_time` together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..operations.schedule import Idle, Op, Overlap, Repeat, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operations.schedule import Node
    from .values import Values

COMPUTE = "compute"
FIRST = ("parameters/", "offload/weights", "host/", "prefill/launches")
"""Beginnings of the paths of what the work beside it waits for."""
UNROLLED = 512
"""Repetitions that are drawn one by one at most."""


class Slice(NamedTuple):
    """A part of a pass.

    Attributes:
        start: seconds after the start of the pass.
        end: likewise.
        track: that it is on.
        name: of the operation, or of a group of them.
        op: the operation, if it is one.
        times: that it is executed, a part of one where a pass is a part of a stage's.
    """

    start: float
    end: float
    track: str
    name: str
    op: Op | None = None
    times: float = 1.0


def track_of(op: Op) -> str:
    """The track of an operation: kernels on one, messages by the group that they pass through."""
    path = op.path
    if path.endswith("/launches") or path.startswith(("host/launches/", "host/collectives/")):
        return "host launches"
    if path.startswith("offload/"):
        return f"host {path.split('/')[1]}"
    if op.demand.message_bytes == 0:
        return COMPUTE
    if path.startswith(("parameters/", "gradients/")):
        return path.split("/", maxsplit=1)[0]
    if path.rpartition("/")[0].endswith("pipeline/send") or path.startswith("pipeline/send"):
        return "pipeline"
    if "/experts/dispatch/" in path or "/experts/combine/" in path:
        return "experts"
    return "context" if "/context/" in path or "/ring/" in path else "tensor"


class Drawn:
    """Slices as they are drawn, and where they end.

    Args:
        values: the seconds of each operation.
        layers: repetitions are drawn one by one where they are whole.
    """

    def __init__(self, values: Values, *, layers: bool) -> None:
        self.values, self.layers = values, layers
        self.slices: list[Slice] = []
        self.end = 0.0

    def add(self, node: Node, part: float = 1.0) -> Drawn:
        """A node behind what is there, or a part of all of its executions."""
        self.end = self._place(node, self.end, part, whole=True)
        return self

    def _place(self, node: Node, at: float, count: float, *, whole: bool) -> float:
        """Place a node that is executed so often, and tell where it ends.

        Args:
            node: any but a schedule.
            at: where it begins.
            count: of executions.
            whole: it is no part of a repetition.
        """
        match node:
            case Op() | Idle():
                return self._leaf(node, at, count)
            case Sequence(children):
                for child in children:
                    at = self._place(child, at, count, whole=whole)
                return at
            case Repeat(child, many):
                times = count * self.values.number(many)
                if whole and self.layers and _draws(child) and times == int(times) and times <= UNROLLED:
                    return self._repeat(child, at, int(times))
                return self._place(child, at, times, whole=False)
            case Overlap(work, transfer, _):
                return self._beside(node, work, transfer, at, count, whole=whole)
            case _:
                raise TypeError(f"a pass has no {type(node).__name__}")

    def _leaf(self, leaf: Op | Idle, at: float, count: float) -> float:
        end = at + count * self.values.time(leaf)
        if end > at and isinstance(leaf, Op):
            self.slices.append(Slice(at, end, track_of(leaf), leaf.path, leaf, count))
        elif end > at:
            self.slices.append(Slice(at, end, COMPUTE, leaf.path))
        return end

    def _repeat(self, child: Node, at: float, times: int) -> float:
        for number in range(times):
            before = len(self.slices)
            end = self._place(child, at, 1.0, whole=False)
            if end > at:
                self.slices.insert(before, Slice(at, end, COMPUTE, f"layer {number + 1} of {times}"))
            at = end
        return at

    def _beside(self, node: Node, work: Node, transfer: Node, at: float, count: float, *, whole: bool) -> float:
        total, alone = count * self.values.time(node), count * self.values.time(work)
        beside = count * self.values.time(transfer)
        first = next((leaf.path for leaf in leaves(transfer)), "").startswith(FIRST)
        self._place(work, at + total - alone if first else at, count, whole=whole)
        self._place(transfer, at if first else at + total - beside, count, whole=False)
        return at + total


def leaves(node: Node) -> Iterable[Op | Idle]:
    """The operations of a pass in order."""
    match node:
        case Op() | Idle():
            yield node
        case Sequence(children):
            for child in children:
                yield from leaves(child)
        case Repeat(child, _):
            yield from leaves(child)
        case Overlap(work, transfer, _):
            yield from leaves(work)
            yield from leaves(transfer)


def _draws(child: Node) -> bool:
    """Whether something is a layer: more than one operation."""
    return sum(1 for _ in leaves(child)) > 1


NANO = 1e9
"""Nanoseconds in a second: times in a file are whole ones, so that what lies inside of another does so exactly."""


class Piece(NamedTuple):
    """A slice of a template in whole nanoseconds."""

    start: int
    end: int
    track: str
    name: str
    op: Op | None
    times: float


class Template(NamedTuple):
    """What is drawn wherever a pass runs.

    Attributes:
        name: of the pass.
        duration: nanoseconds.
        pieces: its slices.
    """

    name: str
    duration: int
    pieces: tuple[Piece, ...]


def template(name: str, drawn: Drawn, scale: float = 1.0) -> Template:
    """The slices of a pass in nanoseconds.

    Args:
        name: of the pass.
        drawn: its slices.
        scale: that times are multiplied with.
    """
    duration = int(drawn.end * scale * NANO)
    return Template(name, duration, tuple(_apart(_pieces(drawn.slices, duration, scale))))


def _pieces(slices: list[Slice], duration: int, scale: float) -> Iterable[Piece]:
    for each in sorted(slices, key=lambda one: (one.start, -one.end, one.op is not None)):
        start, end = (min(duration, round(at * scale * NANO)) for at in (each.start, each.end))
        yield Piece(start, end, each.track, each.name, each.op, each.times)


def _apart(pieces: Iterable[Piece]) -> Iterable[Piece]:
    """Pieces of which none crosses another on its track: what would, is on a track beside.

    A viewer stacks the slices of a track, and drops what neither lies inside of another nor behind it. What crosses by
    a nanosecond is rounded.
    """
    open_until: dict[str, list[int]] = {}
    for piece in pieces:
        number, track, start, end = 1, piece.track, piece.start, piece.end
        while True:
            ends = open_until.setdefault(track, [])
            while ends and ends[-1] <= start + 1:
                start = max(start, ends.pop())
            if not ends or end <= ends[-1] + 1:
                end = min(end, ends[-1]) if ends else end
                break
            number, start, track = number + 1, piece.start, f"{piece.track} {number + 1}"
        if end > start:
            ends.append(end)
            yield piece._replace(start=start, end=end, track=track)


def cut(whole: Template, at: int) -> tuple[Template, Template]:
    """The two parts of a template before and behind a moment."""
    before = tuple(each._replace(end=min(each.end, at)) for each in whole.pieces if each.start < at)
    behind = (
        each._replace(start=max(each.start, at) - at, end=each.end - at) for each in whole.pieces if each.end > at
    )
    return whole._replace(duration=at, pieces=before), Template(whole.name, whole.duration - at, tuple(behind))
