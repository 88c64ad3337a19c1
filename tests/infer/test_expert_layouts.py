"""Copies of experts against their balancer's algorithm, tokens gathered for experts, and groups over several nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sympy
from support.effort import cases

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas.language import symbols as sym
from symperf.formulas.parallel.expert_copies import copied_imbalance
from symperf.formulas.parallel.expert_exchange import direct_exchange_buffer_bytes

WORK: dict[str, Any] = {"batch": 64, "prompt": 32, "generate": 9, "stack": "vllm"}
MODEL, SYSTEM = "qwen3-30b-a3b", "h100-sxm"


def run_of(model: str = MODEL, **how: Any) -> Any:
    plan = sf.Plan(**{name: how.pop(name) for name in list(how) if name in sf.Plan.names()})
    return sf.inference(model, SYSTEM, plan, **(WORK | how))


def row(run: Any, name: str, phase: str = "decode") -> Any:
    (found,) = (row for row in run.table() if row.name.startswith(phase) and row.name.endswith(name))
    return found


def value(run: Any, name: str, what: str, phase: str = "decode") -> float:
    return float(run.value(f"term/{row(run, name, phase).name}/{what}"))


# --- copies of experts


def balance(loads: list[float], copies: int, devices: int) -> tuple[float, float]:
    """What EPLB leaves: rows of the fullest slot and of the fullest device, over the mean ones (eplb.py)."""
    counts = [1] * len(loads)
    for _ in range(copies):
        most = max(range(len(loads)), key=lambda k: loads[k] / counts[k])
        counts[most] += 1
    slots = sorted((load / n for load, n in zip(loads, counts, strict=True) for _ in range(n)), reverse=True)
    places, held, sums = len(slots) // devices, [0] * devices, [0.0] * devices
    for slot in slots:
        emptiest = min((k for k in range(devices) if held[k] < places), key=lambda k: sums[k])
        held[emptiest] += 1
        sums[emptiest] += slot
    return slots[0] * len(slots) / sum(slots), max(sums) * devices / sum(sums)


LAYOUTS = [(256, 8, 8), (256, 32, 32), (256, 64, 64), (256, 32, 64), (128, 16, 32), (64, 8, 8), (16, 32, 16)]
"""Experts, devices, copies."""


@pytest.mark.parametrize(("experts", "devices", "copies"), LAYOUTS)
def test_copies_leave_of_uneven_loads_what_the_balancer_leaves(experts: int, devices: int, copies: int) -> None:
    """No slot or device has more than the limit that is proved; in the mean the balancer is near the formula."""
    draws, left = random.Random(experts + devices), []
    for _ in range(cases(40)):
        skew, most = draws.choice([0.05, 0.2, 1.0]), 10 ** draws.uniform(3, 5)
        loads = [(1 - draws.random() * (1 - most**-skew)) ** (-1 / skew) for _ in range(experts)]
        slot, device = balance(loads, copies, devices)
        assert slot <= (1 + experts / copies) * (1 + 1e-9)
        assert device <= (1 + (devices - 1) / copies) * (1 + 1e-9)
        left.append(device)
    mean = sum(left) / len(left)
    found = float(copied_imbalance(100, experts, copies, devices))
    if experts + copies > devices:
        assert 0.9 < found / mean < 1.2
    else:
        assert found >= mean  # one slot on a device: the limit alone is known
    assert float(copied_imbalance(sympy.Rational(101, 100), experts, copies, devices)) == pytest.approx(1.01)


def test_redundant_experts_take_memory_and_even_out_loads() -> None:
    """A device of 8 has 17 slots instead of 16; loads that were twice the mean are evened out, small ones left."""
    plain, copied = (run_of(dp=8, ep=8, redundant_experts=copies) for copies in (None, 8))
    sizes = plain.model.sizes
    expert = 3 * sizes["hidden_size"] * sizes["expert_intermediate_size"] * 2 * sizes["num_layers"]
    assert copied.memory_terms()["weights/layers"] - plain.memory_terms()["weights/layers"] == pytest.approx(expert)
    evened = run_of(dp=8, ep=8, redundant_experts=8, routing_skew=0.3)
    share = value(evened, "experts/activation", "bytes") / value(plain, "experts/activation", "bytes")
    assert share == pytest.approx(1 + 1 / 16)  # of 17 slots on a device
    stated = run_of(dp=8, ep=8, redundant_experts=8, token_imbalance=1.02)
    share = value(stated, "experts/activation", "bytes") / value(plain, "experts/activation", "bytes")
    assert share == pytest.approx(1.02)


def test_deepseek_serves_with_9_experts_of_a_layer_on_a_device() -> None:
    """DeepSeek-V3 report section 3.4.1: 32 redundant experts over 32 devices; buffers are DeepEP's size."""
    asked = {"stack": "sglang-0.5", "batch": 32, "dp": 32, "ep": 32}
    plain, copied = (run_of("deepseek-v3", redundant_experts=n, **asked) for n in (None, 32))
    added = copied.memory_terms()["weights/layers"] - plain.memory_terms()["weights/layers"]
    assert added == pytest.approx(58 * 3 * 7168 * 2048 * (1 + 4 / 128**2), rel=0.01)
    assert plain.memory_terms()["workspace/exchanges"] == 4 * 128 * 256 * 7168 * 2
    assert copied.memory_terms()["workspace/exchanges"] == 4 * 128 * 288 * 7168 * 2
    assert "workspace/exchanges" not in run_of(dp=8, ep=8).memory_terms()


