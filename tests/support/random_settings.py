"""Random serving settings, and how far the closed forms are from simulations of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from support.serving_cases import Affine
from symperf.serve.engine import Engine
from symperf.serve.mix import mix_of
from symperf.serve.simulator import Measured, closed_loop, poisson, simulate
from symperf.serve.steady import Steady
from symperf.serve.workload import Workload

if TYPE_CHECKING:
    from symperf.serve.state import State


@dataclass(frozen=True)
class Setting:
    """One setting: what runs, and how its requests come.

    Attributes:
        engine: of affine iterations.
        part: of its capacity, as a load or as a number in flight.
        closed: whether a number is in flight.
    """

    engine: Engine
    part: float
    closed: bool

    @property
    def name(self) -> str:
        """What it is, in a line."""
        engine = self.engine
        prompts = f"{engine.prompt:.0f} in, {engine.generate} out, K {engine.chunks:.2f}, J {engine.chunk_prompts:.2f}"
        return f"{'closed' if self.closed else 'Poisson'}: {prompts}, spread {engine.generate_ratio:.2f}"


@dataclass(frozen=True)
class Compared:
    """A setting in closed form and simulated; errors are over the simulation's.

    Attributes:
        setting: which.
        used: throughput over the capacity, simulated.
        state: the closed form.
        found: the simulation.
    """

    setting: Setting
    used: float
    state: State
    found: Measured

    @property
    def errors(self) -> dict[str, float]:
        """Of TTFT, TPOT and throughput."""
        return {
            "ttft": self.state.first_token / self.found.first_token - 1,
            "tpot": self.state.iteration / self.found.per_token - 1,
            "throughput": self.state.load / self.found.throughput - 1,
        }


def draw(seed: int) -> Setting:
    """A random setting: odd ones are closed loops, half have lengths that spread, some a prefix."""
    source = random.Random(seed)
    chunk = source.choice((512, 1024, 2048))
    prompt, generate = round(64 * 2 ** source.uniform(0, 6)), round(32 * 2 ** source.uniform(0, 4))
    load = Workload()
    if source.random() < 0.5:
        load = Workload(prompt_spread=source.uniform(0, 0.8), generate_spread=source.uniform(0.05, 0.9))
    elif source.random() < 0.4:
        load = Workload(prefix=prompt // 2, hit_rate=source.random())
    times = Affine(source.uniform(0.004, 0.02), source.uniform(1e-5, 1e-4), source.uniform(5e-6, 4e-5))
    mix, steps = mix_of(load, prompt, generate, chunk), generate - 1.0
    if mix is None:
        chunks, packed = -(-prompt // chunk), max(1, chunk // prompt)
        engine = Engine(times, prompt, generate, steps, chunks, packed, 1, 10**6)
    else:
        numbers = mix.tokens, generate, steps, mix.chunks, mix.packed, 1, 10**6
        engine = Engine(times, *numbers, generate_ratio=load.generate_spread, chunk=float(chunk), mix=mix)
    return Setting(engine, source.uniform(0.15, 0.9), closed=seed % 2 == 1)


@dataclass(frozen=True)
class Apart(Affine):
    """Affine iterations of which prompts have their own, which come first."""

    apart: bool = True

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        return self.decode(sequences) + self.prefill(tokens, ranks)


def prefilled_first(setting: Setting) -> Setting:
    """The same under random arrivals where prompts are prefilled before sequences decode again, with 400 places."""
    usual = setting.engine.times
    assert isinstance(usual, Affine)
    times = Apart(usual.base, usual.each, usual.token, usual.shared)
    return replace(setting, engine=replace(setting.engine, times=times, limit=400), closed=False)


def compare(setting: Setting, requests: int = 6000, seed: int = 7) -> Compared:
    """A setting in closed form and simulated."""
    engine, steady = setting.engine, Steady(setting.engine)
    if setting.closed:
        count = max(1, round(setting.part * steady.capacity.decoding))
        after = max(requests, 20 * count)
        found = simulate(engine, closed_loop(engine, count, seed=seed), after + 30 * count, skip=30 * count)
        state = steady.at_concurrency(count)
    else:
        load = setting.part * steady.capacity.load
        found = simulate(engine, poisson(engine, load, seed), requests, skip=requests // 5)
        at = steady.at_load(load)
        assert at is not None
        state = at
    return Compared(setting, found.throughput / steady.capacity.load, state, found)
