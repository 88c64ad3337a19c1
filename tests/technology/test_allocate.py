"""The best split of a chip's budgets: the geometric program against a grid, duals against differences, laws."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from support.effort import some
from support.oracle import evaluate, power_law_voltage

import symperf as sf
from symperf.cli import main
from symperf.common import extras
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div, log2
from symperf.technology import Technology
from symperf.technology.allocation import allocate
from symperf.technology.allocation.program import SPLIT, ChipProgram
from symperf.technology.allocation.relax import Relaxed, relax, value_at
from symperf.technology.allocation.search import _budget, _Search

BUDGETS = ("area", "power", "perimeter", "package")
SMOOTH = ("core", "memory", "network")


def ask(system: sf.System) -> sf.Run:
    plan = sf.Plan(tp=8, recompute="selective", sequence_parallel=True)
    return sf.training(sf.Model.load("gpt-22b"), system, plan, batch=4, sequence=2048)


@cache
def case() -> tuple[_Search, Relaxed, ChipProgram, dict[str, float]]:
    """A technology, the relaxed time of a training step on its chips, its program, and its default budgets."""
    technology = Technology.load("ampere", "5nm", memory="hbm3")
    search = _Search(ask, technology, _budget(technology, None, None, None), None, smooth=True, fits=False)
    chip = search.chip(search.default())
    run = search.run_on(chip)
    names = ("matrix_rate", "vector_rate", "memory_bandwidth", "scale_up_bandwidth")
    relaxed = search.relaxation(run, {name: chip.figures[name] for name in names})
    program = search.solved(relaxed, run)
    assert program.parts == SMOOTH
    return search, relaxed, program, search.budgets(SMOOTH)


def solved(**budgets: float) -> ChipProgram:
    """The program with some budgets, the others as they are by default."""
    _, _, program, default = case()
    program.again(**default | budgets)
    return program


def random_budgets(seed: int) -> dict[str, float]:
    """From a third of the default budgets to three times them; the memory still fits."""
    random = np.random.default_rng(seed)
    return {name: value * float(np.exp(random.uniform(-1.1, 1.1))) for name, value in case()[3].items()}


def chip_rates(budgets: dict[str, float], split: dict[str, Any]) -> dict[str, Any]:
    """Rates of a chip from a split, in NumPy and by other formulas than the package's."""
    technology = case()[0].technology
    q = {name: quantity.value for name, quantity in technology.quantities.items()}
    memory, network = technology.memory, technology.scale_up
    assert network is not None
    area = {name: split[f"area_{name}"] * budgets["area"] for name in SMOOTH}
    power = {name: split[f"power_{name}"] * budgets["power"] for name in SMOOTH}
    edge = {name: split[f"edge_{name}"] * budgets["perimeter"] for name in ("memory", "network")}
    cores = area["core"] / q["core_area"]
    above = q["core_voltage"] - q["core_threshold"]
    ratio = power["core"] / (cores * q["core_power"])
    level = ratio * q["core_voltage"] * above**2 / q["core_threshold"] ** 3
    floor = q["core_threshold"] + q["core_margin"]
    volts = np.maximum(floor, q["core_threshold"] * power_law_voltage(level))
    clock = q["core_frequency"] * ratio * (q["core_voltage"] / volts) ** 2
    stacks = np.minimum(budgets["package"] / memory.value("area"), area["memory"] / q["controller_area"])
    links = np.minimum(edge["memory"] * q["memory_link_density"], stacks * memory.value("pins"))
    lanes = np.minimum(edge["network"] * q["network_link_density"], area["network"] / q["network_link_area"])
    return {
        "matrix_rate": cores * clock * q["core_flops"],
        "vector_rate": cores / q["core_group"] * clock * q["vector_flops"],
        "memory_bandwidth": np.minimum(links * memory.value("frequency") / 8, power["memory"] / memory.value("energy")),
        "scale_up_bandwidth": np.minimum(
            np.minimum(lanes, network.value("lanes")) * network.value("rate"),
            power["network"] / network.value("energy"),
        ),
    }


def grid_optimum(budgets: dict[str, float]) -> float:
    """The least time on a grid of nine points in each of five shares, refined around the best of them."""
    relaxed = case()[1]
    low, high = np.log([1e-4, 1e-4, 1e-3, 1e-4, 1e-3]), np.log([0.5, 0.5, 0.9, 0.5, 0.999])
    least = math.inf
    for _ in range(9):
        axes = [np.exp(np.linspace(a, b, 9)) for a, b in zip(low, high, strict=True)]
        shares = np.meshgrid(*axes, indexing="ij", sparse=True)
        split = dict(
            zip(("area_memory", "area_network", "power_memory", "power_network", "edge_network"), shares, strict=True)
        )
        split["area_core"] = np.maximum(1 - split["area_memory"] - split["area_network"], 1e-12)
        split["power_core"] = np.maximum(1 - split["power_memory"] - split["power_network"], 1e-12)
        split["edge_memory"] = 1 - split["edge_network"]
        rates = chip_rates(budgets, split)
        times = evaluate(relaxed.form, {symbol: rates[str(symbol)] for symbol in relaxed.form.free_symbols})
        times = np.broadcast_to(times, (9,) * 5)
        best = np.unravel_index(np.argmin(times), times.shape)
        least = min(least, float(times[best]))
        step = (high - low) / 8
        middle = low + step * np.array(best)
        low, high = middle - 1.5 * step, np.minimum(middle + 1.5 * step, np.log(0.9999))
    return least


