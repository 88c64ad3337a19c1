"""Context parallelism: rings run step by step with their mask counted, all-to-alls and gathers by their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import value

from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import flop
from symperf.formulas.parallel import context_parallel as cp

if TYPE_CHECKING:
    from collections.abc import Callable

durations = st.floats(0, 10)
parts = st.integers(1, 24)


def contiguous(device: int, _: int) -> tuple[int, ...]:
    """One chunk of the sequence for each device, in order."""
    return (device,)


def zigzag(device: int, count: int) -> tuple[int, ...]:
    """Of 2c chunks the i-th from the start and the i-th from the end."""
    return device, 2 * count - 1 - device


def visible(queries: tuple[int, ...], keys: tuple[int, ...]) -> float:
    """Part of the pairs of two devices' tokens that a causal mask leaves: whole and half pairs of chunks."""
    pairs = [1.0 if q > k else 0.5 if q == k else 0.0 for q in queries for k in keys]
    return sum(pairs) / len(pairs)


def ring(count: int, block: float, send: float, chunks: Callable[[int, int], tuple[int, ...]]) -> float:
    """Run a causal ring: in a step every device computes on what it has and passes it on; then all go on together."""
    time = 0.0
    for step in range(count):
        work = max(
            block * visible(chunks(device, count), chunks((device - step) % count, count)) for device in range(count)
        )
        time += max(work, send) if step + 1 < count else work
    return time


@given(parts, durations, durations)
def test_a_balanced_causal_ring_run_step_by_step(count: int, block: float, send: float) -> None:
    """Every step of every device computes half of its pairs."""
    for device in range(count):
        for other in range(count):
            assert visible(zigzag(device, count), zigzag(other, count)) == 0.5
    closed = float(cp.ring_attention_time(block, send, 0.5, count))
    assert ring(count, block, send, zigzag) == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(parts, durations, durations)
def test_an_unbalanced_causal_ring_run_step_by_step(count: int, block: float, send: float) -> None:
    """Contiguous parts: some device computes a whole block in every step but the first."""
    closed = float(cp.unbalanced_ring_attention_time(block, send, count))
    assert ring(count, block, send, contiguous) == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(parts, durations, durations, durations)
def test_a_ring_backward_run_step_by_step(count: int, block: float, send: float, gradients: float) -> None:
    """Keys go on beside the first c - 1 steps, gradients of a step beside the next, and home after the last."""
    time = sent = 0.0
    for step in range(count):
        keys, sums = step + 1 < count, step > 0
        sent += keys * 1 + sums * 1
        time += max(block / 2, keys * send + sums * gradients)
    if count > 1:
        time += gradients
        sent += 1
    closed = float(cp.ring_attention_backward_time(block, send, gradients, 0.5, count))
    assert time == pytest.approx(closed, rel=1e-9, abs=1e-12)
    assert sent == float(cp.ring_attention_backward_bytes(1, count))


@given(parts)
def test_the_imbalance_of_contiguous_parts(count: int) -> None:
    """Causal pairs of the last part over the mean, counted; balanced parts have as many each."""
    pairs = [sum(visible((d,), (k,)) for k in range(count)) for d in range(count)]
    assert max(pairs) / (sum(pairs) / count) == pytest.approx(float(cp.contiguous_imbalance(count)))
    slow = float(cp.unbalanced_ring_attention_time(1, 0, count))
    balanced = float(cp.ring_attention_time(1, 0, 0.5, count))
    assert slow / balanced == pytest.approx(float(cp.contiguous_imbalance(count)))


@given(parts, durations, durations)
def test_bounds_of_rings(count: int, block: float, send: float) -> None:
    """One part sends nothing; hidden transfers leave the work; never below either stream nor above both in turn."""
    time = float(cp.ring_attention_time(block, send, 1, count))
    slack = 1 + 1e-12
    assert max(count * block, (count - 1) * send) <= time * slack
    assert time <= (count * block + (count - 1) * send) * slack
    assert float(cp.ring_attention_time(block, send, 1, 1)) == block
    assert float(cp.unbalanced_ring_attention_time(block, send, 1)) == block / 2
    assert float(cp.ring_attention_bytes(block, 1)) == float(cp.ring_attention_backward_bytes(block, 1)) == 0


