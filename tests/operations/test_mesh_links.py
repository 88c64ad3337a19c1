"""Domains in which every pair of devices has a link of its own: transfers counted link by link, and predictions."""

from __future__ import annotations

import csv
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import FOLDER
from support.collective_cases import SYSTEM, value

import symperf as sf
from symperf.common.errors import InputError
from symperf.formulas import collectives as c
from symperf.formulas.collectives.tiers import SCALE_UP
from symperf.formulas.language.discipline import direction_of
from symperf.formulas.language.named_calls import name_calls
from symperf.formulas.language.symbols import SYMBOLS
from symperf.infer.kernels import InferenceKernels
from symperf.operations.groups import Group
from symperf.operations.kernels import Kernels
from symperf.spending.forms import work_forms
from symperf.systems.kernel_constants import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES, RANKS, DEVICES = st.floats(1e3, 1e10), st.integers(2, 16), st.integers(0, 16)
BARE = {"scale_up_latency": 0.0, "scale_up_half_bytes": 0.0}
EXTRA = {name: 1e-6 if name.endswith("_latency") else 0.5 for family in FAMILIES.values() for name in family} | {
    "exchange_units": 4.0,
    "peer_latency": 2e-6,
    "peer_efficiency": 0.6,
    "own_limit_bytes": 1e12,
    "launch_latency": 3e-6,
    "gap_latency": 0.0,
    "graph_removal": 0.0,
    "collective_latency": 4e-5,
    "switch_efficiency": 0.7,
    "node_limit": 2.0,
    "scale_up_half_bytes": 2e7,
}
COUNT = (100.0, 8.0, 4096.0, 2.0, 1.0)
CALLS: dict[str, Callable[[Kernels, Group], Any]] = {
    "all_reduce": lambda kernels, group: kernels.all_reduce("call", 1e8, group),
    "all_gather": lambda kernels, group: kernels.all_gather("call", 1e8, group),
    "reduce_scatter": lambda kernels, group: kernels.reduce_scatter("call", 1e8, group),
    "all_to_all": lambda kernels, group: kernels.all_to_all("call", 1e8, group),
    "node_limited": lambda kernels, group: kernels.node_limited("call", 1e8, COUNT, group),
    "direct": lambda kernels, group: kernels.exchange("call", "direct", COUNT, group),
    "bulk": lambda kernels, group: kernels.exchange("call", "bulk", COUNT, group),
    "send": lambda kernels, group: kernels.send("call", 1e8, group),
}


def structure(links: str, **other: Any) -> Any:
    """What operations of a network read of a structure."""
    given = {"families": (), "in_switch": False, "tiers": 2, "node_limited": True, "limits_domains": False} | other
    return SimpleNamespace(links=links, mixed_rates=False, kept=(), format=1, called_collectives=False, **given)


# --- what a mesh carries


@given(size=SIZES, ranks=RANKS, spare=DEVICES)
def test_a_group_takes_as_long_as_parts_sent_straight_to_each_peer(size: float, ranks: int, spare: int) -> None:
    """Each link of the group carries a q-th of the message each way, in a domain of `ranks` and `spare` devices."""
    devices = ranks + spare
    link = SYSTEM["scale_up_bandwidth"] * SYSTEM["scale_up_efficiency"] / (devices - 1)
    once = size / ranks / link
    for form, rounds in (
        (c.scale_up_all_gather_time, 1),
        (c.scale_up_reduce_scatter_time, 1),
        (c.scale_up_all_reduce_time, 2),
        (c.scale_up_all_to_all_time, 1),
    ):
        found = value(c.mesh_time(form(size, ranks), ranks), scale_up_size=devices, **BARE)
        assert found == pytest.approx(rounds * once, rel=1e-12)
    assert value(c.mesh_time(c.scale_up_send_time(size), 2), scale_up_size=devices, **BARE) == pytest.approx(
        size / link, rel=1e-12
    )


@given(size=SIZES, ranks=RANKS, spare=DEVICES, half=st.floats(0, 1e8))
def test_a_group_is_as_many_rings_as_a_device_has_links_in_it(size: float, ranks: int, spare: int, half: float) -> None:
    """Each over links of one (n_u - 1)-th of bandwidth and half size, with its part of the message."""
    devices = ranks + spare
    link = SYSTEM["scale_up_bandwidth"] * SYSTEM["scale_up_efficiency"] / (devices - 1)
    ring = c.simple_all_gather_time(size / (ranks - 1), ranks, link, 0, half / (devices - 1))
    whole = c.simple_all_gather_time(size, ranks, *SCALE_UP)
    found = value(c.mesh_time(whole, ranks), scale_up_size=devices, scale_up_latency=0.0, scale_up_half_bytes=half)
    assert found == pytest.approx(float(ring), rel=1e-12)


