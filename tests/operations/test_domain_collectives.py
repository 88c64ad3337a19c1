"""Measured collectives of a scale-up domain: their form, what it replaces, and listings that it was not fitted to."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibration_scripts import FOLDER
from support.collective_cases import SYSTEM, literature, value

import symperf as sf
from symperf.common.frozen import Frozen
from symperf.formulas import collectives as c
from symperf.systems.kernel_constants import FAMILIES, INSTEAD, families_of
from symperf.systems.system_symbols import SYMBOLS

if TYPE_CHECKING:
    from pathlib import Path

DOMAIN = {
    "domain_latency": 5e-6,
    "domain_hop_latency": 1e-6,
    "domain_piece_latency": 1e-5,
    "domain_efficiency": 0.75,
    "pair_crowding": 0.5,
}
LINK = SYSTEM["scale_up_bandwidth"] * DOMAIN["domain_efficiency"]
SIZES = st.floats(1e3, 1e10)
RANKS = st.integers(2, 72)


def cut(piece: float, link: float) -> float:
    """The least of k a + D T / k over three numbers of pieces, with D = 1 and a = c / 4."""
    return min(k * piece / 4 + link / k for k in (0.5, 2, 8))


def of(expr: object) -> float:
    return value(expr, **SYSTEM, **DOMAIN)


def one_domain(size: float, ranks: int, hops: float, rounds: int) -> float:
    """The same in plain numbers."""
    link = size / LINK
    return (
        cut(DOMAIN["domain_piece_latency"], link)
        + hops * DOMAIN["domain_hop_latency"]
        + rounds * (ranks - 1) / ranks * link
    )


@given(size=SIZES, ranks=RANKS, rounds=st.sampled_from((1, 2)))
def test_a_domain_is_as_written(size: float, ranks: int, rounds: int) -> None:
    found = of(c.domain_collective_time(c.domain_transfer_time(size), ranks, rounds * (ranks - 1), rounds))
    assert found == pytest.approx(one_domain(size, ranks, rounds * (ranks - 1), rounds), rel=1e-12)


@given(size=SIZES, ranks=RANKS)
def test_one_rank_costs_nothing_and_one_domain_has_one_tier(size: float, ranks: int) -> None:
    link = c.domain_transfer_time(size)
    assert of(c.domain_collective_time(link, 1, 0, 2)) == 0.0
    assert of(c.group_collective_time(link, size, 1, 1, 0, 2)) == 0.0
    one = of(c.domain_collective_time(link, ranks, 2 * (ranks - 1), 2))
    assert of(c.group_collective_time(link, size, ranks, 1, 2 * (ranks - 1), 2)) == pytest.approx(one, rel=1e-12)


@given(size=SIZES, outer=st.integers(2, 512))
def test_domains_of_one_device_have_the_other_tier_alone(size: float, outer: int) -> None:
    found = of(c.group_collective_time(c.domain_transfer_time(size), size, 1, outer, 0, 2))
    wanted = of(c.group_all_reduce_time(size, 1, outer))
    assert found == pytest.approx(wanted, rel=1e-12)


@given(size=SIZES, inner=st.integers(2, 16), outer=st.integers(2, 64))
def test_both_tiers_at_once_outrun_one_after_the_other(size: float, inner: int, outer: int) -> None:
    link = c.domain_transfer_time(size)
    both = of(c.group_collective_time(link, size, inner, outer, 2 * (inner - 1), 2))
    parts = [of(c.domain_collective_time(link, inner, inner - 1, 1)) for _ in range(2)]
    between = of(c.group_all_reduce_time(size / inner, 1, outer))
    assert both <= (sum(parts) + between) * (1 + 1e-12)
    assert both >= of(c.domain_collective_time(link, inner, 2 * (inner - 1), 2)) * (1 - 1e-12)


@given(link=st.floats(1e-7, 1.0))
def test_cutting_a_message_costs_little_more_than_with_the_best_number_of_pieces(link: float) -> None:
    """The best number of all adds the geometric mean of c and T; three of them touch it, and stay near in between."""
    piece = DOMAIN["domain_piece_latency"]
    found, best = of(c.cut_message_time(link)), math.sqrt(piece * link)
    assert found >= best * (1 - 1e-12)
    if piece / 16 <= link <= 16 * piece:
        assert found <= 1.25 * best * (1 + 1e-12)


@pytest.mark.parametrize("times", [1 / 16, 1, 16])
def test_three_numbers_of_pieces_are_the_best_somewhere(times: float) -> None:
    piece = DOMAIN["domain_piece_latency"]
    assert of(c.cut_message_time(times * piece)) == pytest.approx(math.sqrt(times) * piece, rel=1e-12)


@given(size=SIZES, ranks=RANKS)
def test_a_pair_is_not_crowded_and_more_ranks_are(size: float, ranks: int) -> None:
    alone = of(c.domain_transfer_time(size))
    assert of(c.crowded_transfer_time(size, 2)) == pytest.approx(alone, rel=1e-12)
    share = DOMAIN["pair_crowding"]
    wanted = alone * (1 - share + share * ranks * (ranks - 1) / 2)
    assert of(c.crowded_transfer_time(size, ranks)) == pytest.approx(wanted, rel=1e-12)


# --- in predictions


@pytest.mark.parametrize("system", ["h100-sxm", "a100-80gb-sxm"])
def test_a_step_sums_in_the_measured_time_of_its_system(system: str) -> None:
    loaded = sf.System.load(system)
    run = sf.training("gpt-22b", loaded, sf.Plan(tp=8), batch=8, sequence=2048)
    (reduce,) = [row for row in run.table() if row.name == "layer/attention/reduce/forward"]
    link = 2048 * 6144 * 2 / (loaded.value("scale_up_bandwidth") * loaded.value("domain_efficiency"))
    start = loaded.value("domain_latency") + cut(loaded.value("domain_piece_latency"), link)
    wanted = start + 14 * loaded.value("domain_hop_latency") + 2 * 7 / 8 * link
    assert reduce.each_s == pytest.approx(wanted, rel=1e-9)
    slow = run.bind(launch_latency=1e-3)
    assert {row.name: row.each_s for row in slow.table()}["layer/attention/reduce/forward"] == pytest.approx(
        wanted, rel=1e-9
    )


def test_the_software_s_gap_stays_before_a_measured_collective() -> None:
    plan, work = sf.Plan(tp=8), {"batch": 1, "prompt": 8, "generate": 2, "stack": "tensorrt-llm"}
    one, other = (sf.inference("llama-2-7b", "h100-sxm", plan, **work, gap_latency=gap) for gap in (0.0, 1e-4))
    times = [{op.name: op.time_s / op.count for op in run.operations()} for run in (one, other)]
    assert times[1]["layer/mlp/reduce"] - times[0]["layer/mlp/reduce"] == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize("ranks", [4, 8])
def test_listings_of_others_are_met(ranks: int) -> None:
    """All-reduces from 4 KiB on that other people measured on H100: none of these rows set a domain's constants."""
    system = sf.System.load("h100-sxm")
    with (FOLDER / "nccl.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["hw_key"].startswith("H100")]
    rows = [row for row in rows if row["num_devices"] == str(ranks) and float(row["message_bytes"]) >= 2**12]
    errors = []
    for row in rows:
        size = float(row["message_bytes"])
        link = size / (system.value("scale_up_bandwidth") * system.value("domain_efficiency"))
        start = system.value("domain_latency") + cut(system.value("domain_piece_latency"), link)
        hops = 2 * (ranks - 1) * system.value("domain_hop_latency")
        errors.append((start + hops + 2 * (ranks - 1) / ranks * link) / (float(row["time_us"]) * 1e-6) - 1)
    assert len(rows) >= 8
    assert np.median(np.abs(errors)) < 0.2


def test_a_send_inside_a_domain_is_a_hop_of_its_collectives() -> None:
    """In one tier too; and between domains it is as before."""
    hop = 1e7 / LINK + DOMAIN["domain_hop_latency"]
    assert of(c.domain_send_time(1e7, 4, 1)) == pytest.approx(hop, rel=1e-12)
    assert of(c.domain_send_time(1e7, 4, 8)) == pytest.approx(max(hop, of(c.group_send_time(1e7, 4, 8))), rel=1e-12)
    system = sf.System.load("h100-sxm")
    one_tier = {k: v for k, v in system.quantities.items() if not k.startswith("scale_out")}
    alone = replace(system, tiers=("scale_up",), quantities=Frozen(one_tier))
    times = [
        sf.training("gpt-6.7b", each, sf.Plan(pp=8), batch=8, sequence=1024).value("pipeline/send/forward")
        for each in (system, alone)
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-12)


# --- what a user states


def test_who_states_a_constant_of_the_older_form_means_that_form(tmp_path: Path) -> None:
    """By --set and in a file on a base: unless a constant of the newer form is stated as well."""
    run = sf.training("gpt-22b", "h100-sxm", sf.Plan(tp=8), batch=8, sequence=2048)
    assert "domain" in run.structure.families
    for family, names in INSTEAD.items():
        for name in names:
            assert name in SYMBOLS
            stated = run.bind(**{name: sf.System.load("h100-sxm").value(name)})
            assert family not in stated.structure.families
        own = next(iter(FAMILIES[family]))
        assert family in run.bind(**{names[0]: 1e-6, own: 1e-6}).structure.families
    path = tmp_path / "slow.toml"
    path.write_text('base = "h100-sxm"\n\n[scale_up_latency]\nvalue = "9 us"\nsource = "measured"\n', encoding="utf-8")
    assert "domain" not in sf.System.load(path).families
    older = sf.training("gpt-22b", literature("h100-sxm"), sf.Plan(tp=8), batch=8, sequence=2048)
    same = {"scale_up_latency": sf.System.load("h100-sxm").value("scale_up_latency")}
    assert run.bind(**same).value("time") == pytest.approx(older.value("time"), rel=1e-12)


def test_a_family_needs_all_its_constants() -> None:
    for family, names in FAMILIES.items():
        assert family in families_of(names)
        for name in names:
            assert family not in families_of(set(names) - {name})
