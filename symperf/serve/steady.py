"""The steady state of a replica under a load.

All follows from x, the mean number of prompts that arrive during an iteration: by Little's law the sequences that
decode (n = x N_s p), from these the iterations, and from their mean time the load (x p / tau). So every quantity is
a closed form of x, and only the x of a given load is sought: the least solution of x = Lambda tau(x) / p, which
exists for every load below the capacity, as tau never falls (Tarski 1955), and never falls with the load.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from . import lockstep
from .busy_period import cycle, seen_by_a_request
from .program import form
from .roots import root_of
from .state import Capacity, State

if TYPE_CHECKING:
    from .engine import Engine

CLOSE = 1e-13
"""Relative change at which a solution is taken as found."""
NORMAL = (
    (0.0, 8 / 15),
    (1.3556262, 0.2220759),
    (-1.3556262, 0.2220759),
    (2.8569700, 0.0112574),
    (-2.8569700, 0.0112574),
)
"""Places, in standard deviations, and weights of the mean over a normal law (Gauss and Hermite, five points)."""
NO_SPARE = 1e-12
"""Least part of a capacity that is taken as spare, where rounding to whole tiles leaves none."""


class Steady:
    """The steady states of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    # --- iterations

    def iterations(self, arrivals: float, seen: float, spread: float = 0.0) -> tuple[float, float, float, float, float]:
        """Share and tokens of iterations that prefill, times without and with it, and their mean.

        Args:
            arrivals: x.
            seen: sequences that decode, as a request that decodes sees them.
            spread: standard deviation of their number.
        """
        engine = self.engine
        share = min(
            1.0,
            form("prefilling_share", arrivals=arrivals, chunks=engine.chunks, chunk_prompts=engine.chunk_prompts),
        )
        tokens = engine.prompt / engine.chunks
        if share and engine.chunk_prompts > 1:
            tokens = min(max(tokens, min(arrivals, self.full) * engine.prompt / share), engine.whole_chunk)
        all_ranks = lockstep.meet(engine, min(arrivals, self.full), (share, tokens), seen, spread)
        share, tokens, ranks = all_ranks.share, all_ranks.tokens, all_ranks.prefilling
        seen, spread = all_ranks.seen, all_ranks.spread
        if not engine.steps:
            mixed = self.with_tokens(0.0, tokens, ranks)
            return share, tokens, mixed, mixed, mixed
        most = self._most if spread else math.inf
        points = NORMAL if spread else ((0.0, 1.0),)
        counts = [(min(max(seen + place * spread, 1.0), most), weight) for place, weight in points]
        decode = sum(weight * engine.times.decode(count) for count, weight in counts)
        mixed = sum(weight * self.with_tokens(count, tokens, ranks) for count, weight in counts)
        mean = form(
            "mean_iteration_time", decode_time=decode, chunk_extra_time=max(mixed - decode, 0.0), chunk_share=share
        )
        return share, tokens, decode, mixed, mean

    def opened(self, arrivals: float, seen: float, spread: float = 0.0) -> tuple[float, float, float, float, float]:
        """`iterations` under random arrivals; where prompts have iterations of their own, a decode step with them."""
        engine = self.engine
        if not (self.paused and arrivals):
            return self.iterations(arrivals, seen, spread)
        decode = self.iterations(0.0, seen, spread)[2]
        found = cycle(self, arrivals, decode)
        tokens = min(arrivals * engine.prompt / found.iterations, engine.whole_chunk)
        return found.share, tokens, decode, decode + found.busy / found.share, found.time

    def with_tokens(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        """An iteration with prompt tokens; between whole prompts the mean of those that hold one fewer and more.

        Args:
            sequences: that the replica decodes.
            tokens: of prompts.
            ranks: part of the replicas in lock step that prefill.
        """
        times, unit = self.engine.times, self.engine.prompt / self.engine.chunks
        count = max(tokens / unit, 1.0)
        low = min(math.floor(count + CLOSE), max(self.engine.chunk_prompts - 1, 1))
        part = count - low

        def whole(units: float) -> float:
            return times.mixed(sequences, units * unit, ranks) if sequences else times.prefill(units * unit, ranks)

        return whole(low) if abs(part) < CLOSE else (1 - part) * whole(low) + part * whole(low + 1)

    def decoding(self, arrivals: float) -> float:
        """Sequences that decode: n = x N_s p."""
        return arrivals * self.engine.steps * self.engine.groups

    # --- capacity

    @property
    def full(self) -> float:
        """The x where every iteration holds a full chunk."""
        return self.engine.chunk_prompts / self.engine.chunks

    @property
    def paused(self) -> bool:
        """Whether sequences pause while prompts are prefilled, as long as any wait: decoding is what is put off."""
        engine = self.engine
        return engine.apart and engine.steps > 0 and engine.ranks == 1

    @property
    def most_arrivals(self) -> float:
        """The largest x: that of full chunks, or, where decoding is put off, that with which memory is full."""
        engine = self.engine
        return max(self.full, engine.limit / engine.steps / engine.groups) if self.paused else self.full

    @cached_property
    def _most(self) -> float:
        """Sequences that decode there, where nothing is left to chance, and memory is no limit; at least one."""
        return max(1.0, self.decoding(self.most_arrivals))

    @cached_property
    def capacity(self) -> Capacity:
        """The largest load, and what limits it. At it nothing is left to chance: all iterations are alike."""
        engine = self.engine
        limit, arrivals, full = "chunk", self.most_arrivals, self.most_arrivals
        if self._present(full) > engine.limit:
            limit = engine.limited_by
            low, high = 0.0, full
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if self._present(middle) <= engine.limit else (low, middle)
            arrivals = low
        _share, _tokens, _, mixed, mean = self.opened(arrivals, self.decoding(arrivals))
        load = arrivals * engine.groups / mean
        prefill_load = form(
            "chunk_capacity",
            mixed_time=self.with_tokens(self._most if engine.steps and not self.paused else 0.0, engine.whole_chunk),
            chunks=engine.chunks,
            chunk_prompts=engine.chunk_prompts,
            pp=engine.groups,
        )
        if limit == "chunk":
            load = prefill_load
            cache_load = max(load, engine.limit / ((engine.chunks + engine.steps) * mixed))
        else:
            cache_load = load
        return Capacity(load, limit, arrivals, self.decoding(arrivals), cache_load, max(load, prefill_load))

    def _present(self, arrivals: float) -> float:
        """Sequences that decode or are prefilled, without chance."""
        engine = self.engine
        decoding = self.decoding(arrivals)
        _, tokens, _, mixed, mean = self.opened(arrivals, decoding)
        mixed = self.with_tokens(0.0, tokens) if self.paused else mixed
        return decoding + arrivals * engine.groups / mean * engine.chunks * mixed

    # --- a state

    def at_arrivals(self, arrivals: float, load: float | None = None) -> State:
        """The state in which x prompts arrive during an iteration.

        Args:
            arrivals: x, from 0 to that of full chunks.
            load: where x is known to belong to it; by default the load of x.
        """
        engine = self.engine
        others = self.decoding(arrivals)
        share, tokens, decode, mixed, mean = self._iterations_seen(arrivals)
        rate = arrivals * engine.groups / mean if load is None else load
        alone, cut = math.exp(-others), engine.chunk_prompts == 1
        beside = lockstep.prefilling_beside(engine, arrivals)
        aside = 1.0 if engine.apart else alone  # chunks in iterations of their own
        chunk_time = self.chunk_time(others, aside, tokens, beside)
        boundary = self.boundary(rate, alone, decode, chunk_time, tokens) + lockstep.boundary(
            engine, arrivals, share, (mixed, mean)
        )
        with_it = min(engine.whole_chunk, engine.prompt / engine.chunks * (1 + 2 * boundary * rate / engine.groups))
        prefill = engine.chunks * self.chunk_time(others, aside, tokens if cut else with_it, beside)
        service = engine.chunks * chunk_time
        servers = engine.chunk_prompts * engine.groups
        spare = max(servers / service - rate, NO_SPARE * servers / service)
        queue = cache = 0.0
        if rate:
            used = rate / (rate + spare)
            most = self.capacity.prefill_load
            last = max(most - rate, NO_SPARE * most)
            spare = form("spare_of_queue", occupancy=used, spare_load=spare, last_spare_load=last)
            queue = form(
                "queue_wait",
                service_time=service,
                servers=servers * engine.ranks,
                occupancy=used,
                load=rate,
                spare_load=spare,
            )
            queue *= 1 + engine.variation
            cache = self._cache_wait(rate, others + rate * prefill)
        return State(
            rate,
            min(others, float(engine.limit)),
            rate * prefill,
            share,
            tokens,
            decode,
            mixed,
            mean,
            boundary,
            queue,
            cache,
            prefill,
            service,
            spare,
            engine.way_time(others + rate * prefill),
        )

    def boundary(self, rate: float, alone: float, decode: float, mixed: float, tokens: float) -> float:
        """The mean wait for the iteration in progress."""
        engine = self.engine
        busy = 0.0
        if engine.chunk_prompts > 1:
            busy = min(1.0, rate * engine.prompt / engine.groups * mixed / tokens)
        return form(
            "boundary_wait",
            decode_share=(1 - alone) * (1 - busy),
            decode_time=decode,
            mixed_share=busy,
            mixed_time=mixed,
        )

    def _cache_wait(self, rate: float, present: float) -> float:
        limit, most = self.engine.limit, self.capacity.cache_load
        return form(
            "queue_wait",
            service_time=limit / most,
            servers=limit,
            occupancy=min(1.0, present / limit),
            load=rate,
            spare_load=max(most - rate, NO_SPARE * most),
        )

    def _iterations_seen(self, arrivals: float) -> tuple[float, float, float, float, float]:
        """`iterations` as a request that decodes sees them.

        It sees one sequence more than the mean, itself, and rather more than the mean of others, since those that
        wait for one prompt's prefill follow it closely. Near the capacity requests no longer come to decode at
        random, and there are never more than at it.
        """
        engine = self.engine
        most = self._most
        others = self.decoding(arrivals)
        first = self.opened(arrivals, min(1 + others, most))
        if not engine.steps or not arrivals:
            return first
        if self.paused:
            begun, beside = seen_by_a_request(self, arrivals, first)
            return self._at_random(begun, beside)
        _, tokens, decode, mixed, mean = first
        rate = arrivals / mean
        prefill = engine.chunks * mixed
        seen = engine.groups * form(
            "others_seen",
            load=rate,
            decode_steps=engine.steps,
            iteration_time=mean,
            prefill_time=prefill,
            apart=max(0.0, 1 - engine.chunks / engine.steps),
        )
        boundary = self.boundary(rate * engine.groups, math.exp(-others), decode, mixed, tokens)
        prefilled = form(
            "arrivals_seen",
            load=rate,
            iteration_time=mean,
            prefill_time=prefill,
            boundary_time=boundary,
            decode_steps=engine.steps,
        )
        return self._at_random(prefilled, seen)

    def _at_random(self, arrivals: float, others: float) -> tuple[float, float, float, float, float]:
        """Iterations beside so many others at random; from as many as can be on, their number varies no more."""
        most = self._most
        spread = math.sqrt(min(others, most - 1))
        return self.opened(min(arrivals, self.most_arrivals), min(1 + others, most), spread)

    def chunk_time(self, others: float, alone: float, tokens: float, ranks: float = 1.0) -> float:
        """An iteration with prompt tokens: beside sequences that decode, or alone with that probability."""
        if alone == 1:
            return self.with_tokens(0.0, tokens, ranks)
        seen = min(others / (1 - alone), self._most)
        return alone * self.with_tokens(0.0, tokens, ranks) + (1 - alone) * self.with_tokens(seen, tokens, ranks)

    def at_concurrency(self, concurrency: float) -> State:
        """The state of a closed loop: so many requests in flight, and a new one whenever one ends."""
        from .closed import ClosedLoop

        return ClosedLoop(self, concurrency).state()

    def at_load(self, load: float) -> State | None:
        """The state under a load; None from the capacity on."""
        if load >= self.capacity.load:
            return None
        if load == 0:
            return self.at_arrivals(0.0)
        return self.at_arrivals(self._arrivals(load), load)

    def _next(self, arrivals: float, load: float) -> float:
        return load * self._iterations_seen(arrivals)[-1] / self.engine.groups

    def _arrivals(self, load: float) -> float:
        """The least x with x = Lambda tau(x) / p, by Newton's method from below; false position where it passes it."""
        most = self.most_arrivals
        low = min(self._next(0.0, load), most)
        for _ in range(200):
            after = min(self._next(low, load), most)
            if after <= low * (1 + CLOSE):
                return low
            guess = min(low + (after - low) / (1 - self._slope(low, after, load)), most)
            guess = max(guess, after)
            found = self._next(guess, load)
            if found < guess * (1 - CLOSE):
                return root_of(lambda x: x - self._next(x, load), after, guess, CLOSE)
            low = guess
        return low

    def _slope(self, x: float, value: float, load: float) -> float:
        """The slope of tau at x on the side where it does not jump; 0 where it is too steep to be of use."""
        step = 1e-7 * x
        slopes = [abs(self._next(x + way * step, load) - value) / step for way in (-1, 1)]
        return slope if (slope := min(slopes)) < 1 else 0.0
