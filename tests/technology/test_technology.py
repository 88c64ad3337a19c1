"""Generated chips: DeepFlow's published tables, real parts from their die figures, laws, sources."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symperf as sf
from symperf.systems.memories import Memory
from symperf.systems.memories import names as memory_names
from symperf.technology import Technology, set_names
from symperf.technology.components import NETWORKS
from symperf.technology.systems import table_of, toml_of
from symperf.technology.technology import part_names

TIB, GIB, MIB = 2.0**40, 2.0**30, 2.0**20
PUBLISHED = """
14 643 0.87 1.52 125.0 2.1 27.3 93.7 6.00 7.50 20.0
10 960 0.83 1.68 206.7 3.9 50.5 173.5 6.09 7.66 29.9
7 1433 0.79 1.87 343.6 7.2 93.5 321.0 6.19 7.78 44.6
5 2139 0.74 2.10 574.7 13.3 173.1 593.8 6.25 7.88 66.6
3 3192 0.70 2.37 968.8 24.7 320.5 1098 6.28 7.94 99.4
2 4765 0.66 2.70 1648.9 45.7 593.6 2028.8 6.31 7.97 148.4
1 7112 0.61 3.12 2839.7 84.7 1099.2 3744.4 6.34 8.00 221.5
"""
"""DeepFlow, nanocad-lab/DeepFlow, the outputs of its node study (summary.txt of each node, arXiv 2211.03309).

Node, cores, volts, GHz, TFLOP/s before its utilisation; bandwidths of L2, L1, registers in what it prints as TB/s
(2**40 bytes a second) and their sizes in 2**20 bytes. A100 and H100: NVIDIA's data sheets.
"""
ROWS = [tuple(map(float, line.split())) for line in PUBLISHED.split("\n") if line]
MEMORIES = {"hbm1": 924.7, "hbm2": 1.3 * 1024, "hbm2e-8": 1.5 * 1024, "hbm2e-12": 2.5 * 1024, "hbm2e-16": 3.9 * 1024}
"""DeepFlow's memory study: 2**30 bytes a second, the first to four digits and the others to two."""
SHEETS = {
    "a100": {
        "matrix_rate": 312e12,
        "vector_rate": 19.5e12,
        "frequency": 1.41e9,
        "memory_bandwidth": 2039e9,
        "memory_capacity": 80e9,
        "scale_up_bandwidth": 300e9,
        "compute_units": 108,
    },
    "h100": {
        "matrix_rate": 989.4e12,
        "vector_rate": 66.9e12,
        "frequency": 1.83e9,
        "l2_bandwidth": 8986e9,
        "memory_bandwidth": 3350e9,
        "memory_capacity": 80e9,
        "scale_up_bandwidth": 450e9,
        "compute_units": 132,
    },
}
"""Data sheets, of what the part's file does not give: the clock, and what follows from it, is nowhere in it."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]:.0f}nm")
def test_deepflow_scaling_table(row: tuple[float, ...]) -> None:
    """Cores, voltage, clock, rate, and size and bandwidth of every memory on the die are the published ones."""
    node, cores, volts, clock, rate, *memories = row
    figures = Technology.load("deepflow", f"{node:.0f}nm").chip().figures
    assert figures["cores"] == cores
    assert figures["voltage"] == pytest.approx(volts, abs=0.0051)
    assert figures["frequency"] / 1e9 == pytest.approx(clock, abs=0.0051)
    assert figures["matrix_rate"] / 1e12 == pytest.approx(rate, rel=1e-3)
    levels = ("l2", "l1", "registers")
    found = [figures[f"{level}_bandwidth"] / TIB for level in levels]
    found += [figures[f"{level}_capacity"] / MIB for level in levels]
    assert found == pytest.approx(memories, rel=0.02)


@pytest.mark.parametrize(("name", "published"), MEMORIES.items())
def test_deepflow_memory_steps(name: str, published: float) -> None:
    """Bandwidth of every memory step of the same study."""
    chip = Technology.load("deepflow", memory=name).chip()
    assert chip.figures["memory_bandwidth"] / GIB == pytest.approx(published, rel=0.02)


def test_deepflow_network_between_packages() -> None:
    """48.1 in 2**30 bytes a second, after DeepFlow's utilisation of 0.96."""
    chip = Technology.load("deepflow", "5nm").chip()
    assert 0.96 * chip.figures["scale_out_bandwidth"] / GIB == pytest.approx(48.1, rel=1e-3)


