"""Requests that arrive at once: alone, or at the beginning of a run with a fixed number in flight, as of benchmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .closed import CLOSE, ClosedLoop
from .program import form

if TYPE_CHECKING:
    from .state import State
    from .steady import Steady


@dataclass(frozen=True)
class FiniteRun:
    """Means over requests that begin with a burst; times in seconds.

    Attributes:
        state: behind the burst; of requests that arrive at once and are not followed, the like of them.
        requests: M, of a replica.
        burst_first_token: mean time to the first token of those that are sent at once.
        burst_last_first_token: that of the last of them.
        first_token: mean of all.
        iteration: mean time of a decode step.
        duration: from the first request sent to the last token.
    """

    state: State
    requests: float
    burst_first_token: float
    burst_last_first_token: float
    first_token: float
    iteration: float
    duration: float

    @property
    def throughput(self) -> float:
        """Requests a second over the whole run, its beginning and its end included."""
        return self.requests / self.duration


@dataclass(frozen=True)
class Burst:
    """So many requests at one moment.

    Attributes:
        loop: a loop of as many in flight, of a replica.
    """

    loop: ClosedLoop

    @property
    def steady(self) -> Steady:
        """The steady states of the replica."""
        return self.loop.steady

    @property
    def requests(self) -> float:
        """How many arrive."""
        return self.loop.concurrency

    @property
    def waves(self) -> int:
        """How often all places are taken."""
        return math.floor(self.requests / self.steady.engine.limit * (1 + CLOSE))

    @property
    def rest(self) -> float:
        """Requests that come after them."""
        left = self.requests - self.waves * self.steady.engine.limit
        return left if left > CLOSE * self.requests else 0.0

    @property
    def _last(self) -> Burst | None:
        """The last wave as a burst of its own, where others come before it."""
        if self.waves + bool(self.rest) < 2:
            return None
        return Burst(ClosedLoop(self.steady, self.rest or float(self.steady.engine.limit)))

    def _wait(self, state: State, wave: int) -> float:
        """The time after which a wave gets the places of the one before it, and its turn behind prompts that wait."""
        return wave * (state.queue + state.prefill + self.steady.engine.steps * state.iteration)

    def first_token(self, state: State) -> float:
        """Mean time to the first token."""
        limit, waves = self.steady.engine.limit, self.waves
        total = 0.0
        if waves:
            whole = self._prefilled(min(self.requests, float(limit)))
            total = sum(limit * (self._wait(state, wave) + whole) for wave in range(waves))
        if self.rest:
            total += self.rest * (self._wait(state, waves) + self._prefilled(self.rest))
        return total / self.requests

    def last_first_token(self, state: State) -> float:
        """Time to the first token of the last one, whose pack may hold fewer prompts than the others."""
        last = self.rest or min(self.requests, float(self.steady.engine.limit))
        engine, wave = self.steady.engine, self.waves if self.rest else self.waves - 1
        whole = math.floor(self._packs(last) + CLOSE) if last > self.loop.places else 0
        left = last - whole * self.loop.places
        found = self._wait(state, wave)
        if whole:
            behind, risen = self._behind(whole * self.loop.places)
            seen = form("mean_burst_decoding", chunk_prompts=self.loop.places, packs_behind=behind, risen=risen)
            time = self._beside(seen, engine.whole_chunk)
            found += form("last_first_token_time", chunks=engine.chunks, packs=whole, mixed_time=time)
        if left > CLOSE * last:
            seen = min(whole * self.loop.places, engine.steps / engine.chunks * self.loop.places)
            found += engine.chunks * self._beside(seen, engine.prompt / engine.chunks * left / engine.groups)
        return found

    def _packs(self, requests: float) -> float:
        return max(1.0, requests / self.loop.places)

    def _prefilled(self, requests: float) -> float:
        """Mean time to the first token where all that arrive at once have a place."""
        engine = self.steady.engine
        behind, risen = self._behind(requests)
        tokens = min(engine.whole_chunk, engine.prompt / engine.chunks * requests / engine.groups)
        seen = form("burst_decoding", chunk_prompts=self.loop.places, packs_behind=behind, risen=risen)
        packs, time = self._packs(requests), self._beside(seen, tokens)
        return form("burst_first_token_time", chunks=engine.chunks, packs=packs, mixed_time=time)

    def _behind(self, requests: float) -> tuple[float, float]:
        """Packs behind the first, and the part of them that is prefilled as its requests end."""
        engine, behind = self.steady.engine, self._packs(requests) - 1
        return behind, min(1.0, engine.steps / engine.chunks / behind) if behind else 1.0

    def _beside(self, seen: float, tokens: float) -> float:
        """An iteration with prompt tokens beside a mean number of sequences, which may be below one."""
        engine = self.steady.engine
        part = min(1.0, seen) if engine.steps and not engine.apart else 0.0
        alone = self.steady.with_tokens(0.0, tokens) if part < 1 else 0.0
        return (1 - part) * alone + (part * self.steady.with_tokens(max(seen, 1.0), tokens) if part else 0.0)

    def iteration(self, state: State) -> float:
        """Mean time of a decode step; until the last wave has the places it is that of a loop.

        u is the time from the first to the last prefill over that of decoding, in iterations. Two requests whose
        prefills lie d iterations apart share all decode steps but d; the mean over all pairs is 1 - u / 3, or
        (1 - 1 / (3 u)) / u where the first ends before the last begins. What is prefilled behind a request while it
        decodes is u / 2 of its steps in the mean, or 1 - 1 / (2 u). Of lengths that are uniform with a ratio r, the
        shorter of two is 1 - r / 3 of the mean.
        """
        engine = self.steady.engine
        if not engine.steps:
            return state.iteration
        if self._last is not None:
            part = self._last.requests / self.requests
            return (1 - part) * state.iteration + part * self._last.iteration(state)
        packs = self._packs(self.requests)
        apart = (packs - 1) * engine.chunks / engine.steps
        shared = 1 - apart / 3 if apart <= 1 else (1 - 1 / (3 * apart)) / apart
        share = apart / 2 if apart <= 1 else 1 - 1 / (2 * apart)
        seen = 1 + (self.requests - 1) * shared * (1 - engine.generate_ratio / 3)
        decode = engine.times.decode(seen)
        mixed = self.steady.with_tokens(seen, min(engine.whole_chunk, self.requests * engine.prompt))
        return form(
            "mean_iteration_time", decode_time=decode, chunk_extra_time=max(mixed - decode, 0.0), chunk_share=share
        )

    def alone(self) -> FiniteRun:
        """The burst, and nothing after it."""
        state = self.loop.state()
        first, last, step = self.first_token(state), self.last_first_token(state), self.iteration(state)
        return FiniteRun(state, self.requests, first, last, first, step, self._duration(first, last, step))

    def _duration(self, first: float, last: float, step: float) -> float:
        """Until the last token: of the request that begins last, or of the longest one; the last wave is one by itself.

        The last to begin sees the part 1 - u / 2 of the steps of the others, or 1 / (2 u), and no prefill.
        """
        engine = self.steady.engine
        if not engine.steps:
            return last
        if self._last is not None:
            before = self.waves if self.rest else self.waves - 1
            return self._wait(self.loop.state(), before) + self._last.alone().duration
        apart = self._behind(self.requests)[0] * engine.chunks / engine.steps
        shared = 1 - apart / 2 if apart <= 1 else 1 / (2 * apart)
        present = min(self.requests, float(engine.limit))
        late = engine.times.decode(1 + (present - 1) * shared * (1 - engine.generate_ratio / 3))
        longest = 1 + engine.generate_ratio * (self.requests - 1) / (self.requests + 1)
        return max(last + engine.steps * late, first + engine.steps * longest * step)


def finite_run(loop: ClosedLoop, requests: float) -> FiniteRun:
    """A run of so many requests, of which as many as may be in flight are sent at once; the others follow them."""
    if requests <= loop.concurrency:
        return Burst(ClosedLoop(loop.steady, requests)).alone()
    state, burst, engine = loop.state(), Burst(loop), loop.steady.engine
    first, last = burst.first_token(state), burst.last_first_token(state)
    waves = requests / loop.concurrency
    steady = state.first_token + loop.early_wait(state, waves)
    mean = form("finite_run_time", burst_time=first, first_token_time=steady, burst_share=1 / waves)
    decoded = engine.steps * state.iteration
    duration = waves * (mean + decoded)
    mixed = engine.generates.deviation * math.sqrt(3 * waves) * state.iteration
    if loop.concurrency > engine.limit:
        duration += state.cache / 2 + min(decoded / 2, mixed)
    elif loop.in_step:
        whole = math.floor(waves + CLOSE)
        part = waves - whole
        duration = last + (whole - 1) * steady + whole * decoded
        if part > CLOSE:
            duration = max(duration, 2 * first * part + whole * steady + (whole + 1) * decoded)
    else:
        duration += min(decoded / 2, last - first + mixed)
    return FiniteRun(state, requests, first, last, mean, state.iteration, duration)
