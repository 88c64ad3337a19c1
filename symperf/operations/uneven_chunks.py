"""Layers spread as evenly as whole layers are over the virtual stages of interleaved devices.

Of D dealt layers and p v virtual stages the first D mod p v, in the order of the model, have one more than the others,
as torchtitan deals them (distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part), also where embedding and
head count as layers. Virtual stage k is on device k mod p, so that a device's first chunks are the longer ones, and
devices differ by one layer at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy

from ..formulas.language.atoms import Max, Min, above_one, ceil_div, complement, less_one
from ..formulas.language.symbols import pp, stage_number, vpp
from ..formulas.memory import stage_memory as each
from ..formulas.parallel import dealing as deal
from .dealing import Dealing, Round


@dataclass(frozen=True)
class UnevenChunks(Dealing):
    """How layers are dealt to virtual stages that differ by one; whether ends count or not."""

    @cached_property
    def layers(self) -> Any:
        """Layers of the device of stage i."""
        return each.uneven_stage_layers(self.dealt, pp, stage_number) - sum(self._fewer)

    @cached_property
    def fewest(self) -> Any:
        """Layers that every virtual stage is dealt: floor(D / (p v)), 0 where there are more stages than layers."""
        return less_one(ceil_div(self.dealt + 1, pp * vpp))

    @cached_property
    def longer(self) -> Any:
        """Virtual stages that are dealt one more."""
        return Max(0, self.dealt - pp * vpp * self.fewest)

    @property
    def longer_of_device(self) -> Any:
        """Of the chunks of device i, those that are dealt one more: the first of them."""
        return each.uneven_stage_layers(self.dealt, pp, stage_number) - vpp * self.fewest

    def on_chunk(self, count: Any, place: int, shape: tuple[int, int]) -> Any:
        """Layers of a virtual stage of which the model has `count`."""
        last = shape[0] * shape[1] - 1
        start = self._up_to(sympy.Integer(place)) - (self.counted[0] if place else 0)
        until = self._up_to(sympy.Integer(place + 1)) - self.counted[0] - (self.counted[1] if place == last else 0)
        return self._between(count, start, until)

    def in_flight(self, micro_batches: Any) -> Any:
        """Micro-batches whose activations interleaved device i holds, in units of all its layers."""
        sizes = self.fewest, self.longer_of_device
        held = each.uneven_chunks_in_flight(micro_batches, pp, vpp, *sizes, stage_number)
        return held / each.uneven_stage_layers(self.dealt, pp, stage_number)

    def rounds(self, number: Any) -> list[Round]:
        """The ways from a chunk of a device to its next one: but for the first all are at most p passes of its own."""
        start = self._at(self._start, number)
        until = self._at(self._up_to(less_one(stage_number) + pp), number) - self.counted[0]

        def own(count: Any) -> Any:
            return self.first_chunk(count, number)

        def way(count: Any) -> Any:
            return self._between(count, start, until)

        return [Round(own, way, 1, True), Round(None, None, vpp - 2, False)]

    def _up_to(self, stages: Any) -> Any:
        """What the first virtual stages are dealt."""
        return stages * self.fewest + Min(stages, self.longer)

    def _dealt_to(self, stage: Any) -> Any:
        """What a virtual stage is dealt, by its number from 1."""
        return self.fewest + complement(above_one((stage + 1) / (self.longer + 1)))

    @property
    def _first_size(self) -> Any:
        return self._dealt_to(stage_number) - self._fewer[0]

    @property
    def _last_size(self) -> Any:
        return self._dealt_to(pp * (vpp - 1) + stage_number) - self._fewer[1]

    @cached_property
    def _start(self) -> Any:
        return self._up_to(less_one(stage_number)) - above_one(stage_number) * self.counted[0]

    @property
    def _until(self) -> Any:
        return self._up_to(pp * (vpp - 1) + stage_number) - self.counted[0] - self._fewer[1]

    def _of_chunks(self, leading: Any) -> Any:
        """Of the model's first layers those on device i: of the longer chunks, and of the others behind them."""
        ahead = self.counted[0]
        of_longer = self.longer * (self.fewest + 1)
        front = Min(leading + ahead, of_longer)
        left = self._fewest_and_more[1]  # where the longer chunks end: the others begin on the next device
        turned = stage_number - left + pp * complement(above_one((stage_number + 1) / (left + 1)))
        held = deal.leading_layers_of_chunks(front, self.fewest + 1, pp, stage_number)
        behind = Max(0, leading + ahead - of_longer)
        held += deal.leading_layers_of_chunks(behind, Max(1, self.fewest), pp, turned)
        return held - each.is_first_stage(stage_number) * ahead if ahead else held

    def _end(self, leading: Any) -> Any:
        """Number of the device with the layer behind the first ones."""
        at = leading + self.counted[0] + 1
        stage = Max(ceil_div(at, self.fewest + 1), ceil_div(Max(0, at - self.longer), Max(1, self.fewest)))
        return stage - pp * less_one(ceil_div(stage, pp))
