"""Cost of chips and of runs: yields, wafers, packages, rents, owned devices."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_cases import make

import symperf as sf
from symperf.common.files import read_toml
from symperf.spending.prices import GRIDS, PRICES
from symperf.systems.system import catalogue_names
from symperf.technology import Technology
from symperf.technology.cost import PROCESS, YIELDS, chip_cost

H100 = Technology.load("h100").chip()


def die(area: float, **values: Any) -> Any:
    """The cost of an H100-like device with a die of so many mm2."""
    package = {"package_area": f"{area + 700} mm2"}
    return Technology.load("h100").chip(die_area=f"{area} mm2", **package).cost(**values)


@given(area=st.floats(50, 2000), density=st.floats(1e-4, 1) | st.just(0.0), clustering=st.floats(0.5, 50))
def test_yields_are_parts_and_ordered(area: float, density: float, clustering: float) -> None:
    """In (0, 1]; random defects kill most, clusters least; the models meet where there are no defects."""
    yields = die(area, defect_density=f"{density} /cm2", clustering=clustering).yields
    expected = area / 100 * density
    assert all(0 < part <= 1 + 1e-9 for part in yields.values())
    assert yields["poisson"] == pytest.approx(math.exp(-expected), rel=1e-9)
    assert yields["clustered"] == pytest.approx((1 + expected / clustering) ** -clustering, rel=1e-9)
    murphy = 1.0 if expected == 0 else (-math.expm1(-expected) / expected) ** 2
    assert yields["murphy"] == pytest.approx(murphy, rel=2e-7)
    assert yields["poisson"] <= min(yields["clustered"], yields["murphy"]) * (1 + 1e-6)


def test_many_clusters_are_random_defects() -> None:
    """The negative binomial tends to Poisson as defects cluster less."""
    yields = die(814, clustering=1e6).yields
    assert yields["clustered"] == pytest.approx(yields["poisson"], rel=1e-5)


def test_textbook_dies_per_wafer() -> None:
    """Hennessy and Patterson: a 300 mm wafer has 270 dies of 2.25 cm2 and 640 of 1 cm2."""
    assert die(225, diameter="300 mm").dies_per_wafer == pytest.approx(270, abs=1)
    assert die(100, diameter="300 mm").dies_per_wafer == pytest.approx(640, abs=1)


def test_textbook_yield() -> None:
    """Hennessy and Patterson: 0.031 defects a cm2, N = 13.5 on 1.5 cm squares (alpha is 1 a process)."""
    density = 0.031 * 13.5
    found = die(225, defect_density=f"{density} /cm2", clustering=13.5).yields["clustered"]
    assert found == pytest.approx((1 + 0.031 * 2.25) ** -13.5)
    assert found == pytest.approx(0.40, abs=0.01)


@given(area=st.floats(50, 800), more=st.floats(1.05, 2))
def test_a_larger_die_costs_more(area: float, more: float) -> None:
    assert die(area * more).dollars["dies"] > die(area).dollars["dies"] * more


def test_smaller_dies_yield_better() -> None:
    """Two halves cost less silicon than one die, and bond once more."""
    one, two = H100.cost(), H100.cost(dies=2)
    assert two.dollars["dies"] < one.dollars["dies"]
    assert two.yields["clustered"] > one.yields["clustered"]


def test_cost_adds_up() -> None:
    """A device is its working dies, memory and package, over the bonds that hold, and its test."""
    cost = H100.cost(bond_yield=0.9)
    parts = sum(cost.dollars[name] for name in ("dies", "memory", "package"))
    assert cost.total == pytest.approx(parts / 0.9**6 + cost.dollars["test"])
    assert cost.dollars["dies"] == pytest.approx(16988 / cost.dies_per_wafer / cost.yields["clustered"])
    assert "assembly" in str(cost)
    assert all(cost.sources.values())


def test_order_of_the_published_estimate() -> None:
    """Public estimates of the H100's cost are near 3320 dollars; counted with all assembly losses it is dearer."""
    assert 2500 < H100.cost().total < 5500
    assert H100.cost(bond_yield=1.0).total == pytest.approx(3320, rel=0.15)


def test_every_price_and_grid_has_a_source_and_a_date_or_year() -> None:
    for name, entry in read_toml(PRICES, PRICES.name).items():
        assert name in catalogue_names()
        assert "20" in entry["price_per_hour"]["source"]
    assert all("year 20" in entry["grid_intensity"]["source"] for entry in read_toml(GRIDS, GRIDS.name).values())
    assert read_toml(PROCESS, PROCESS.name)["5nm"]["wafer_price"]["source"]


def test_rent_of_a_run() -> None:
    """Devices, hours and the price; per million tokens and of a whole training run."""
    run = make("gpt-22b", batch=8, tp=8).bind(price_per_hour="3.6 USD/h")
    cost = run.cost()
    assert (cost.basis, cost.device_hour) == ("rent", pytest.approx(3.6))
    assert cost.dollars == pytest.approx(8 * run.value("time") * 1e-3)
    assert cost.per_million_tokens == pytest.approx(cost.dollars / (8 * 2048) * 1e6)
    assert cost.of_tokens(1e12) == pytest.approx(cost.per_million_tokens * 1e6)


def test_the_catalogue_has_a_dated_price_for_some() -> None:
    cost = make("gpt-22b", "h100-sxm", batch=8, tp=8).cost()
    assert "2025" in cost.source


def test_an_owned_device_is_written_off_and_draws_power() -> None:
    year = 365.25 * 86400
    changes = {"price": 30000.0, "lifetime": "4 years", "electricity_price": "0.08 USD/kWh", "facility_overhead": 1.2}
    run = make("gpt-22b", batch=8, tp=8).bind(**changes)
    cost = run.cost()
    second = 30000 / (4 * year) + 400 * 1.2 * 0.08 / 3.6e6
    assert cost.basis == "owned"
    assert cost.dollars == pytest.approx(8 * run.value("time") * second)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: make("gpt-22b", "h800-sxm", batch=8, tp=8).cost(), ("no price", "price_per_hour")),
        (lambda: make("gpt-22b", batch=8, tp=8).bind(price=3e4).cost(), ("price without a lifetime",)),
        (lambda: Technology.load("deepflow", "1nm").chip().cost(), ("1nm", "no wafer_price and no defect_density")),
        (lambda: H100.cost(wafer=3), ("unknown name 'wafer'", "wafer_price")),
        (lambda: H100.cost(bond_yield=1.2), ("bond_yield", "found 1.2")),
        (lambda: H100.cost(dies=0), ("dies", "found 0")),
        (lambda: chip_cost(H100, model="seeds"), ("model", "'seeds'", " or ".join(YIELDS))),
        (lambda: H100.cost(diameter="20 mm"), ("814 mm2", "no part of a wafer")),
    ],
)
def test_bad_input_is_one_clear_line(act: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(sf.InputError) as caught:
        act()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_node_without_a_price_takes_the_users() -> None:
    cost = Technology.load("deepflow", "2nm").chip().cost(wafer_price="30000 USD", defect_density="0.2 /cm2")
    assert cost.dollars["dies"] > 0
    assert 0 < cost.yields["clustered"] < 1
