"""What a run spends: work of every resource, energy, power, carbon, against counts made otherwise."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.run_cases import make

import symperf as sf
from symperf.cli import main
from symperf.operations.schedule import Op, terms
from symperf.technology import Technology

ENERGIES: dict[str, Any] = {
    "matrix_energy": "0.5 pJ/FLOP",
    "vector_energy": "5 pJ/FLOP",
    "memory_energy": "4 pJ/bit",
    "l2_energy": "0.2 pJ/bit",
    "scale_up_energy": "5 pJ/bit",
    "scale_out_energy": "20 pJ/bit",
    "static_power": "50 W",
}
PLANS: list[dict[str, Any]] = [
    {},
    {"tp": 8},
    {"tp": 4, "pp": 2, "dp": 2},
    {"tp": 8, "pp": 4, "vpp": 2, "recompute": "selective", "sequence_parallel": True},
    {"tp": 2, "pp": 4, "dp": 4, "recompute": "full", "zero": 1},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_matrix_work_is_what_the_step_executes(plan: dict[str, Any]) -> None:
    """FLOPs on the matrix units, all devices: the hardware FLOPs, which are counted from the model alone."""
    run = make(batch=64, **plan)
    assert run.resource_work()["matrix"] == pytest.approx(run.value("hardware_flops"), rel=1e-9)


@pytest.mark.parametrize("cache", [None, 2e6, 2e5])
def test_memory_bytes_are_those_of_the_breakdown(cache: float | None) -> None:
    """On one device the bytes of device memory are the sum over the breakdown's terms, with what outgrows L2 again."""
    model, system = sf.Model.load("gpt-j-6b"), sf.System.load("h100-sxm")
    system = system.with_values({} if cache is None else {"l2_capacity": cache}, "bf16")
    run = sf.training(model, system, sf.Plan(micro_batch=2), batch=2, sequence=2048)
    cached = run.bound["l2_capacity"][0]
    products = {path for path, op in terms(run.schedule_tree()).items() if isinstance(op, Op) and op.shape is not None}
    moved = {"compulsory": 0.0, "all": 0.0}
    for term in run.compiled.terms:
        if not term.idle:
            count, own, flops = (run.value(f"term/{term.path}/{what}") for what in ("count", "bytes", "flops"))
            # Smith et al. 2019: 2 m n k words through a cache of S words, over its root.
            again = flops * 2 * math.sqrt(2 / cached) if term.path in products else 0.0
            moved["compulsory"] += count * own
            moved["all"] += count * max(own, again)
    assert run.resource_work()["memory"] == pytest.approx(moved["all"], rel=1e-9)
    assert (moved["all"] > 1.2 * moved["compulsory"]) == (cache is not None)
    assert "scale_up" not in run.resource_work()


def test_link_bytes_are_those_of_rings() -> None:
    """Tensor parallelism without overlap: 4 all-reduces of b s h w bytes a layer, each 2 (t - 1) / t of them a rank."""
    run = make("gpt3-175b", batch=8, tp=8, overlap_tp=0.0)
    message = 2048 * 12288 * 2
    layers = 96 * 8 * 4 * message * 2 * 7 / 8 * 8
    sent = run.resource_work()
    assert sent["scale_up"] == pytest.approx(layers, rel=0.05)
    assert "scale_out" not in sent
    for delays in ({"domain_efficiency": 0.4, "domain_piece_latency": 1e-3}, {"scale_up_efficiency": 0.4}):
        slower = run.bind(**delays)
        assert slower.value("time") >= run.value("time")
        assert slower.resource_work() == pytest.approx(sent, rel=1e-9)  # what delays bytes adds none


def test_gradient_bytes_between_nodes() -> None:
    """Data parallelism over two nodes sends each parameter's gradient once per device and direction of the ring."""
    run = make("gpt-22b", batch=16, tp=8, dp=2)
    parameters = 22.0e9
    sent = 2 * 4 * parameters / 8 * (1 / 2) * 16
    assert run.resource_work()["scale_out"] == pytest.approx(sent, rel=0.05)


