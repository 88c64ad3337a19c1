"""Exchanges of tokens by kernels made for experts, against what DeepSeek publishes of its own, and against laws."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part

from symperf.formulas.language import symbols as sym
from symperf.formulas.parallel.expert_exchange import bulk_exchange_time, direct_exchange_time, places_per_token

FP8, BF16 = 1 + 4 / 128, 2.0
H800 = {sym.scale_up_bandwidth: 200e9, sym.scale_out_bandwidth: 50e9}
DIRECT = {
    sym.exchange_latency: 11.3e-6,
    sym.exchange_hop_latency: 14.5e-6,
    sym.exchange_efficiency: 0.574,
    sym.exchange_out_efficiency: 0.942,
}
"""Of an H100, from tables of others: none of these is fitted to the times below."""
LOW_LATENCY = {
    8: (77, 114),
    16: (118, 195),
    32: (155, 273),
    64: (173, 314),
    128: (192, 369),
    256: (194, 360),
}
"""Microseconds there (fp8) and back (bf16): DeepEP docs/legacy.md, H800, 128 tokens of 7168, 8 experts each."""
BULK = {
    sym.bulk_exchange_latency: 31e-6,
    sym.bulk_hop_latency: 33e-6,
    sym.exchange_units: 20,
    sym.exchange_unit_efficiency: 0.0335,
    sym.exchange_out_efficiency: 0.9,
}
NORMAL = {1: (153, 158), 2: (43, 43), 4: (58, 57), 8: (51, 50)}
"""GB/s by nodes, there and back: the same document, 4096 tokens, at most four groups; at one node of NVLink, else of
the adapter, where the copy for the own node counts."""


SECOND = {2: (90, 81, 90, 91), 4: (61, 61)}
"""GB/s of adapters by nodes, there and back on Hopper and on Blackwell: DeepEP V2, README, 8192 tokens, all experts."""


def seconds(time: Any, *constants: dict[Any, float]) -> float:
    return float(time.subs({name: value for each in constants for name, value in each.items()}).evalf())


def test_low_latency_kernels_of_deepep_between_nodes() -> None:
    """Twelve times on 8 to 256 devices, of constants that were found on other devices."""
    errors = []
    for ranks, there_and_back in LOW_LATENCY.items():
        for width, measured in zip((FP8, BF16), there_and_back, strict=True):
            found = seconds(direct_exchange_time(128, 8, 7168, width, 1, ranks, ranks // 8), H800, DIRECT)
            errors.append(abs(found * 1e6 / measured - 1))
    assert sorted(errors)[len(errors) // 2] < 0.08
    assert sum(errors) / len(errors) < 0.1


@pytest.mark.parametrize("nodes", NORMAL)
def test_normal_kernels_of_deepep(nodes: int) -> None:
    """One constant from the times inside a node, one from those of four and eight nodes."""
    domains = min(nodes, 4)
    counted = places_per_token(8, 8 if nodes == 1 else domains)
    for width, measured in zip((FP8, BF16), NORMAL[nodes], strict=True):
        found = seconds(bulk_exchange_time(4096, 8, 7168, width, 1, 8 * nodes, nodes, domains), H800, BULK)
        assert 4096 * 7168 * width * float(counted) / found / 1e9 == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize("nodes", SECOND)
def test_second_kernels_of_deepep_between_nodes(nodes: int) -> None:
    """Predicted: what adapters carry is that of the first kernels, where links inside are no limit."""
    free = BULK | {sym.exchange_units: 132, sym.scale_up_bandwidth: 450e9, sym.scale_out_bandwidth: 50e9}
    counted = float(places_per_token(8, nodes))
    found = seconds(bulk_exchange_time(8192, 8, 7168, FP8, 1, 8 * nodes, nodes, nodes), free)
    for measured in SECOND[nodes]:
        assert 8192 * 7168 * FP8 * counted / found / 1e9 == pytest.approx(measured, rel=0.15)


@given(st.integers(1, 64), st.integers(1, 512))
@part(0.5)
def test_a_token_goes_to_no_more_places_than_experts_or_places(experts: int, places: int) -> None:
    found = float(places_per_token(sympy.Integer(experts), sympy.Integer(places)))
    assert 1 - 1e-12 <= found <= min(experts, places) + 1e-9


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 32]), st.integers(1, 16))
@part(0.5)
def test_limited_routing_crosses_with_no_more(inner: int, outer: int, experts: int) -> None:
    """A token that may go to fewer domains sends no more by adapters; and one rank alone sends nothing."""
    slow = H800 | {sym.scale_up_bandwidth: 1e18}
    times = [
        seconds(bulk_exchange_time(4096, experts, 7168, 1, 1, inner * outer, outer, limit), slow, BULK)
        for limit in (1, max(1, outer // 2), outer)
    ]
    assert times == sorted(times)
    assert (times[0] == 0) == (inner * outer == 1)
