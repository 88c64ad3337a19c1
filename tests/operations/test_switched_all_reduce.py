"""All-reduces in the switch: the faster of end points and switch, in systems that tell how well their switch adds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import SYSTEM, literature, value

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas import collectives as c
from symperf.formulas.language.symbols import SYMBOLS

SWITCH = SYMBOLS["switch_efficiency"].symbol
SIZES = st.floats(1e3, 1e11)


@given(size=SIZES, ranks=st.sampled_from((1, 2, 4, 8)), share=st.floats(0.05, 1.0))
def test_inside_a_domain_the_faster_of_the_two_runs(size: float, ranks: int, share: float) -> None:
    taken = value(c.scale_up_switched_all_reduce_time(size, ranks), switch_efficiency=share)
    ends = value(c.scale_up_all_reduce_time(size, ranks))
    switch = value(c.scale_up_multimem_all_reduce_time(size, ranks, share))
    assert taken == pytest.approx(min(ends, switch), rel=1e-12)
    assert value(c.group_switched_all_reduce_time(size, ranks, 1), switch_efficiency=share) == pytest.approx(
        min(value(c.group_all_reduce_time(size, ranks, 1)), switch), rel=1e-12
    )


@given(size=SIZES, inner=st.sampled_from((1, 2, 8)), outer=st.sampled_from((2, 16)), share=st.floats(0.05, 1.0))
def test_between_domains_no_switch_helps(size: float, inner: int, outer: int, share: float) -> None:
    taken = value(c.group_switched_all_reduce_time(size, inner, outer), switch_efficiency=share)
    assert taken == pytest.approx(value(c.group_all_reduce_time(size, inner, outer)), rel=1e-12)


def test_large_messages_pass_the_rate_of_a_ring_and_small_ones_go_by_words_with_flags() -> None:
    system = dict(SYSTEM) | {"scale_up_half_bytes": 10e6, "scale_up_latency": 5e-6, "switch_efficiency": 0.8}
    large, small = 1e12, 1e3
    ring = value(c.scale_up_all_reduce_time(large, 8), **system)
    assert ring / value(c.scale_up_switched_all_reduce_time(large, 8), **system) == pytest.approx(
        2 * 7 / 8 * 0.8 / (1 + 1 / 8), rel=1e-3
    )
    words = value(c.low_latency_all_reduce_time(small, 8, *(system[x] for x in ("scale_up_bandwidth",)), 5e-6))
    assert value(c.scale_up_switched_all_reduce_time(small, 8), **system) == pytest.approx(words, rel=1e-3)


def of(system: sf.System, **how: object) -> object:
    return sf.training(sf.Model.load("gpt-22b"), system, sf.Plan(tp=8), batch=8, sequence=2048, **how)


def test_a_system_without_a_switch_that_adds_is_as_before_and_one_with_it_is_never_slower() -> None:
    system = literature("h200-sxm")
    assert system.in_switch
    assert not sf.System.load("a100-80gb-sxm").in_switch
    without = replace(system, quantities={k: v for k, v in system.quantities.items() if k != "switch_efficiency"})
    assert not without.in_switch
    with_switch, ring = of(system), of(without)
    assert with_switch.value("time") < ring.value("time")
    named, before = ({row.name: row.each_s for row in run.table()} for run in (with_switch, ring))
    changed = {path for path in named if named[path] != pytest.approx(before[path], rel=1e-12)}
    assert changed
    assert all("reduce" in name for name in changed)


def test_an_inference_sums_long_prompts_in_the_switch_and_single_tokens_do_not_change() -> None:
    system = literature("h100-sxm")
    without = replace(system, quantities={k: v for k, v in system.quantities.items() if k != "switch_efficiency"})
    times = []
    plan, work = sf.Plan(tp=8, precision="fp16"), {"batch": 16, "prompt": 2048, "generate": 4}
    for each in (system, without):
        run = sf.inference("llama-2-70b", each, plan, **work, stack="tensorrt-llm")
        times.append({(op.phase, op.name): op.time_s for op in run.operations()})
    key = ("prefill", "layer/mlp/reduce")
    assert times[0][key] < 0.95 * times[1][key]
    assert times[0]["decode", "layer/mlp/reduce"] == pytest.approx(times[1]["decode", "layer/mlp/reduce"], rel=1e-12)


def test_the_share_needs_a_network() -> None:
    table = {
        "name": "x",
        "matrix_rate": {"bf16": "100 TFLOP/s"},
        "memory_bandwidth": "1 TB/s",
        "memory_capacity": "80 GB",
        "switch_efficiency": 0.8,
    }
    with pytest.raises(InputError, match="switch_efficiency: given without scale_up_bandwidth"):
        sf.System.from_table(table, "x")