def test_energy_is_work_times_energy() -> None:
    run = make("gpt-22b", batch=8, tp=8).bind(**ENERGIES)
    energy, work = run.energy(), run.resource_work()
    assert energy.basis == "resources"
    assert energy.joules["matrix"] == pytest.approx(work["matrix"] * 0.5e-12)
    assert energy.joules["memory"] == pytest.approx(work["memory"] * 32e-12)
    assert energy.joules["static"] == pytest.approx(50 * 8 * run.value("time"))
    assert energy.total == pytest.approx(sum(energy.joules.values()))
    assert energy.per_token == pytest.approx(energy.total / (8 * 2048))
    assert energy.mean_power == pytest.approx(energy.total / 8 / run.value("time"))
    assert "matrix" in str(energy)


@given(flop=st.floats(0.05, 5), byte=st.floats(0.5, 20), static=st.floats(1, 200), degree=st.sampled_from([1, 2, 4, 8]))
def test_energy_is_at_least_that_of_its_flops(flop: float, byte: float, static: float, degree: int) -> None:
    """Never below FLOPs times joules of a FLOP, and it rises with every energy."""
    changes = {"matrix_energy": f"{flop} pJ/FLOP", "memory_energy": f"{byte} pJ/bit", "static_power": static}
    run = make("gpt-22b", batch=8, tp=degree).bind(**changes)
    total = run.energy().total
    assert total >= run.value("hardware_flops") * flop * 1e-12 * (1 - 1e-9)
    for name, value in (("matrix_energy", f"{2 * flop} pJ/FLOP"), ("memory_energy", f"{2 * byte} pJ/bit")):
        assert run.bind(**{name: value}).energy().total > total


def test_a_narrow_format_takes_less_of_a_flop() -> None:
    """As much power at the peak of either format: half the energy at twice the rate."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    wide, narrow = (
        sf.inference(model, system, sf.Plan(precision=name), batch=1, prompt=512, generate=1, matrix_energy=1e-12)
        for name in ("bf16", "fp8")
    )
    each = [run.energy().joules["matrix"] / run.resource_work()["matrix"] for run in (wide, narrow)]
    rates = [system.matrix_rate(name).value for name in ("bf16", "fp8")]
    assert each == pytest.approx([1e-12, 1e-12 * rates[0] / rates[1]])
    assert narrow.energy().joules["attention"] == pytest.approx(1e-12 * narrow.resource_work()["attention"])


def test_board_power_where_no_energies_are_told() -> None:
    """A catalogue part gives its board power: all devices, all the time."""
    run = make("gpt-22b", batch=8, tp=8)
    energy = run.energy()
    assert (energy.basis, set(energy.joules)) == ("board", {"board"})
    assert energy.total == pytest.approx(400 * 8 * run.value("time"))
    assert not energy.exceeds_power


def test_a_resource_without_an_energy_is_named() -> None:
    run = make("gpt-22b", batch=8, tp=8).bind(matrix_energy="0.5 pJ/FLOP")
    assert set(run.energy().missing) == {"vector", "memory", "l2", "scale_up"}


def test_a_power_cap_slows_the_clock() -> None:
    """Above the board power the time is the dynamic energy over what the cap leaves."""
    run = make("gpt-22b", batch=8, tp=8).bind(**ENERGIES | {"matrix_energy": "5 pJ/FLOP"})
    energy = run.energy()
    dynamic = energy.total - energy.joules["static"]
    assert energy.exceeds_power
    assert energy.capped_time == pytest.approx(dynamic / 8 / 350)
    assert run.bind(power="100 kW").energy().capped_time == pytest.approx(run.value("time"))


@pytest.mark.parametrize("degrees", [{}, {"tp": 4}, {"tp": 2, "pp": 2}, {"pp": 4, "dp": 2}], ids=str)
def test_inference_works_once_for_each_micro_batch(degrees: dict[str, int]) -> None:
    """FLOPs of a prefill are those of the model, whatever waits for the pipeline; the head runs for the last token."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("a100-80gb-sxm")
    run = sf.inference(model, system, sf.Plan(**degrees), batch=8, prompt=512, generate=1)
    work = run.resource_work()
    assert work["matrix"] + work.get("attention", 0.0) == pytest.approx(run.value("prefill_flops"), rel=0.03)


