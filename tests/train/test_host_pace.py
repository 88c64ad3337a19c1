"""The host's pace in a training step: what a profile states, which passes it bounds, measured steps of small work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import script

import symperf as sf
from symperf.common.errors import InputError
from symperf.operations.schedule import Op, terms
from symperf.systems.software import Software
from symperf.train.step.overheads import host_work

if TYPE_CHECKING:
    from pathlib import Path

PLANS = (
    {"pp": 4},
    {"pp": 4, "vpp": 2},
    {"pp": 4, "first_stage_layers": 6, "last_stage_layers": 6},
    {"pp": 4, "schedule": "zero-bubble"},
    {"pp": 4, "schedule": "zb-h2", "uneven_stages": True},
    {"pp": 4, "schedule": "dualpipe"},
)
SLOW = {"host_latency": "50 us", "host_collective_latency": "100 us"}


def step(plan: dict[str, Any], **values: Any) -> Any:
    return sf.training("llama-2-7b", "h100-sxm", sf.Plan(**plan), batch=16, sequence=256, **values)


@pytest.mark.parametrize("plan", PLANS)
def test_the_host_bounds_every_schedule_and_a_fast_one_none(plan: dict[str, Any]) -> None:
    plain, quick, slow = step(plan), step(plan, host_latency="1 ns"), step(plan, **SLOW)
    assert quick.value("time") == pytest.approx(plain.value("time"), rel=1e-9)
    assert slow.value("time") > plain.value("time")
    assert sum(row.time_s for row in slow.table()) == pytest.approx(slow.value("time"))


@pytest.mark.parametrize("plan", PLANS[:5])
def test_launches_that_wait_for_their_kernels_come_on_top(plan: dict[str, Any]) -> None:
    """CUDA_LAUNCH_BLOCKING=1: the host does nothing ahead, and what it does of it is between the two."""
    plain, ahead = step(plan), step(plan, host_latency="1 us")
    waits = [step(plan, host_latency="1 us", host_wait=part).value("time") for part in (0.5, 1.0)]
    assert plain.value("time") == pytest.approx(ahead.value("time"))
    assert ahead.value("time") < waits[0] < waits[1]
    assert waits[1] - waits[0] == pytest.approx(waits[0] - ahead.value("time"), rel=0.02)
    with pytest.raises(InputError, match="host_wait"):
        step(plan, host_latency="1 us", host_wait=1.5)


def test_a_step_takes_at_least_what_its_host_does() -> None:
    run = step({"tp": 2}, **SLOW)
    host = sum(row.each_s * row.count for row in run.table() if row.name.startswith("host/"))
    assert run.value("time") >= host
    assert run.shares()["host"] > 0.5


@given(tp=st.sampled_from((1, 2, 4, 8)), each=st.floats(1e-6, 1e-3))
def test_only_groups_of_several_ranks_are_called(tp: int, each: float) -> None:
    run = step({"tp": tp}, host_collective_latency=each)
    called = [row.each_s * row.count for row in run.table() if row.name == "host/collectives/forward"]
    collectives = 2 * 32 if tp > 1 else 0  # attention and MLP of every layer
    assert called == pytest.approx([16 * each * collectives])  # of 16 micro-batches


def test_kernels_and_calls_are_counted_apart() -> None:
    tree = step({"tp": 2}, **SLOW).schedule_tree()
    every = [leaf for leaf in terms(tree).values() if isinstance(leaf, Op)]
    assert any(leaf.ranks != 1 for leaf in every)
    assert all((leaf.demand.message_bytes != 0) == (leaf.ranks != 1) for leaf in every)
    kernels, calls = host_work(tree)
    assert kernels != 0
    assert calls != 0


def test_a_profile_states_the_host_and_a_user_overrides_it() -> None:
    told = step({"tp": 2}, stack="megatron-deepspeed")
    assert told.bound["host_latency"][0] == pytest.approx(66e-6)
    assert "host.py" in told.bound["host_latency"][1]
    assert told.value("time") > step({"tp": 2}, stack="transformer-engine").value("time")
    assert step({"tp": 2}, stack="megatron-deepspeed", host_latency=0, host_collective_latency=0).value("time") == (
        pytest.approx(step({"tp": 2}).value("time"))
    )
    assert "host_latency" in {effect.name for effect in told.interval().effects}
    assert told.bind(memory_bandwidth="3 TB/s").bound["host_latency"] == told.bound["host_latency"]
    swept = told.sweep(micro_batch=[1, 2])
    assert float(swept["time"][0]) == pytest.approx(told.value("time"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("values = 1", "values: found 1, expected a table"),
        ('[values]\nhost_latencies = "1 us"', "unknown symbol 'host_latencies'; did you mean host_latency"),
        ('[values]\nhost_latency = "1 B"', "expected a time"),
        ("[values]\nhost_latency = -1", "not negative"),
    ],
)
def test_bad_values_of_a_profile_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Software.load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "plan"),
    [
        ("host_wait", 1, {}),
        ("gradient_sum_bytes", 6, {}),
        ("loss_metric_bytes", 16, {}),
        ("owned_tensors", 5, {"zero": 1}),
        ("gathered_tensors", 4, {"zero": 3}),
        ("scatter_latency", 1e-11, {}),
        ("exchange_overlap", 0.4, {}),
    ],
)
def test_what_a_profile_states_counts_as_what_a_run_states(
    tmp_path: Path, name: str, value: float, plan: dict[str, Any]
) -> None:
    """Symbols that only some structures have."""
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\n[values]\n{name} = {value}\n', encoding="utf-8")

    def run(**said: Any) -> sf.Run:
        laid = sf.Plan(dp=8, ep=8, **plan)
        return sf.training("qwen3-30b-a3b", "h100-sxm", laid, batch=64, sequence=512, **said)

    told, stated, plain = run(stack=str(path)), run(**{name: value}), run()
    assert told.structure == stated.structure != plain.structure
    assert told.bound[name][0] == stated.bound[name][0] == value


def test_measured_steps_of_small_work_are_met() -> None:
    """540 steps of Megatron-DeepSpeed; `benchmarks/calibration/host.py` fitted the profile to them."""
    run = step({}, stack="megatron-deepspeed")
    with script("host") as host:
        steps = host.Steps(host.read(host.STEPS))
        with_host = steps.predicted(tuple(run.bound[name][0] for name in host.NAMES))
        without = steps.predicted((0.0, 0.0))
    assert abs(with_host / steps.measured - 1).mean() < 0.07
    assert abs(without / steps.measured - 1).mean() > 0.2
