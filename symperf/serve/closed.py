"""The steady state of a closed loop: N requests in flight, and a new one whenever one ends.

Where requests generate different numbers of tokens they soon lose step, and each sees what N - 1 others do at random.
Where all are alike they stay in the order in which the first burst was prefilled, one pack of prompts behind the other,
and none waits behind another until prefill is saturated.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import lockstep
from .prefill_first import waves
from .program import form
from .roots import root_of
from .state import State
from .steady import NO_SPARE

if TYPE_CHECKING:
    from .steady import Steady

CLOSE = 1e-12
MANY = 100
"""Waves behind a burst that are told apart."""


@dataclass(frozen=True)
class ClosedLoop:
    """A replica with so many requests in flight.

    Attributes:
        steady: of the replica's engine.
        concurrency: N, requests in flight; a mean, at least 1.
    """

    steady: Steady
    concurrency: float

    @property
    def running(self) -> float:
        """Of them those that may run at once."""
        return min(self.concurrency, float(self.steady.engine.limit))

    @property
    def places(self) -> float:
        """Prompts that one iteration of all groups may prefill."""
        return self.steady.engine.chunk_prompts * self.steady.engine.groups

    @property
    def in_step(self) -> bool:
        """Whether the requests stay in the order of the burst with which they began, on all ranks alike."""
        return self._deviation == 0

    @property
    def _misses(self) -> bool:
        """Whether an iteration has begun as a request is sent; one that waits for a place has come before."""
        engine = self.steady.engine
        others = self.concurrency > 1 or engine.ranks > 1
        return others and self.concurrency <= engine.limit and engine.steps > 0

    def state(self) -> State:
        """The steady state; its load, times and numbers of requests obey Little's law exactly."""
        engine = self.steady.engine
        found = self._in_step() if self.in_step else self._at_random()
        present = self.running
        load = form(
            "loop_load",
            concurrency=present,
            first_token_time=found.first_token,
            decode_steps=engine.steps,
            iteration_time=found.iteration,
        )
        place = (self.concurrency - present) / load
        return dataclasses.replace(found, load=load, cache=place, prefilling=load * found.prefill)

    # --- requests that have lost step

    def _at_random(self) -> State:
        """The x at which decoding, waiting and prefilled requests are N together."""
        steady, present = self.steady, self.running

        def surplus(arrivals: float) -> float:
            return self._mixed_up(arrivals).population(steady.engine.steps) - present

        full = steady.full
        if steady.engine.apart and steady.engine.steps:
            full = max(full, 2 * present / steady.engine.steps / steady.engine.groups)
        if surplus(full) <= 0:
            return self._saturated(self._mixed_up(full))
        return self._mixed_up(root_of(surplus, 0.0, full, CLOSE))

    def _mixed_up(self, arrivals: float) -> State:
        """The state in which x requests begin in a mean iteration, at random moments."""
        steady, engine, present = self.steady, self.steady.engine, self.running
        decoding = min(steady.decoding(arrivals), present)

        def others(value: float) -> float:
            return form("others_in_loop", decoding=value, concurrency=present)

        seen, begun = others(decoding), others(arrivals)
        chance = decoding / present
        share, tokens, decode, mixed, mean = steady.iterations(
            min(begun, steady.full), 1 + seen, math.sqrt(max(seen * (1 - chance), 0.0))
        )
        rate = arrivals * engine.groups / mean
        alone = 1.0 if engine.apart else (1 - chance) ** (present - 1)
        cut, beside = engine.chunk_prompts == 1, lockstep.prefilling_beside(engine, min(begun, steady.full))
        with_it = tokens if cut else min(engine.whole_chunk, engine.prompt / engine.chunks * (1 + begun))
        prefill = engine.chunks * steady.chunk_time(seen, alone, with_it, beside)
        service = engine.chunks * steady.chunk_time(seen, alone, tokens, beside)
        boundary = mean
        if engine.apart:
            # A decode step is followed by as many iterations of prompts as those that ended in it need.
            share, chunk = max(1 - math.exp(-begun), begun / steady.full), mixed - decode
            mean = form("mean_iteration_time", decode_time=decode, chunk_extra_time=chunk, chunk_share=share)
            rate = arrivals * engine.groups / mean
            boundary = math.exp(-begun) * decode + share * chunk
        boundary = boundary if self._misses else 0.0
        queue = self._queue(service, begun / steady.full)
        return State(
            rate, decoding, rate * prefill, share, tokens, decode, mixed, mean,
            boundary, queue, 0.0, prefill, service, math.inf, engine.way_time(present),
        )  # fmt: skip

    def _queue(self, service: float, busy: float) -> float:
        """The mean wait behind other prompts; requests end, and so begin, in iterations, however long these are."""
        if not busy or not self._deviation:
            return 0.0
        if self.steady.engine.apart:
            # All that ended in a decode step is prefilled before the next one: only those of one step wait for another.
            return service * busy / (2 * self.steady.engine.chunks)
        idle = max(1 - busy, NO_SPARE)
        wait = form(
            "queue_wait",
            service_time=service,
            servers=self.places * self.steady.engine.ranks,
            occupancy=min(busy, 1.0),
            load=busy,
            spare_load=idle,
        )
        wait *= 1 + self.steady.engine.variation
        return wait * form("order_lost", deviation=self._deviation, spacing=1 / self.steady.full, idle=idle)

    def early_wait(self, state: State, waves: float) -> float:
        """By how much the mean wait of the first waves behind a burst is longer than that of the steady state.

        The first waves are narrower than the loop, and so prefill is busier while they begin.
        """
        engine = self.steady.engine
        if self.in_step or self.concurrency > engine.limit or not engine.steps or waves <= 1:
            return 0.0

        def others(value: float) -> float:
            return form("others_in_loop", decoding=value, concurrency=self.running)

        busy = others(state.load * state.iteration / engine.groups / self.steady.full)
        ramp, later = self.running / self.places * engine.chunks, math.ceil(waves) - 1
        if busy >= 1:
            return 0.0
        extra = 0.0
        for wave in range(1, min(later, MANY) + 1):
            dense = others(form("wave_occupancy", ramp=ramp, deviation=self._deviation, waves=wave))
            if dense <= busy:
                break
            extra += self._first_token(state, dense) - self._first_token(state, busy)
        return extra / later

    def _first_token(self, state: State, busy: float) -> float:
        """The time to the first token where prefill is busy in such a part of the iterations."""
        engine, begun = self.steady.engine, busy * self.steady.full
        share = min(1.0, max(1 - math.exp(-begun), busy))
        boundary = state.decode + share * max(state.mixed - state.decode, 0.0)
        seen = state.decoding * (1 - 1 / self.running)
        with_it = min(engine.whole_chunk, engine.prompt / engine.chunks * (1 + begun))
        alone = engine.chunks * self.steady.chunk_time(seen, 0.0, with_it) if engine.chunk_prompts > 1 else 0.0
        return boundary + self._queue(state.service, busy) + alone

    @property
    def _deviation(self) -> float:
        """Standard deviation of the iterations that a request takes."""
        engine = self.steady.engine
        steps = engine.generates.deviation * engine.steps / max(engine.generate - 1, 1)
        packed = 0.0 if engine.mix is None else engine.mix.order_lost
        return math.hypot(steps, engine.chunks * math.sqrt(engine.variation), packed)

    def _saturated(self, full: State) -> State:
        """Where prefill is never idle: all that do not decode wait for it."""
        engine, most = self.steady.engine, self.steady.capacity
        load = most.prefill_load
        waiting = self.running / load - engine.steps * full.iteration
        return dataclasses.replace(full, load=load, queue=max(0.0, waiting - full.boundary - full.prefill))

    # --- requests that stay in step

    def _in_step(self) -> State:
        steady, engine, present = self.steady, self.steady.engine, self.running
        if engine.apart:
            return waves(steady, present)
        packs = math.ceil(present / (self.places) - CLOSE)
        missed = 1 if packs > 1 and self._misses else 0
        arrivals = form(
            "loop_arrivals", concurrency=present, decode_steps=engine.steps, chunks=engine.chunks, missed=missed
        )
        arrivals /= engine.groups
        if packs * engine.chunks >= engine.steps + engine.chunks + missed:
            return self._saturated(self._mixed_up(steady.full))
        steps = max(engine.steps, 1.0)
        behind = (packs - 1) * engine.chunks
        seen = (present - 1) * max(0.0, 1 - (engine.chunks + missed) / steps)
        share = min(1.0, behind / steps)
        prompts = min(present, float(self.places)) / engine.groups
        mean_prompts = present / packs / engine.groups
        tokens = engine.prompt / engine.chunks
        whole = steady.with_tokens(0.0, tokens * prompts)
        decode = engine.times.decode(1 + seen) if engine.steps else whole
        last = present - mean_prompts * engine.groups
        mixed = steady.with_tokens(last, tokens * mean_prompts) if last > 0 else decode
        mean = form("mean_iteration_time", decode_time=decode, chunk_extra_time=mixed - decode, chunk_share=share)
        own = steady.with_tokens(last, tokens * self._shared(packs) / engine.groups)
        boundary = missed * ((packs - 1) * mixed + decode) / packs
        rate = arrivals * engine.groups / mean
        return State(
            rate, min(steady.decoding(arrivals), present), rate * engine.chunks * own, share, tokens * mean_prompts,
            decode, mixed, mean, boundary, 0.0, 0.0, engine.chunks * own, engine.chunks * own, math.inf,
            engine.way_time(present),
        )  # fmt: skip

    def _shared(self, packs: int) -> float:
        """Prompts of the pack of a request, in the mean: all packs but the last are full."""
        most = self.steady.engine.chunk_prompts * self.steady.engine.groups
        rest = self.running - (packs - 1) * most
        return ((packs - 1) * most**2 + rest**2) / self.running
