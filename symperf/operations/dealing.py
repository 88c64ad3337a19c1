"""Layers dealt to pipeline stages in order: what of each kind a stage has, in closed form, and which stages decide.

Kinds of layers whose places in a model interleave form a segment, and are taken to be mixed evenly inside it: a model
with attention in every fourth layer is one segment. Kinds that come one after another are several: the dense first
layers of a mixture of experts are a segment of their own, on the first stages. Stages of one segment differ only by
their number, so that a few stages decide everything: the first, the last, the one in which a segment ends and the one
behind it. Any other has as much of each kind as one of them, or less, and holds no more micro-batches.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, Min, above_one, ceil_div, less_one
from ..formulas.language.symbols import (
    SYMBOLS,
    first_stage_layers,
    last_stage_layers,
    num_layers,
    pp,
    stage_number,
    vpp,
)
from ..formulas.memory import stage_memory as each
from ..formulas.parallel import dealing as deal
from ..formulas.parallel.zero_bubble import excess

if TYPE_CHECKING:
    from collections.abc import Callable


def middle_layers() -> Any:
    """Layers of each stage between given ends: (L - l_1 - l_p) / (p - 2); none of two stages."""
    rest = excess(num_layers, first_stage_layers + last_stage_layers)
    return rest / Max(1, less_one(Max(1, less_one(pp))))


@lru_cache(maxsize=8192)
def _on_stage(form: Any, number: Any) -> Any:
    return form.xreplace({stage_number: number})


@dataclass(frozen=True)
class Round:
    """The way of a micro-batch from one chunk of a device to its next one.

    Attributes:
        own: layers of the chunk of which the model has a count; None where the way is as long as p passes of its own.
        way: those of the p chunks from this one on.
        times: how many of the device's rounds are so.
        embedding: it is that from the first chunk, and on the first device has the embedding.
    """

    own: Callable[[Any], Any] | None
    way: Callable[[Any], Any] | None
    times: Any
    embedding: bool


@dataclass(frozen=True)
class Dealing:
    """How layers are dealt to stages; a stage is told by the symbol `stage_number`.

    Attributes:
        segments: of the model in order, each as the symbols that count its kinds; one segment may be empty.
        stages: "even", "uneven" (the first L mod p stages have a layer more), "late" (the L mod p stages before the
            last have it, as vLLM deals: distributed/utils.py, get_pp_indices) or "given" first and last ones.
        schedule: of the pipeline: chunks of "interleaved" are dealt in turn, a device of "dualpipe" has two stages.
        counted: ends of the model that are dealt as a layer: embedding and loss, each 0 or 1; so the chunk that has one
            has a layer less (Megatron-LM's account_for_embedding_in_pipeline_split, and of the loss).
    """

    segments: tuple[tuple[str, ...], ...] = ()
    stages: str = "even"
    schedule: str = "1f1b"
    counted: tuple[int, int] = (0, 0)

    @property
    def unequal(self) -> bool:
        """Whether stages have other kinds of layers: there are several segments."""
        return len(self.segments) > 1

    @property
    def differs(self) -> bool:
        """Whether stages are told apart: by kinds of layers, or by their number."""
        return self.unequal or self.stages != "even" or any(self.counted)

    @property
    def dealt(self) -> Any:
        """What is dealt: the layers, and ends that count as one."""
        return num_layers + sum(self.counted)

    @property
    def _fewer(self) -> tuple[Any, Any]:
        """Layers that stage i has fewer, as it has the embedding or the loss."""
        first, last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
        return first * self.counted[0], last * self.counted[1]

    @cached_property
    def layers(self) -> Any:
        """Layers of stage i."""
        if self.stages == "given":
            first, last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
            inside = above_one(stage_number) * above_one(pp / stage_number)
            return first * first_stage_layers + last * last_stage_layers + inside * middle_layers()
        if self.stages == "late":
            whole, more = self._fewest_and_more
            return whole + above_one((stage_number + 1) / (pp - more)) * above_one(pp / stage_number)
        if self.stages == "uneven":
            return each.uneven_stage_layers(num_layers, pp, stage_number)
        return self.dealt / pp - sum(self._fewer) if any(self.counted) else num_layers / pp

    def layers_of(self, count: Any) -> Any:
        """Layers of stage i of which the model has `count`, one of its symbols; of two stages on a device the mean."""
        if count == num_layers or not self.unequal:
            held = self._on_device(self.layers)
            return held if count == num_layers else held * (count / num_layers)
        at = self._segment_of(count)
        return count / self._size(at) * self._on_device(self._of_segment(at))

    def _on_device(self, of_stage: Any) -> Any:
        """Layers of the device of stage i, given those of the stage."""
        if self.schedule != "dualpipe":
            return of_stage
        return (of_stage + of_stage.xreplace({stage_number: pp + 1 - stage_number})) / 2

    @cached_property
    def deciding(self) -> tuple[Any, ...]:
        """Numbers of stages of which one is the fullest, and one the slowest."""
        found: list[Any] = [sympy.S.One]
        if self.stages == "given" or any(self.counted):
            found.append(Min(2, pp))
        if self.schedule == "dualpipe":
            # The device in the middle has two stages of one kind if any has, and the longest ones.
            found.append(pp / 2)
            if self.stages == "uneven":
                found.append(Max(1, Min(pp, pp + 1 - self._fewest_and_more[1])))
        for at in range(len(self.segments) - 1):
            number = self._end(self._leading(at + 1))
            # The stage before may have the most of a kind: later stages have a layer more.
            found += [Max(1, Min(pp, number) - 1)] if self.stages == "late" else []
            found += [Min(pp, number), Min(pp, number + 1)]
        if self.stages == "uneven" and self.schedule != "dualpipe":
            more = self._fewest_and_more[1]
            found += [Max(1, more), Min(pp, more + 1)]
        if self.stages in ("late", "given") or any(self.counted) or self.schedule == "interleaved":
            found.append(Max(1, pp - 1))
        return tuple(dict.fromkeys([*found, pp]))

    @cached_property
    def pacing(self) -> tuple[Any, ...]:
        """The numbers of stages that decide a schedule which drains slow stages late: also the last but one."""
        return tuple(dict.fromkeys([*self.deciding[:-1], Max(1, less_one(pp)), pp]))

    @cached_property
    def one_way(self) -> Dealing:
        """The stages of one way of a pipeline that has two."""
        return dataclasses.replace(self, schedule="1f1b")

    def before(self, count: Any, number: Any) -> Any:
        """Layers of the mean chunk before the first one of a device, of which the model has `count`."""
        start = self._at(self._start, number)
        return self._first(count, start) / Max(1, less_one(number))

    def behind(self, count: Any, number: Any) -> Any:
        """Layers of the mean chunk behind the last one of a device, of which the model has `count`."""
        left = Max(0, count - self._first(count, self._at(self._until, number)))
        return left / Max(1, pp - number)

    def first_chunk(self, count: Any, number: Any) -> Any:
        """Layers of the first chunk of a device, of which the model has `count`."""
        start = self._at(self._start, number)
        return self._between(count, start, start + self._at(self._first_size, number))

    def last_chunk(self, count: Any, number: Any) -> Any:
        """Layers of the last chunk of a device, of which the model has `count`."""
        until = self._at(self._until, number)
        return self._between(count, until - self._at(self._last_size, number), until)

    def on_chunk(self, count: Any, place: int, shape: tuple[int, int]) -> Any:
        """Layers of a virtual stage of which the model has `count`; the same of all between a device's first and last.

        Args:
            count: one of the model's symbols.
            place: of the virtual stage in the model, from 0.
            shape: devices, and virtual stages of each.
        """
        turn, device = divmod(place, shape[0])
        number = sympy.Integer(device + 1)
        ends = self.first_chunk(count, number), self.last_chunk(count, number)
        if turn in (0, shape[1] - 1):
            return ends[0 if turn == 0 else 1]
        return (self.on_stage(count, number) - sum(ends)) / (shape[1] - 2)

    def in_flight(self, micro_batches: Any) -> Any:
        """Micro-batches whose activations interleaved device i holds, in units of all its layers."""
        return each.interleaved_stage_in_flight(micro_batches, pp, vpp, stage_number)

    def rounds(self, number: Any) -> list[Round]:
        """The ways from a chunk of a device to its next one that may take longer than p passes of its own.

        They are those from the first chunk, which may have the embedding, or other kinds of layers; all others are as
        long as p passes of their own.
        """
        start = self._at(self._start, number)
        rest = vpp - 2
        if self.stages == "given":
            until = start + num_layers / vpp
        else:
            until = self._at(less_one(stage_number) * self._chunk, number) + pp * self._chunk - self.counted[0]
        return [
            Round(
                lambda count: self.first_chunk(count, number), lambda count: self._between(count, start, until), 1, True
            ),
            Round(None, None, rest, False),
        ]

    def _between(self, count: Any, start: Any, until: Any) -> Any:
        """Of the layers between two places in the model those of which it has `count`."""
        return Max(0, self._first(count, until) - self._first(count, start))

    @property
    def _chunk(self) -> Any:
        """What is dealt to a virtual stage where they are equal."""
        return self.dealt / (pp * vpp)

    @property
    def _first_size(self) -> Any:
        """Layers of the first chunk of the device of stage i."""
        if self.schedule != "interleaved":
            return self.layers
        return self.layers / vpp if self.stages == "given" else self._chunk - self._fewer[0]

    @property
    def _last_size(self) -> Any:
        """Layers of its last chunk."""
        if self.schedule != "interleaved":
            return self.layers
        return self.layers / vpp if self.stages == "given" else self._chunk - self._fewer[1]

    @property
    def _until(self) -> Any:
        """Layers of the model up to the end of its last chunk."""
        if self.schedule != "interleaved":
            return self._start + self.layers
        if self.stages == "given":
            return num_layers - (num_layers - self._dealt_before - self.layers) / vpp
        behind = Max(0, pp - stage_number) * self._chunk - above_one(pp / stage_number) * self.counted[1]
        return num_layers - behind

    def _first(self, count: Any, layers: Any) -> Any:
        """Of the model's first layers those of which it has `count`."""
        if count == num_layers or not self.unequal:
            return layers * (count / num_layers)
        at = self._segment_of(count)
        return count / self._size(at) * Min(self._size(at), Max(0, layers - self._leading(at)))

    def _at(self, form: Any, number: Any) -> Any:
        return _on_stage(sympy.sympify(form, strict=True), number)

    def on_stage(self, count: Any, number: Any) -> Any:
        """Layers on a stage of which the model has `count`; written so that they are proved to be none at least."""
        held = self._at(self.layers_of(count), number)
        return Max(0, held) if self.differs else held

    def on_deciding(self, form: Any) -> list[Any]:
        """A form in the number of a stage, on each of the stages that decide."""
        return [self._at(form, number) for number in self.deciding]

    def _segment_of(self, count: Any) -> int:
        return next(k for k, names in enumerate(self.segments) if str(count) in names)

    def _size(self, at: int) -> Any:
        return sympy.Add(*(SYMBOLS[name].symbol for name in self.segments[at]))

    def _leading(self, segments: int) -> Any:
        """Layers of the first segments."""
        return sympy.Add(*(self._size(at) for at in range(segments)))

    def _of_segment(self, at: int) -> Any:
        """Layers of a segment on stage i: what the intervals of the segment and of the stage share."""
        first, last = at == 0, at == len(self.segments) - 1
        before, until = self._leading(at), self._leading(at + 1)
        if self.schedule == "interleaved":
            of_until = self.layers if last else self._of_chunks(until)
            return of_until if first else of_until - self._of_chunks(before)
        held = [] if last else [deal.leading_layers(until, self._start, self.layers)]
        held += [] if first else [deal.following_layers(before, self._start, self.layers)]
        return Min(*held, *([] if first or last else [self._size(at)]))

    def _of_chunks(self, leading: Any) -> Any:
        """Of the model's first layers those on device i, to which chunks are dealt in turn."""
        ahead = self.counted[0]
        held = deal.leading_layers_of_chunks(leading + ahead, self._chunk, pp, stage_number)
        return held - each.is_first_stage(stage_number) * ahead if ahead else held

    @cached_property
    def _start(self) -> Any:
        """Layers before the first chunk of the device of stage i."""
        if self.schedule != "interleaved":
            return self._dealt_before
        if self.stages == "given":
            return self._dealt_before / vpp
        return less_one(stage_number) * self._chunk - above_one(stage_number) * self.counted[0]

    @cached_property
    def _dealt_before(self) -> Any:
        """Layers on the devices before that of stage i."""
        before = less_one(stage_number)
        if self.stages == "given":
            return above_one(stage_number) * (first_stage_layers + less_one(Max(1, before)) * middle_layers())
        if self.stages in ("uneven", "late"):
            whole, more = self._fewest_and_more
            ahead = Min(before, more) if self.stages == "uneven" else Max(0, stage_number + more - pp)
            return before * whole + ahead
        return before * self.dealt / pp - above_one(stage_number) * self.counted[0]

    @cached_property
    def _fewest_and_more(self) -> tuple[Any, Any]:
        """Layers of the stages that have fewest, and how many stages have one more, where p need not divide them."""
        whole = less_one(ceil_div(self.dealt + 1, pp))
        return whole, Max(0, self.dealt - pp * whole)

    def _end(self, leading: Any) -> Any:
        """Number of the stage with the layer behind the first ones."""
        leading += self.counted[0]
        if self.schedule == "interleaved":
            chunk = self._chunk
            left = leading - less_one(ceil_div(leading, chunk * pp)) * chunk * pp
            return ceil_div(left + 1, chunk)
        if self.stages == "given":
            return 1 + ceil_div(excess(leading + 1, first_stage_layers), Max(1, middle_layers()))
        if self.stages == "uneven":
            whole, more = self._fewest_and_more
            return Max(ceil_div(leading + 1, ceil_div(num_layers, pp)), ceil_div(Max(0, leading + 1 - more), whole))
        if self.stages == "late":
            whole, more = self._fewest_and_more
            return Min(ceil_div(leading + 1, whole), ceil_div(leading + pp - more, whole + 1))
        return ceil_div(leading + 1, self.dealt / pp)
