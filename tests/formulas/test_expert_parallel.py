"""Expert parallelism: tokens dealt one by one, conserved over devices, and the figures of DeepSeek-V3."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import OUT, UP, value
from support.strategies import seeds

from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import flop
from symperf.formulas.parallel import expert_parallel as ep

powers = st.integers(0, 5).map(lambda exponent: 2**exponent)


@given(seeds, powers, st.integers(1, 8), st.integers(1, 40))
def test_a_dispatch_counted(seed: int, devices: int, choices: int, tokens: int) -> None:
    """Route tokens at random: the fullest device has the imbalance times the mean, and messages are what it gets."""
    experts = 32
    assert ep.experts_divide(experts, devices)
    random = np.random.default_rng(seed)
    got = Counter(dict.fromkeys(range(devices), 0))
    for _ in range(devices * tokens):
        got.update(int(expert) * devices // experts for expert in random.permutation(experts)[:choices])
    mean = sum(got.values()) / devices
    imbalance = max(got.values()) / mean
    assert float(ep.arriving_tokens(tokens, choices, imbalance)) == pytest.approx(max(got.values()))
    message = float(ep.dispatch_bytes(tokens, choices, 7168, 1, imbalance))
    assert message == pytest.approx(max(got.values()) * 7168)
    assert float(ep.expert_traffic_bytes(message, devices)) == pytest.approx(message * (devices - 1) / devices)


@given(st.integers(1, 10**5), st.integers(1, 8), powers, st.integers(1, 4).map(lambda k: 2**k))
def test_work_and_weights_do_not_depend_on_the_devices(tokens: int, choices: int, devices: int, inside: int) -> None:
    """Summed over e t_e devices, balanced rows, FLOPs and parameters are those of the layer."""
    experts, hidden, width = 32, 1024, 256
    each = tokens / devices
    rows = float(ep.arriving_tokens(each, choices, 1)) * devices
    assert rows == pytest.approx(tokens * choices)
    flops = ep.device_expert_flops(each / inside, choices, hidden, width, 1) / flop * devices * inside
    assert float(flops) == pytest.approx(6 * tokens * choices * hidden * width)
    held = ep.device_expert_parameters(experts, hidden, width, devices, inside) * devices * inside
    assert held == 3 * experts * hidden * width
    assert ep.device_experts(experts, devices) * devices == experts


@given(seeds, st.integers(1, 8), st.integers(1, 4))
def test_node_limited_routing_counted(seed: int, choices: int, limit: int) -> None:
    """Tokens that choose their domains first never go to more than min(k_e, M, q_o), and cross once to each."""
    domains, per_domain = 8, 32
    random = np.random.default_rng(seed)
    most = 0
    for _ in range(50):
        allowed = random.permutation(domains)[:limit]
        experts = random.permutation([d * per_domain + k for d in allowed for k in range(per_domain)])[:choices]
        most = max(most, len({int(expert) // per_domain for expert in experts}))
    bound = int(ep.domains_per_token(choices, limit, domains))
    assert most <= bound == min(choices, limit, domains)
    crossing = ep.node_limited_bytes(10, choices, 7168, 1, 1, limit, domains)
    assert crossing == 10 * bound * 7168


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 16, 32]), st.integers(1, 8))
def test_groups_of_experts_lie_in_few_domains(groups: int, domains: int, chosen: int) -> None:
    """The most domains of any choice of groups of 64 experts in order, counted; DeepSeek-V3 has 4 of 8 groups."""
    chosen, size = min(chosen, groups), 64 // groups
    homes = [{expert * domains // 64 for expert in range(g * size, (g + 1) * size)} for g in range(groups)]
    most = max(len(set().union(*some)) for some in combinations(homes, chosen))
    assert min(int(ep.grouped_domains(chosen, groups, domains)), domains) == most


def test_the_limit_of_deepseek_v3_halves_what_crosses() -> None:
    """8 experts in at most 4 nodes, 8 nodes of 8: InfiniBand, which binds, carries half; NVLink hides beside it."""
    case = (4096, 8, 7168, 1, 1)
    limited = value(ep.node_limited_dispatch_time(*case, 4, 8, 8), scale_out_latency=0, scale_up_latency=0)
    crossing = 4096 * 4 * 7168 * 7 / 8
    assert limited == pytest.approx(crossing / OUT[0], rel=1e-12)
    assert 4096 * 8 * 7168 * 7 / 8 / UP[0] < limited
    free = value(ep.node_limited_dispatch_time(*case, 8, 8, 8), scale_out_latency=0, scale_up_latency=0)
    assert free == pytest.approx(2 * limited)
    plain = value(ep.dispatch_time(*case, 8, 8), scale_out_latency=0, scale_up_latency=0)
    assert plain > free


@given(st.integers(1, 8), st.integers(1, 16), st.integers(1, 8), st.floats(1, 3))
def test_laws_of_dispatch_times(inner: int, outer: int, limit: int, imbalance: float) -> None:
    """One device sends nothing; a limit never costs time; imbalance does, in proportion at most."""
    case = (4096, 8, 7168, 2)
    if inner * outer == 1:
        assert value(ep.node_limited_dispatch_time(*case, imbalance, limit, 1, 1)) == 0
        assert value(ep.dispatch_time(*case, imbalance, 1, 1)) == 0
        return
    limited, free = (value(ep.node_limited_dispatch_time(*case, 1, m, inner, outer)) for m in (limit, 8))
    assert limited <= free * (1 + 1e-12)
    slow = value(ep.node_limited_dispatch_time(*case, imbalance, limit, inner, outer))
    assert limited * (1 - 1e-12) <= slow <= imbalance * limited * (1 + 1e-12)
    message = ep.dispatch_bytes(*case, imbalance)
    assert value(ep.dispatch_time(*case, imbalance, inner, outer)) == pytest.approx(
        value(c.hierarchical_all_to_all_time(message, inner, outer)), rel=1e-12
    )


@given(st.lists(st.integers(0, 300), min_size=1, max_size=16), st.sampled_from([16, 64, 128]))
def test_padding_of_groups_counted(groups: list[int], tile: int) -> None:
    """Equal groups pay exactly their whole tiles; unequal ones of as many rows pay at least the rows."""
    size = max(groups)
    if size:
        padded = ep.padded_group_rows(size * len(groups), len(groups), tile)
        assert padded == len(groups) * -(-size // tile) * tile
        assert padded >= sum(groups)


@given(st.floats(1, 1e9), st.integers(1, 8))
def test_expert_tensor_parallelism_gathers_what_arrived(size: float, inside: int) -> None:
    """t_e devices with n bytes each gather t_e n in total; one gathers nothing."""
    total = float(ep.expert_tensor_bytes(size, inside))
    assert total == pytest.approx(inside * size)
    time = float(c.ring_all_gather_time(total, inside, *UP, 0))
    assert time == pytest.approx((inside - 1) * (size / UP[0] + UP[1]), rel=1e-9, abs=1e-18)


def test_parameters_of_deepseek_v3() -> None:
    """58 layers of 256 experts: 653.9 B in routed experts, of 671 B (DeepSeek-V3 report section 4.2)."""
    layer = int(ep.device_expert_parameters(256, 7168, 2048, 64, 1)) * 64
    assert layer * 58 == pytest.approx(653.9e9, rel=1e-3)