@pytest.mark.parametrize(("hidden", "experts"), [(7168, 256), (4096, 128), (2048, 512)])
def test_buffers_are_those_that_deepep_asks_for(hidden: int, experts: int) -> None:
    """csrc/config.hpp, LowLatencyLayout, written out: headers, scales and flags are 2 % of it."""
    combine = hidden // 128 * 4 + hidden * 2
    dispatch = 16 + max(hidden * 2, hidden + hidden // 128 * 4)
    whole = 2 * max(128 * dispatch, experts * 128 * combine) + 2 * experts * 128 * max(dispatch, combine)
    assert float(direct_exchange_buffer_bytes(128, experts, hidden, 2)) == pytest.approx(whole, rel=0.02)


# --- tokens gathered for experts


def test_gathered_tokens_are_those_of_all_replicas() -> None:
    """vLLM's allgather_reducescatter: 8 replicas with 8 sequences each, sums scattered; no device sends to experts."""
    found = run_of(dp=8, ep=8, expert_exchange="gather")
    assert value(found, "experts/dispatch", "message") == 64 * 2048 * 2
    assert value(found, "experts/combine", "message") == 64 * 2048 * 2
    dealt = run_of(dp=8, ep=8)
    for name in ("experts/up", "experts/down", "experts/activation"):
        assert value(found, name, "flops") == pytest.approx(value(dealt, name, "flops"))


def test_experts_split_over_replicas_are_the_default_of_vllm() -> None:
    """Without --enable-expert-parallel a tensor-parallel group of dp x tp devices: every expert's width by 8."""
    found, dealt = run_of(dp=4, tp=2, expert_tp=8, expert_exchange="gather"), run_of(dp=4, tp=2, ep=8)
    assert found.memory_terms()["weights/layers"] == pytest.approx(dealt.memory_terms()["weights/layers"])
    assert value(found, "experts/dispatch", "message") == 64 * 2048 * 2
    assert value(found, "experts/up", "flops") == pytest.approx(value(dealt, "experts/up", "flops"), rel=0.02)
    one = run_of(tp=8, ep=8, expert_exchange="gather")
    assert value(one, "experts/reduce", "message") == 64 * 2048 * 2
    assert value(one, "experts/dispatch", "message") == 64 * 2048 * 2  # of one replica: gathered from nobody
    assert row(one, "experts/dispatch").each_s == 0


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dp": 8, "ep": 8, "redundant_experts": 3}, r"redundant_experts: ep = 8 does not divide the 128 \+ 3 slots"),
        ({"redundant_experts": 8}, "redundant_experts: found 8, expected none with ep = 1"),
        ({"dp": 8, "expert_tp": 8}, "expert_tp: found 8, expected at most tp = 1: .* --expert-exchange gather"),
        ({"dp": 8, "ep": 4, "expert_tp": 2}, "expert_tp: found 2, expected 1 with ep = 4: .* --expert-exchange gather"),
        ({"tp": 4, "ep": 2, "expert_exchange": "gather"}, "expert_exchange: .* tp = 4 does not divide ep x expert_tp"),
        ({"model": "llama-2-7b", "expert_exchange": "gather"}, "expert_exchange: found gather, but llama-2-7b has no"),
        ({"model": "llama-2-7b", "redundant_experts": 8}, "redundant_experts: found 8, but llama-2-7b has no experts"),
        ({"expert_exchange": "gathr"}, "expert_exchange: found 'gathr', expected all-to-all or gather; did you mean"),
        ({"redundant_experts": 0}, "redundant_experts: found 0, expected a whole number from 1"),
        ({"exchange_tokens": 0}, "exchange_tokens: found 0"),
    ],
)
def test_layouts_of_experts_that_cannot_be(how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        run_of(**how)
    assert "\n" not in str(raised.value)


def test_replicas_with_experts_of_their_own_exchange_no_tokens() -> None:
    """Every rank of a tensor-parallel group has all its tokens; only replicas that share experts send them."""
    work = {"stack": "vllm-0.24", "prompt": 64, "generate": 9}
    one, two = (run_of(tp=4, ep=4, dp=dp, batch=8 * dp, **work) for dp in (1, 2))
    assert two.value("time") == pytest.approx(one.value("time"), rel=1e-12)
    sharing = run_of(tp=4, ep=8, dp=2, batch=16, **work)
    assert row(two, "experts/dispatch").each_s == 0 < row(sharing, "experts/dispatch").each_s


# --- tensor parallelism over nodes


def test_sixteen_ranks_of_two_nodes_reduce_by_both_networks() -> None:
    """Inside of 8 devices, then between 2: the hierarchical all-reduce, which a slower adapter slows."""
    plain, node, slow = (
        run_of("llama-3.1-70b", prompt=1024, tp=tp, **values)
        for tp, values in ((16, {}), (8, {}), (16, {"scale_out_bandwidth": 5e9}))
    )
    name, phase = "layer/mlp/reduce", "prefill"
    message = value(plain, name, "message", phase)
    assert message == 64 * 1024 * 8192 * 2
    assert row(plain, name, phase).each_s > row(node, name, phase).each_s
    out = plain.bound["scale_out_bandwidth"][0] * plain.bound["scale_out_efficiency"][0]
    # An eighth of the message is summed between two nodes: as much there and back, half of it for each of two ranks.
    assert row(plain, name, phase).each_s >= 2 * (1 / 2) * message / 8 / out
    assert row(slow, name, phase).each_s > 2 * row(plain, name, phase).each_s
    assert row(slow, name, phase).each_s >= 2 * (1 / 2) * message / 8 / (out * 5e9 / 50e9) * 0.99
    assert sym.scale_out_bandwidth.name in plain.bound