@pytest.mark.parametrize("seed", some(range(20), 0.3))
def test_the_program_is_the_grid_optimum(seed: int) -> None:
    """On random budgets the proved optimum is that of a refined grid within 0.5 %."""
    budgets = random_budgets(seed)
    program = solved(**budgets)
    assert program.status == "optimal"
    found = program.problem.value
    assert found == pytest.approx(grid_optimum(budgets), rel=5e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", BUDGETS)
def test_duals_are_finite_differences(seed: int, name: str) -> None:
    """Each budget's dual is d ln T / d ln budget, within 1 %; at a kink it lies between the slopes of both sides."""
    budgets = random_budgets(seed)
    dual = solved(**budgets).elasticities()[name]
    step = 2e-4
    middle, *ends = (
        math.log(solved(**budgets | {name: budgets[name] * math.exp(way * step)}).problem.value) for way in (0, 1, -1)
    )
    right, left = (ends[0] - middle) / step, (middle - ends[1]) / step
    if left == pytest.approx(right, rel=1e-2, abs=1e-3):
        assert dual == pytest.approx((left + right) / 2, rel=1e-2, abs=2e-4)
    else:  # at a kink each slope between those of the sides is a dual
        assert left * 1.01 - 2e-4 <= dual <= right * 0.99 + 2e-4


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(BUDGETS), more=st.floats(1.01, 3))
def test_more_of_a_budget_never_slows_the_optimum(seed: int, name: str, more: float) -> None:
    budgets = random_budgets(seed)
    before = solved(**budgets).problem.value
    after = solved(**budgets | {name: budgets[name] * more}).problem.value
    assert after <= before * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_law_is_tight_at_the_optimum(seed: int) -> None:
    """The voltage of the program, a variable, is the root of the cubic; its split gives the rates that it says."""
    budgets = random_budgets(seed)
    program = solved(**budgets)
    split = {
        f"{kind}_{name}": program.value(f"{kind}_{name}") / budgets[total]
        for kind, total in (("area", "area"), ("power", "power"))
        for name in SMOOTH
    }
    split |= {f"edge_{name}": program.value(f"edge_{name}") / budgets["perimeter"] for name in ("memory", "network")}
    rates = chip_rates(budgets, split)
    relaxed = case()[1]
    time = float(evaluate(relaxed.form, {symbol: rates[str(symbol)] for symbol in relaxed.form.free_symbols}))
    assert time == pytest.approx(program.problem.value, rel=1e-5)
    volts, drive = program.value("core_voltage"), program.value("core_overdrive")
    q = case()[0].technology.quantities
    assert volts >= (q["core_threshold"].value + q["core_margin"].value) * (1 - 1e-6)
    assert volts >= (q["core_threshold"].value + drive) * (1 - 1e-6)


def test_a_time_of_computing_alone_takes_everything() -> None:
    """With one stack fixed and nothing but FLOPs to do, area and power go to the cores, and the clock is the law's."""
    technology = Technology.load("ampere", "7nm")
    budgets = {"area": 500e-6, "power": 150.0, "perimeter": 0.1, "package": 1e-3}
    program = ChipProgram(technology, budgets, ("core", "memory"), counts={"stacks": 1.0})
    rate, bandwidth = sympy.symbols("matrix_rate memory_bandwidth", positive=True)
    program.solve(1e12 / rate + 1e3 / bandwidth)
    q = {name: quantity.value for name, quantity in technology.quantities.items()}
    cores = (500e-6 - q["controller_area"]) / q["core_area"]
    above = q["core_voltage"] - q["core_threshold"]
    ratio = 150.0 / (cores * q["core_power"])
    level = ratio * q["core_voltage"] * above**2 / q["core_threshold"] ** 3
    volts = q["core_threshold"] * float(power_law_voltage(np.float64(level)))
    clock = q["core_frequency"] * ratio * (q["core_voltage"] / volts) ** 2
    assert program.value("matrix_rate") == pytest.approx(cores * clock * q["core_flops"], rel=1e-3)


@pytest.fixture(scope="module")
def answer() -> Any:
    """A whole allocation, with tiles and L2."""
    return allocate(ask, Technology.load("ampere", "5nm", memory="hbm3"), power="500 W", fits=True)


def test_the_exact_chip_is_no_faster_than_the_bound(answer: Any) -> None:
    """Whole cores, banks, stacks and waves cost something; the split still beats the default one."""
    assert answer.status == "optimal"
    assert answer.relaxed_time <= answer.time * (1 + 1e-6)
    assert answer.time <= answer.before
    assert answer.time == pytest.approx(answer.relaxed_time, rel=0.15)
    assert answer.bounds == {"ceil_div": answer.bounds["ceil_div"]}
    assert answer.run.fits


