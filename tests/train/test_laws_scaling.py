"""How time and memory move with their symbols: in proportion, and in the direction that is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.law_cases import RESOURCES, few, points_of, regimes, relative, some
from support.points import STRUCTURES, Values, directions
from support.strategies import seeds

from symperf.formulas.language.symbols import SYMBOLS


@given(some, seeds, regimes, st.floats(0.01, 100))
@few
def test_time_is_homogeneous(name: str, seed: int, regime: str, factor: float) -> None:
    """A machine s times as fast in everything, latencies included, takes 1/s of the time."""
    batch = points_of(name, seed, regime)
    quick = {n: batch[n] / factor if n.endswith("_latency") else batch[n] * factor for n in RESOURCES & set(batch)}
    slow, fast = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | quick)
    assert np.allclose(fast["time"] * factor, slow["time"], rtol=1e-12, atol=0)
    assert np.array_equal(fast["memory"], slow["memory"])
    for path in slow.operations():
        assert np.allclose(fast[path] * factor, slow[path], rtol=1e-12, atol=0), path


@given(some, seeds, st.floats(0.01, 100))
@few
def test_memory_is_homogeneous(name: str, seed: int, factor: float) -> None:
    """Memory is proportional to the bytes of the formats and of the workspace."""
    batch = points_of(name, seed)
    fixed = ("workspace_bytes", "context_bytes", "collective_buffer_bytes")
    formats = [n for n, e in SYMBOLS.items() if n in batch and (e.group == "format" or n in fixed)]
    wide = {n: batch[n] * factor for n in formats}
    one, two = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | wide)
    assert np.allclose(two["memory"], one["memory"] * factor, rtol=1e-12, atol=0)


@given(some, seeds, regimes, st.data())
@few
def test_time_moves_as_proved(name: str, seed: int, regime: str, data: Any) -> None:
    """What the fold proves of a symbol holds in numbers, at every point."""
    ways = {n: way for n, way in directions(STRUCTURES[name]).items() if way and n != "flop"}
    symbol = data.draw(st.sampled_from(sorted(ways)), label="symbol")
    batch = points_of(name, seed, regime)
    old = batch[symbol]
    random = np.random.default_rng(seed)
    if SYMBOLS[symbol].domain == "integer >= 1":
        new = old + np.ceil(old * 10.0 ** random.uniform(-3, 1, old.shape))
    else:
        new = old * (1 + 10.0 ** random.uniform(-3, 1, old.shape)) + (old == 0) * random.random(old.shape)
    before, after = Values(STRUCTURES[name], batch), Values(STRUCTURES[name], batch | {symbol: new})
    against = (before["time"] - after["time"]) * ways[symbol]
    assert relative(against, before["time"]) < 1e-12