@pytest.mark.parametrize(
    ("part", "figure"), [(part, figure) for part, sheet in SHEETS.items() for figure in sheet], ids="-".join
)
def test_real_parts_from_their_die_figures(part: str, figure: str) -> None:
    """Die, power, tensor cores, stacks and generations of memory and links give the data sheet within 15 %."""
    assert Technology.load(part).chip().value(figure) == pytest.approx(SHEETS[part][figure], rel=0.15)


def test_a_part_is_not_told_its_clock() -> None:
    """What a part's file gives is no rate, no clock and no bandwidth."""
    for name in part_names():
        technology = Technology.load(name)
        assert "core_limit_frequency" not in technology.quantities
        assert set(technology.budget) <= {
            *("die_area", "package_area", "power", "cores", "stacks", "edge_memory", "edge_network"),
            *(
                f"{kind}_{x}"
                for kind in ("area", "power")
                for x in ("core", "l2", "l1", "registers", "memory", "network")
            ),
        }


def _roots(power: float, nominal: float, volts: float, threshold: float) -> float:
    """The real root of DeepFlow's cubic above the threshold, by a polynomial solver."""
    constant = power / nominal * volts * (volts - threshold) ** 2
    roots = np.roots([1, -2 * threshold, threshold**2, -constant])
    return float(max(root.real for root in roots if abs(root.imag) < 1e-6))


@given(
    share=st.floats(0.01, 0.44),
    area=st.floats(0.05, 0.6),
    volts=st.floats(0.5, 1.5),
    threshold=st.floats(0.1, 0.4),
    margin=st.floats(0.15, 0.4),
)
def test_voltage_and_clock_follow_the_power_law(
    share: float, area: float, volts: float, threshold: float, margin: float
) -> None:
    """The closed forms are the root of the cubic, the clock of the law, and DeepFlow's rule below the margin."""
    values: dict[str, Any] = {"core_voltage": volts, "core_threshold": threshold, "core_margin": margin}
    technology = Technology.load("deepflow", "7nm", values=values)
    chip = technology.chip(area_core=area, power_core=share)
    q, power = technology.quantities, share * 300
    nominal = chip.cores * q["core_power"].value
    root = _roots(power, nominal, volts, threshold)
    law = q["core_frequency"].value * ((root - threshold) ** 2 / root) / ((volts - threshold) ** 2 / volts)
    floor = threshold + margin
    if root < floor:
        law *= (root / floor) ** 2
        root = floor
    assert chip.figures["voltage"] == pytest.approx(root, rel=1e-6)
    assert chip.figures["frequency"] == pytest.approx(law, rel=1e-6)
    drawn = nominal * law / q["core_frequency"].value * (root / volts) ** 2
    assert drawn == pytest.approx(power, rel=1e-6)


@given(die=st.floats(210, 850), power=st.floats(100, 1200), seed=st.sampled_from([*set_names()]))
def test_more_of_a_budget_is_never_slower(die: float, power: float, seed: str) -> None:
    """More power raises every rate; more area holds no fewer cores and stacks."""
    technology = Technology.load(seed)
    small = technology.chip(die_area=f"{die} mm2", power=power, package_area=f"{die + 600} mm2").figures
    more = technology.chip(die_area=f"{die} mm2", power=power * 1.3, package_area=f"{die + 600} mm2").figures
    wide = technology.chip(die_area=f"{die * 1.2} mm2", power=power, package_area=f"{die * 1.2 + 600} mm2").figures
    for name in ("matrix_rate", "vector_rate", "l2_bandwidth", "memory_bandwidth"):
        assert more[name] >= small[name] * (1 - 1e-12)
    assert wide["cores"] >= small["cores"]
    assert wide["stacks"] >= small["stacks"]
    assert wide["matrix_rate"] >= small["matrix_rate"] * (1 - 1e-12)


@pytest.mark.parametrize("name", set_names())
def test_every_node_has_sources_and_gets_better(name: str) -> None:
    """Every quantity tells where it comes from and by what it was scaled; a later node computes more."""
    first = Technology.load(name)
    rates = []
    for node in first.nodes:
        technology = Technology.load(name, node)
        for key, quantity in {**technology.quantities, **technology.budget}.items():
            assert quantity.source, key
            assert "set by the user" not in quantity.source, key
        steps = first.nodes.index(node)
        assert technology.quantities["core_area"].source.count("; x ") == steps
        rates.append(technology.chip().figures["matrix_rate"])
    assert rates == sorted(rates)


