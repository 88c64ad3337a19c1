"""Layers on the stages that a layout names, one by one: tables over the devices, where `dealing` has closed forms.

A layout says how many layers of each segment of the model every chunk of every device has. Devices that follow one
another and hold the same are told by the first and the last of them: what a device sees of a pipeline is convex in its
number between them, and the first holds the most micro-batches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.atoms import Max, Min, above_one, complement, less_one
from ..formulas.language.symbols import num_layers, pp, stage_number
from .dealing import Dealing, Round

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Chunks = tuple[tuple[tuple[int, ...], ...], ...]
"""Of each device each chunk's layers by segment."""


@dataclass(frozen=True)
class LaidOut(Dealing):
    """How a layout deals layers to stages.

    Attributes:
        chunks: layers of each segment, by chunk, by device.
        modules: number of the device with the modules for multi-token prediction; 0 where there are none.
    """

    chunks: Chunks = ()
    modules: int = 0

    @property
    def differs(self) -> bool:
        """Whether stages are told apart."""
        return True

    @cached_property
    def in_order(self) -> list[tuple[int, ...]]:
        """The chunks in the order of the model."""
        return [device[turn] for turn in range(len(self.chunks[0])) for device in self.chunks]

    @cached_property
    def layers(self) -> Any:
        """Layers of the device of stage i."""
        return table([sum(map(sum, device)) for device in self.chunks])

    def _of_segment(self, at: int) -> Any:
        return table([sum(chunk[at] for chunk in device) for device in self.chunks])

    @cached_property
    def deciding(self) -> tuple[Any, ...]:
        """The first and the last of devices that hold the same."""
        count = len(self.chunks)
        held = [
            (device, number in (0, count - 1), number + 1 == self.modules) for number, device in enumerate(self.chunks)
        ]
        found = [
            sympy.Integer(k + 1)
            for k in range(count)
            if k in (0, count - 1) or held[k] != held[k - 1] or held[k] != held[k + 1]
        ]
        return tuple(dict.fromkeys([*found[:-1], *([pp / 2] if self.schedule == "dualpipe" else []), pp]))

    def before(self, count: Any, number: Any) -> Any:
        """Layers of the mean chunk before the first one of a device, of which the model has `count`."""
        held = [device[0] for device in self.chunks]
        sums = [self._sum(count, held[:k]) for k in range(len(held))]
        return self._at(table(sums), number) / Max(1, less_one(number))

    def behind(self, count: Any, number: Any) -> Any:
        """Layers of the mean chunk behind the last one of a device, of which the model has `count`."""
        held = [device[-1] for device in self.chunks]
        sums = [self._sum(count, held[k + 1 :]) for k in range(len(held))]
        return self._at(table(sums), number) / Max(1, pp - number)

    def first_chunk(self, count: Any, number: Any) -> Any:
        """Layers of the first chunk of a device, of which the model has `count`."""
        return self._at(table([self._sum(count, [device[0]]) for device in self.chunks]), number)

    def last_chunk(self, count: Any, number: Any) -> Any:
        """Layers of the last chunk of a device, of which the model has `count`."""
        return self._at(table([self._sum(count, [device[-1]]) for device in self.chunks]), number)

    def on_chunk(self, count: Any, place: int, shape: tuple[int, int]) -> Any:
        """Layers of a virtual stage of which the model has `count`."""
        del shape
        return self._sum(count, [self.in_order[place]])

    def in_flight(self, micro_batches: Any) -> Any:
        """Micro-batches whose activations interleaved device i holds, in units of all its layers."""
        count = len(self.chunks)
        held = []
        for at, device in enumerate(self.chunks):
            sizes = [sum(chunk) for chunk in device]
            passes = count * len(sizes) + count - 1 - 2 * at
            held.append(sympy.Rational(most_in_flight(sizes, count, passes), max(1, sum(sizes))))
        return Min(micro_batches, table(held))

    def rounds(self, number: Any) -> list[Round]:
        """The ways from each chunk of a device to its next one."""
        p = len(self.chunks)
        at = p - 1 if number == pp else int(number) - 1
        found: Counter[tuple[tuple[int, ...], tuple[int, ...], bool]] = Counter()
        equal = 0
        for start in range(at, len(self.in_order) - p, p):
            own, way = self.in_order[start], tuple(map(sum, zip(*self.in_order[start : start + p], strict=True)))
            if way == tuple(p * each for each in own) and start:
                equal += 1
            else:
                found[own, way, start == at] += 1
        rounds = [Round(self._held(own), self._held(way), times, first) for (own, way, first), times in found.items()]
        return [*rounds, *([Round(None, None, equal, False)] if equal else [])]

    def _at(self, form: Any, number: Any) -> Any:
        return super()._at(form, sympy.Integer(len(self.chunks)) if number == pp else number)

    def _held(self, layers: tuple[int, ...]) -> Callable[[Any], Any]:
        return lambda count: self._sum(count, [layers])

    def _sum(self, count: Any, chunks: Sequence[tuple[int, ...]]) -> Any:
        """Layers of some chunks of which the model has `count`."""
        if count == num_layers or not self.unequal:
            return sympy.Integer(sum(map(sum, chunks))) * (count / num_layers)
        at = self._segment_of(count)
        return sympy.Integer(sum(chunk[at] for chunk in chunks)) * (count / self._size(at))

    def _size(self, at: int) -> Any:
        return super()._size(at) if self.segments else num_layers


def most_in_flight(sizes: Sequence[int], stages: int, passes: int) -> int:
    """The most layers of which a device holds activations while so many passes of its chunks are in flight.

    Forward passes go through the chunks, `stages` micro-batches at a time, and backward passes in the opposite order.
    What is held is linear between the moments at which either goes on to another chunk.

    >>> most_in_flight([3, 1], 4, 11), most_in_flight([1, 3], 4, 11), most_in_flight([2, 2], 4, 11)
    (27, 19, 22)
    """
    turns = len(sizes)

    def run(order: Sequence[int], done: int) -> int:
        whole, left = divmod(done, stages * turns)
        turn, inside = divmod(left, stages)
        return whole * stages * sum(sizes) + stages * sum(order[:turn]) + inside * (order[turn] if inside else 0)

    starts = [passes + stages * k for k in range(turns + 1)]
    moments = {*starts, *(-(-passes // stages) * stages + stages * k for k in range(turns + 1))}
    return max(run(sizes, at) - run(sizes[::-1], at - passes) for at in moments)


def table(values: Sequence[Any]) -> Any:
    """What stage i has, of the values of all stages from the first on.

    >>> from symperf.formulas.language.symbols import stage_number
    >>> form = table([3, 2, 2, 1])
    >>> [form.xreplace({stage_number: sympy.Integer(i)}) for i in (1, 2, 3, 4)]
    [3, 2, 2, 1]
    """
    steps = [
        (values[k] - values[k + 1]) * complement(above_one(stage_number / (k + 1)))
        for k in range(len(values) - 1)
        if values[k] != values[k + 1]
    ]
    return sympy.Add(values[-1], *steps)