@given(devices=st.integers(1, 64), ranks=st.integers(1, 64))
def test_a_share_is_a_part_and_the_whole_domain_has_all(devices: int, ranks: int) -> None:
    share = value(c.mesh_share(min(ranks, devices)), scale_up_size=devices)
    assert 0 < share <= 1 + 1e-12
    assert value(c.mesh_share(devices), scale_up_size=devices) == pytest.approx(1, rel=1e-12)
    assert value(c.mesh_time(c.scale_up_all_reduce_time(1e9, 1), 1), scale_up_size=devices) == 0


def test_two_and_eight_mi300x_sum_as_published() -> None:
    """The efficiency is fitted to eight; that two have one link of seven follows."""
    with (FOLDER / "collectives.csv").open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    system = sf.System.load("mi300x")
    values = {name: system.value(name) for name in SYSTEM}
    for row, ranks in (("STAS-105", 2), ("STAS-106", 8)):
        measured, size = float(rows[row]["busbw_GB_per_s"]), float(rows[row]["message_bytes"])
        time = value(c.mesh_time(c.scale_up_all_reduce_time(size, ranks), ranks), **values)
        assert 2 * (ranks - 1) / ranks * size / time / 1e9 == pytest.approx(measured, rel=0.08)


# --- in operations


@pytest.mark.parametrize("families", [(), ("domain",), ("domain", "crowding")], ids=" ".join)
@pytest.mark.parametrize("tiers", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_every_transfer_of_a_mesh_has_the_links_of_its_group(name: str, tiers: int, families: tuple[str, ...]) -> None:
    """As with a switch of so much less bandwidth; no more than once, and whether calls stay named or not."""
    for ranks, stride, inner in ((4, 1, 4), (2, 4, 2), (1, 1, 1), *(((16, 1, 8), (4, 4, 2)) if tiers == 2 else ())):
        part_of = (1 if name == "send" else max(1, inner - 1)) / 7
        less = {each: part_of * ({**SYSTEM, **EXTRA})[each] for each in ("scale_up_bandwidth", "scale_up_half_bytes")}
        group = Group(sympy.Integer(ranks), sympy.Integer(stride))
        for own in (False, True):
            kinds = [
                InferenceKernels(structure(links, tiers=tiers, families=families, own_all_reduce=own))
                for links in ("switch", "mesh")
            ]
            switch, mesh = (CALLS[name](kernels, group).time for kernels in kinds)
            found = value(mesh, **EXTRA)
            assert found == pytest.approx(value(switch, **{**EXTRA, **less}), rel=1e-12)
        with name_calls():
            named = CALLS[name](Kernels(structure("mesh", tiers=tiers, families=families)), group).time
        opened = CALLS[name](Kernels(structure("mesh", tiers=tiers, families=families)), group).time
        assert value(named.replace(lambda e: hasattr(e, "read"), lambda e: e.definition()), **EXTRA) == pytest.approx(
            value(opened, **EXTRA), rel=1e-12
        )


@pytest.mark.parametrize("name", CALLS)
def test_no_transfer_of_a_mesh_slows_when_a_rate_rises(name: str) -> None:
    """Proved, with the degree as a symbol."""
    group = Group(SYMBOLS["tp"].symbol, SYMBOLS["dp"].symbol)
    time = CALLS[name](Kernels(structure("mesh")), group).time
    for rate in ("scale_up_bandwidth", "scale_out_bandwidth"):
        assert direction_of(time, SYMBOLS[rate].symbol) in (-1, None)


# --- in predictions


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_a_smaller_group_is_slower_and_no_bytes_are_added(tp: int) -> None:
    mesh = sf.System.load("mi300x")
    plan = sf.Plan(tp=tp)
    runs = [
        sf.training("llama-2-7b", system, plan, batch=1, sequence=1024)
        for system in (replace(mesh, links="switch"), mesh)
    ]
    times = [{row.name: row.each_s for row in run.table()} for run in runs]
    name = "layer/attention/reduce/forward"
    if tp in (2, 4):
        assert times[1][name] > times[0][name] * 1.5
    else:
        assert times[1] == pytest.approx(times[0], rel=1e-12)
    if tp == 2:
        assert work_forms(runs[1].structure) == work_forms(runs[0].structure)


def test_a_link_is_a_choice_of_a_system_that_others_start_from() -> None:
    mesh = sf.System.load("mi355x")
    assert mesh.links == sf.System.load("mi350x").links == "mesh"
    assert mesh.with_values({"scale_up_bandwidth": 5e11}, "bf16").links == "mesh"
    assert "in a mesh" in repr(mesh)
    assert sf.System.load("h100-sxm").links == "switch"
    switched = sf.System.from_table({"base": "mi355x", "name": "mine", "scale_up_links": "switch"})
    assert switched.links == "switch"
    with pytest.raises(InputError, match="switch_efficiency: found with scale_up_links"):
        mesh.with_values({"switch_efficiency": 0.8}, "bf16")