def test_the_least_tokens_of_a_ring() -> None:
    """Liu et al. 2023 table 2: A100 with NVLink needs a block of 1K tokens, with InfiniBand 25K."""
    for bandwidth, expected in ((300e9, 1e3), (12.5e9, 24.5e3)):
        tokens = float(cp.ring_attention_least_tokens(32, 32, 2, 1, 312e12, bandwidth) * flop)
        assert tokens == pytest.approx(expected, rel=0.06)


@given(st.integers(1, 64), st.integers(0, 4), st.integers(0, 3), st.integers(1, 512))
def test_ulysses_counted(tokens: int, heads_log: int, ways_log: int, width: int) -> None:
    """Deal heads one by one: every device gets all tokens of its heads, having sent the closed form's bytes."""
    count = 2**ways_log
    key_value_heads = 2**heads_log
    heads = key_value_heads * count
    assert cp.ulysses_holds(heads, count)
    queries = float(cp.query_part_bytes(tokens, heads, width, 2))
    keys = float(cp.dealt_key_value_bytes(tokens, key_value_heads, width, 2, count))
    sent = 0
    for head in range(heads):
        if head * count // heads:
            sent += 2 * tokens * width * 2
    copies = max(key_value_heads, count)
    for head in range(copies):
        if head * count // copies:
            sent += 2 * tokens * width * 2
    assert float(cp.ulysses_bytes(queries, keys, count)) == pytest.approx(sent, rel=1e-12)


def test_ulysses_sends_less_than_a_ring_in_many_parts() -> None:
    """Per device a ring's bytes grow with c, those of all-to-alls shrink with the tokens (Jacobs et al. 2023)."""
    sequence, heads, width = 2**20, 64, 128
    previous = float("inf")
    for count in (2, 8, 32, 64):
        tokens = sequence // count
        queries = float(cp.query_part_bytes(tokens, heads, width, 2))
        dealt = float(cp.dealt_key_value_bytes(tokens, heads, width, 2, count))
        all_to_all = float(cp.ulysses_bytes(queries, dealt, count))
        passed = float(cp.ring_attention_bytes(cp.key_value_part_bytes(tokens, heads, width, 2), count))
        assert all_to_all < previous
        assert (passed > all_to_all) == (count > 2)
        previous = all_to_all


@given(st.integers(1, 8), st.integers(1, 16), st.floats(1, 1e9))
def test_times_are_those_of_the_collectives(inner: int, outer: int, size: float) -> None:
    """Four all-to-alls; a gather of all parts; and nothing for one part."""
    time = value(cp.ulysses_time(size, 2 * size, inner, outer))
    assert time == pytest.approx(4 * value(c.hierarchical_all_to_all_time(size, inner, outer)), rel=1e-12)
    gathered = value(cp.gathered_key_value_time(size, inner, outer))
    assert gathered == pytest.approx(
        value(c.hierarchical_all_gather_time(size * inner * outer, inner, outer)), rel=1e-12
    )
    assert value(cp.scattered_key_value_time(size, inner, outer)) == pytest.approx(gathered, rel=1e-12)
    if inner * outer == 1:
        assert time == gathered == 0


@given(parts, st.integers(1, 4), st.integers(1, 5))
def test_partial_results_are_merged_one_by_one(count: int, tokens: int, width: int) -> None:
    """Each step's result is read once; the sum is written at every one of them, and read at all but the first."""
    read = written = 0
    for step in range(count if count > 1 else 0):
        read += tokens * width * (1 if step == 0 else 2)
        written += tokens * width
    assert float(cp.merged_partials_bytes(tokens, width, 1, count)) == read + written