def test_generation_reads_the_weights_in_each_step() -> None:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("a100-80gb-sxm")
    one = sf.inference(model, system, batch=1, prompt=128, generate=1).resource_work()["memory"]
    many = sf.inference(model, system, batch=1, prompt=128, generate=101).resource_work()["memory"]
    weights = 2 * (model.sizes["num_layers"] * 202.4e6 + 131e6)
    assert (many - one) / 100 == pytest.approx(weights, rel=0.05)


def test_bytes_through_one_resource_have_a_closed_form() -> None:
    """A ring's bytes on its links, from the formula of its time alone."""
    from symperf.derive.numeric import Values
    from symperf.formulas.collectives import scale_up_all_reduce_time
    from symperf.spending.forms import LINKS, bytes_through

    n = sympy.Symbol("message_bytes", positive=True)
    sent = bytes_through(scale_up_all_reduce_time(n, 8), LINKS["scale_up"]) * LINKS["scale_up"]
    at = dict.fromkeys(sent.free_symbols, 0.5) | {n: 8e6}
    assert Values(at)(sent) == pytest.approx(14e6)


def test_carbon_is_energy_times_intensity() -> None:
    run = make("gpt-22b", batch=8, tp=8)
    carbon = run.carbon("france")
    assert carbon.kilograms == pytest.approx(run.energy().total / 3.6e6 * 0.056)
    more = run.bind(facility_overhead=1.2, grid_intensity="481 g/kWh").carbon()
    assert more.kilograms == pytest.approx(1.2 * run.energy().total / 3.6e6 * 0.481)
    assert more.per_million_tokens == pytest.approx(more.kilograms / (8 * 2048) * 1e6)


BAD: dict[str, tuple[Any, tuple[str, ...]]] = {
    "an unknown grid": (lambda run: run.carbon("frence"), ("grid", "'frence'", "france?")),
    "no grid": (lambda run: run.carbon(), ("grid_intensity", "world")),
    "a negative energy": (lambda run: run.bind(matrix_energy=-1.0), ("matrix_energy", "found -1.0")),
    "an energy of bytes for FLOPs": (lambda run: run.bind(matrix_energy="4 pJ/bit"), ("matrix_energy", "FLOP energy")),
    "an overhead below 1": (lambda run: run.bind(facility_overhead=0.9), ("facility_overhead", "found 0.9")),
    "an energy without its network": (
        lambda _: sf.System.from_table(
            {
                "name": "x",
                "matrix_rate": {"bf16": 1e14},
                "memory_bandwidth": 1e12,
                "memory_capacity": 1e10,
                "scale_up_energy": "5 pJ/bit",
            }
        ),
        ("scale_up_energy", "without scale_up_bandwidth"),
    ),
}


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.replace(" ", "-"))
def test_bad_input_is_one_clear_line(case: str) -> None:
    act, words = BAD[case]
    with pytest.raises(sf.InputError) as caught:
        act(make("gpt-22b", batch=8, tp=8))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_system_without_power_or_energies_has_no_energy() -> None:
    run = make("gpt-22b", batch=8, tp=8)
    quantities = {name: q for name, q in run.system.quantities.items() if name != "power"}
    bare = dataclasses.replace(run.system, quantities=quantities, name="bare")
    other = sf.training(run.model, bare, run.plan, batch=8, sequence=2048)
    with pytest.raises(sf.InputError, match="neither matrix_energy"):
        other.energy()
    assert other.spending_json() == {"energy_j": None, "cost": None, "carbon_kg": None}


