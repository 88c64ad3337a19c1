"""What a better system, or more work, may do to an answer: over runs drawn from the whole catalogue."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import answer_laws as laws
from support.effort import part

import symperf as sf
from symperf.common.errors import InputError, NoAnswerError

if TYPE_CHECKING:
    from symperf.runs.full_run import FullRun

seeds = st.integers(0, 2**32)
kinds = st.sampled_from(("train", "infer"))
WORK = ("batch", "sequence", "prompt", "generate", "num_layers")
few = part(0.25)


def drawn(kind: str, seed: int) -> FullRun:
    """The first run that can be, of a seed's draws."""
    rng = random.Random(f"{kind} {seed}")
    while (run := laws.draw_run(rng, kind)) is None:
        pass
    return run


@few
@given(kinds, seeds)
def test_more_bandwidth_rate_or_capacity_never_hurts(kind: str, seed: int) -> None:
    """Nor does a lower latency or a higher efficiency: of every symbol of the system that the time has."""
    run = drawn(kind, seed)
    assert sum(laws.direction(name) != 0 for name in run.compiled.program.inputs) >= 8
    assert list(laws.against_system(run)) == []


@few
@given(kinds, seeds)
def test_doubling_the_work_never_helps(kind: str, seed: int) -> None:
    """Sequences, tokens and layers: neither in time nor in memory."""
    run = drawn(kind, seed)
    assert sum(name in run.bound for name in WORK) >= 3
    assert list(laws.against_work(run, WORK)) == []


@few
@given(kinds, seeds, st.sampled_from((2, 8)))
def test_a_larger_domain_never_hurts_behind_a_switch(kind: str, seed: int, factor: int) -> None:
    """Not so where every pair has a link of its own: more devices share the same bandwidth in thinner links."""
    run = drawn(kind, seed)
    if "scale_up_size" not in run.bound or run.system.links != "switch":
        return
    larger = run.bind(scale_up_size=factor * int(run.bound["scale_up_size"][0]))
    assert larger.value("time") <= run.value("time") * (1 + laws.ROUNDING)


def test_the_laws_see_what_breaks_them() -> None:
    assert laws.worst_step([1.0, 0.9, 0.95], -1) == pytest.approx(0.05 / 0.9)
    assert laws.worst_step([1.0, 0.9, 0.9], -1) == 0
    assert laws.worst_step([1.0, 0.9, 0.95], 1) == pytest.approx(0.1)
    ways = ("memory_bandwidth", "launch_latency", "matrix_efficiency", "l2_capacity", "tp", "no such symbol")
    assert [laws.direction(name) for name in ways] == [-1, 1, -1, -1, 0, 0]


SEARCHED: dict[str, Any] = {"devices": 4, "batch": 16, "sequence": 512, "top": 1}
PLAIN: dict[str, Any] = {"recompute": ["none", "full"], "zero": [0, 1], "cp": 1, "schedule": "1f1b"}


def best_time(**values: Any) -> float:
    """The least time of a small search; infinite where nothing fits."""
    try:
        found = sf.search("gpt2", "a100-80gb-sxm", **SEARCHED | values, require=PLAIN)
    except (InputError, NoAnswerError):
        return float("inf")
    return float(found.time_s.iloc[0])


@part(0.15)
@given(
    st.sampled_from(("memory_bandwidth", "matrix_rate", "scale_up_bandwidth", "memory_capacity")),
    st.floats(1.01, 20),
    st.floats(0.008, 1),
)
def test_a_better_system_never_has_a_worse_best_plan(name: str, factor: float, part_of: float) -> None:
    """Also where memory is so small that some plans do not fit."""
    system = laws.load_system("a100-80gb-sxm")
    here = sf.training("gpt2", system, batch=16, sequence=512).bound
    small = {"memory_capacity": here["memory_capacity"][0] * part_of}
    more = {name: (small | {name: here[name][0]} if name not in small else small)[name] * factor}
    assert best_time(**small | more) <= best_time(**small) * (1 + laws.ROUNDING)


@part(0.1)
@given(st.sampled_from(("batch", "sequence")), st.sampled_from((2, 4)))
def test_more_work_never_has_a_faster_best_plan(name: str, factor: int) -> None:
    assert best_time(**{name: factor * SEARCHED[name]}) >= best_time() * (1 - laws.ROUNDING)