def test_the_exact_chip_keeps_its_budgets(answer: Any) -> None:
    """No share sums to more than it did, whole counts, and the chip is the one of the shares."""
    technology = answer.chip.technology
    for kind in ("area", "power"):
        default = sum(technology.budget[f"{kind}_{name}"].value for name in SPLIT)
        assert sum(answer.shares[f"{kind}_{name}"] for name in SPLIT) == pytest.approx(default, rel=1e-6)
    assert answer.chip.cores % technology.quantities["core_group"].value == 0
    used = answer.chip.cores * technology.quantities["core_area"].value
    assert used <= answer.shares["area_core"] * technology.budget["die_area"].value * (1 + 1e-6)
    again = technology.chip(**answer.shares)
    assert dict(again.figures) == dict(answer.chip.figures)


def test_elasticities_are_gains(answer: Any) -> None:
    """Each says what a percent more of a budget saves: none costs, and power is worth something."""
    assert set(answer.elasticities) == set(BUDGETS)
    assert all(x <= 1e-6 for x in answer.elasticities.values())
    assert answer.elasticities["power"] < -0.01


x, y = sympy.symbols("matrix_rate memory_bandwidth", positive=True)
n = sympy.Symbol("rows", positive=True)
FREE, AT = frozenset({"matrix_rate", "memory_bandwidth"}), {"matrix_rate": 2.0, "memory_bandwidth": 4.0}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (n / x + Max(1 / y, n * log2(n) / x), 8.0 / 2 + max(0.25, 8 * 3 / 2)),
        (ceil_div(n, x), 4.0),
        (ceil_div(1, x), 1.0),
        (Min(1 / x, 1 / y, n), 0.25),
        (ceil_div(n, 3) / x, 1.5),
    ],
)
def test_relaxed_forms_at_a_point(expr: Any, expected: float) -> None:
    """Numbers fold exactly, roundings of rates become quotients, the best way of a minimum is taken."""
    assert value_at(relax(expr, {"rows": 8.0}, FREE, AT).form, AT) == pytest.approx(expected)


@given(amount=st.floats(0.01, 1e4), size=st.floats(0.1, 100))
def test_the_relaxation_of_a_rounding_is_a_lower_bound(amount: float, size: float) -> None:
    atom = ceil_div(sympy.Symbol("a", positive=True), sympy.Symbol("b", positive=True))
    at = dict(zip(sorted(atom.free_symbols, key=str), (amount, size), strict=True))
    assert float(evaluate(atom.relaxed(), at)) <= math.ceil(amount / size) * (1 + 1e-12)


@pytest.mark.parametrize(("expr", "word"), [(n / x - 1 / y, "difference"), (above_one(x), "above_one")])
def test_a_time_without_relaxation_is_refused(expr: Any, word: str) -> None:
    with pytest.raises(sf.InputError, match=word):
        relax(expr, {"rows": 8.0}, FREE, AT)


TECHNOLOGY = Technology.load("ampere", "5nm")
BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a perimeter beyond the die": ({"perimeter": "1 m"}, ("perimeter", "1000 mm", "115")),
    "an area without a unit": ({"area": 800}, ("die_area", "found 800", "unit missing")),
    "a power of something else": ({"power": "7 mm"}, ("power", "'7 mm'")),
    "a package without room": ({"package_area": "700 mm2"}, ("package_area", "700 mm2")),
    "an area that holds no core": ({"area": "1 mm2"}, ("core",)),
}


@pytest.mark.parametrize("name", BAD, ids=lambda name: name.replace(" ", "-"))
def test_bad_budgets_are_one_clear_line(name: str) -> None:
    options, words = BAD[name]
    with pytest.raises(sf.InputError) as caught:
        allocate(ask, TECHNOLOGY, smooth=True, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_model_that_no_memory_holds() -> None:
    def large(system: sf.System) -> sf.Run:
        return sf.training(sf.Model.load("gpt3-175b"), system, batch=1, sequence=128)

    with pytest.raises(sf.InputError, match="nothing fits"):
        allocate(large, TECHNOLOGY, smooth=True, fits=True)


def test_without_the_solver_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise ImportError

    error = sf.InputError  # loaded before nothing can be
    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(error, match=r"pip install 'symperf\[allocate\]'"):
        ChipProgram(TECHNOLOGY, {})


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["allocate", "gpt-22b", "--technology", "ampere", "--node", "5nm", "--tp", "8", "--batch", "4", "--smooth"]
    asked += ["--sequence", "2048", "--power", "500 W"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["relaxed_time_s"] <= found["time_s"] <= found["default_time_s"]
    assert set(found["elasticities"]) == set(BUDGETS)
    assert main(asked) == 0
    assert "elasticity" in capsys.readouterr().out
    assert main([*asked, "--area", "8"]) == 2
    assert "die_area" in capsys.readouterr().err