def test_the_command_line_has_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["gpt-22b", "-s", "h100-sxm", "--tp", "8"]
    assert main(["train", *asked, "--batch", "8", "--sequence", "2048", "--json", "--grid", "world"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["energy_j"]["basis"] == "resources"
    assert found["cost"]["dollars_per_device_hour"] == pytest.approx(4.916)
    assert found["carbon_kg"] == pytest.approx(found["energy_j"]["total"] / 3.6e6 * 0.481)
    assert main(["infer", *asked, "--batch", "1", "--prompt", "16", "--generate", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["carbon_kg"] is None
    assert main(["train", *asked, "--batch", "8", "--sequence", "2048", "--energy", "--cost"]) == 0
    printed = capsys.readouterr().out
    assert "board power all the time" not in printed
    assert "a million tokens" in printed
    asked[2] = "a100-80gb-sxm"
    assert main(["train", *asked, "--batch", "8", "--sequence", "2048", "--energy"]) == 0
    assert "board power all the time" in capsys.readouterr().out


def test_measured_energies_give_the_watts_of_a_step_that_was_measured() -> None:
    """Blocks of Llama 2 70B on an H200 drew 695 W (benchmarks/calibration/h200.csv, kind power, the last row)."""
    system = sf.System.load("h200-sxm")
    plan = sf.Plan(attention="flash", dropout=False, recompute="none")
    run = sf.training(sf.Model.load("llama-2-70b"), system, plan, batch=1, sequence=4096, stack="flash-attention-2")
    energy = run.energy()
    assert set(energy.missing) == {"l2", "vector"}
    assert energy.mean_power == pytest.approx(695, rel=0.15)


def test_a_generated_system_tells_all_energies() -> None:
    system = sf.System.from_technology(Technology.load("h100"))
    run = sf.training(sf.Model.load("gpt-22b"), system, sf.Plan(tp=8, dp=2), batch=16, sequence=2048)
    energy = run.energy()
    assert not energy.missing
    assert set(energy.joules) == {"matrix", "vector", "memory", "l2", "scale_up", "scale_out", "static"}
    assert 0 < energy.mean_power < 700


@pytest.mark.parametrize("cache", [None, "fp8"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_known_kernels_do_the_work_of_usual_ones(precision: str, cache: str | None) -> None:
    """FLOPs of products do not depend on whose constants give their time; a cast moves what its time is charged for."""
    asked: dict[str, Any] = {"batch": 2, "prompt": 900, "generate": 3, "kv_precision": cache}
    plan = sf.Plan(precision=precision)
    usual, known = (
        sf.inference("llama-2-7b", "h100-sxm", plan, stack=stack, **asked) for stack in ("vllm", "vllm-0.24")
    )
    assert "score_rate" in known.compiled.program.inputs
    assert "score_rate" not in usual.compiled.program.inputs
    spent = [sum(run.resource_work().get(name, 0.0) for name in ("matrix", "attention")) for run in (usual, known)]
    assert spent[1] == pytest.approx(spent[0], rel=1e-12)
    if precision == "bf16":
        assert known.value("prefill_mfu_executed") * known.value("prefill") == pytest.approx(
            usual.value("prefill_mfu_executed") * usual.value("prefill"), rel=1e-12
        )
        return
    passes = known.bound["cast_passes"][0]
    more = known.bind(cast_passes=passes + 1.0).resource_work()["memory"] - known.resource_work()["memory"]
    # The kernels of norms and activations write what they cast; what attention gives has a kernel of its own.
    left = sum(row.count * row.m * row.k for row in known.operations() if row.m and row.name.endswith("/output"))
    assert more == pytest.approx(2 * left, rel=1e-9)