def test_a_node_is_called_by_its_number_or_its_other_name() -> None:
    assert Technology.load("deepflow", "5").node == Technology.load("deepflow", "5NM").node == "5nm"
    assert Technology.load("deepflow", "12nm").node == "14nm"


@pytest.mark.parametrize("name", memory_names())
def test_every_memory_generation_makes_a_chip(name: str) -> None:
    """From GDDR6 to projections; the bandwidth is that of its stacks or what its power moves."""
    technology = Technology.load("ampere", "5nm", memory=name)
    memory = Memory.load(name)
    counted = {"stacks": 12} if memory.area is None else {}
    chip = technology.chip(**counted)
    assert memory.energy is not None
    figures = chip.figures
    most = figures["memory_links"] * memory.pin_rate.value
    power = chip.budget["power"].value * chip.budget["power_memory"].value / memory.energy.value
    assert figures["memory_bandwidth"] == pytest.approx(min(most, power), rel=1e-9)


@pytest.mark.parametrize("kind", ["scale_up", "scale_out"])
def test_every_network_generation_makes_a_chip(kind: str) -> None:
    for name in (n for n, table in tomllib.loads(NETWORKS.read_text()).items() if table["kind"] == kind):
        network = {kind: name}
        chip = Technology.load("ampere", "5nm", **network).chip(power_network=0.1)  # type: ignore[arg-type]
        component = getattr(chip.technology, kind)
        assert chip.value(f"{kind}_bandwidth") == pytest.approx(component.value("rate") * component.value("lanes"))


def test_the_closed_forms_are_what_is_computed() -> None:
    """The forms in SymPy, with the bound values, are the figures."""
    from symperf.derive.numeric import Values
    from symperf.technology.chip import bindings

    chip = Technology.load("deepflow", "3nm").chip()
    forms = chip.closed_forms()
    given_values = bindings(chip.technology, chip.budget)
    for name, form in forms.items():
        at = {symbol: given_values[str(symbol)] for symbol in form.free_symbols}
        assert Values(at)(form) == pytest.approx(chip.figures[name], rel=1e-12), name


def test_a_generated_system_runs_and_survives_its_file(tmp_path: Any) -> None:
    """The system is an ordinary one: training and inference accept it, and its TOML file is the same system."""
    technology = Technology.load("ampere", "5nm", memory="hbm3", scale_up="nvlink4", scale_out="ndr")
    system = sf.System.from_technology(technology, "mine", power="700 W")
    model = sf.Model.load("llama-2-7b")
    run = sf.training(model, system, sf.Plan(tp=2), batch=2, sequence=512)
    assert 0 < run.value("mfu") < 1
    assert sf.inference(model, system, batch=1, prompt=64, generate=8).value("time") > 0
    path = tmp_path / "mine.toml"
    path.write_text(toml_of(table_of(technology.chip(power="700 W"), "mine")), encoding="utf-8")
    loaded = sf.System.load(path)
    assert {n: q.value for n, q in loaded.quantities.items()} == {n: q.value for n, q in system.quantities.items()}
    assert loaded.matrix_rates["bf16"].value == system.matrix_rates["bf16"].value


def test_a_part_takes_efficiencies_of_what_it_is_like() -> None:
    """Measured efficiencies come with their source; what is only assumed there is assumed here."""
    made = sf.System.from_technology(Technology.load("h100"))
    real = sf.System.load("h100-sxm")
    assert made.value("matrix_efficiency") == real.value("matrix_efficiency")
    assert made.quantities["matrix_efficiency"].source.startswith("as h100-sxm: ")


def test_one_network_alone_joins_all_devices() -> None:
    """Without a network inside a domain each device is reached by the other one."""
    system = sf.System.from_technology(Technology.load("deepflow"))
    assert system.tiers == ("scale_up",)
    none = sf.System.from_technology(Technology.load("deepflow", scale_out="none"))
    assert none.tiers == ()


def test_static_power_is_what_no_share_names() -> None:
    chip = Technology.load("deepflow").chip()
    named = math.fsum(q.value for name, q in chip.budget.items() if name.startswith("power_"))
    assert chip.figures["static_power"] == pytest.approx(300 * (1 - named))
