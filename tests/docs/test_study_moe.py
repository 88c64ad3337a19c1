"""The study of a mixture of experts: who is responsible, where its all-to-all binds, and what DeepSeek published."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from support.study_pages import module, rows

study, walking, points, runner = module("moe"), module("walking"), module("technology_points"), module("run")
PUBLISHED_STEP = 19.926
"""Seconds: Insights into DeepSeek-V3 (arXiv 2505.09343), table 4."""


@pytest.fixture(scope="module", name="fp8")
def _fp8() -> Any:
    return study.trained("fp8")


# --- who is responsible


def test_a_group_of_terms_is_responsible_for_what_its_rows_are(fp8: Any) -> None:
    table = fp8.table()
    transfers = [row.time_s for row in table if "/dispatch" in row.name or "/combine" in row.name]
    assert study.responsible(fp8, study.TRANSFERS) == pytest.approx(math.fsum(transfers), rel=1e-12)
    assert study.responsible(fp8, ("",)) == pytest.approx(fp8.value("time"), rel=1e-12)
    layers = math.fsum(row.time_s for row in table if row.name.startswith("layer/"))
    assert study.responsible(fp8, ("",), "layer/") == pytest.approx(layers, rel=1e-12)


def test_transfers_are_of_the_networks() -> None:
    """The all-to-all's part of a step is within the networks' share, which also has the gradients and stages."""
    for row in rows("moe_schedules"):
        shares = [row[f"share_{name}"] for name in walking.RESOURCES]
        assert math.fsum(shares) == pytest.approx(1, abs=1e-8)
        assert row["all_to_all_s"] == pytest.approx(row["all_to_all"] * row["time_s"], rel=1e-8)
        slack = row["share_latency"]
        assert 0 < row["all_to_all"] <= row["share_scale_up"] + row["share_scale_out"] + slack


# --- what is published


def plain_rows() -> list[Any]:
    """Rows of the schedule that hides nothing."""
    return [row for row in rows("moe_schedules") if row["schedule"] == "1f1b"]


def test_computation_to_communication_is_near_one_to_one() -> None:
    """DeepSeek-V3 report, section 3.2.1, of its all-to-all without overlap."""
    ratios = {p: [row["ratio"] for row in plain_rows() if row["precision"] == p] for p in study.PRECISIONS}
    assert [len(found) for found in ratios.values()] == [2, 2]
    assert (min(ratios["fp8"]), max(ratios["fp8"])) == pytest.approx((1.0, 1.12), abs=0.01)
    assert min(ratios["fp8"]) < min(ratios["bf16"])
    assert max(ratios["fp8"]) < max(ratios["bf16"]) == pytest.approx(1.23, abs=0.01)


def test_transfers_in_16_bits_would_pace_the_steps_in_fp8() -> None:
    """As most software sends tokens: the all-to-all has most of both steps."""
    for recompute, seconds, least, most in (("none", 14.28, 0.8, 0.9), ("full", 21.35, 0.8, 0.9)):
        sent = study.trained("fp8", recompute=recompute)
        run = sent.bind(dispatch_element_bytes=2.0)
        assert sent.value("time") < run.value("time") == pytest.approx(seconds, abs=0.05)
        shares = [study.responsible(each, study.TRANSFERS) / each.value("time") for each in (sent, run)]
        assert shares[0] < 0.23
        assert least < shares[1] < most


def test_dual_pipe_hides_the_shorter_of_both() -> None:
    by = {(row["schedule"], row["precision"], row["recompute"]): row for row in rows("moe_schedules")}
    for precision, recompute in itertools.product(study.PRECISIONS, ("none", "full")):
        times = [by[schedule, precision, recompute]["time_s"] for schedule in study.SCHEDULES]
        assert times == sorted(times, reverse=True)
        hidden = by["dualpipe", precision, recompute]
        assert hidden["time_s"] < 0.65 * by["1f1b", precision, recompute]["time_s"]
        # What no other pass hides: those that run alone.
        assert hidden["all_to_all"] < 0.225
        bare = by["1f1b", precision, recompute]
        assert hidden["time_s"] > max(bare["all_to_all_s"], bare["all_to_all_s"] * bare["ratio"]) * 0.9


def test_work_and_all_to_all_are_nearly_equal_in_fp8_with_full_recomputation() -> None:
    """Work is the longer by little, and has the share of the step; neither without limit shortens it by an eighth."""
    gains = {row["infinite"]: row["speed_up"] for row in rows("moe_limits") if row["question"] == "training fp8"}
    assert 1.03 < gains["compute"] < gains["scale_out"] < 1 / 0.875
    assert gains["compute + memory + l2"] > 1.19
    first = next(row for row in rows("moe_crossings") if (row["question"], row["leg"]) == ("training fp8", "compute"))
    assert (first["before"], first["after"]) == ("compute", "network")
    assert first["factor"] == pytest.approx(1.04, abs=0.01)


def test_the_published_step_is_longer_than_both() -> None:
    """By 14 % than with full recomputation, which does more than DeepSeek's, and by 52 % than with none."""
    asked = ("dualpipe", "fp8")
    by = {row["recompute"]: row for row in rows("moe_schedules") if (row["schedule"], row["precision"]) == asked}
    assert PUBLISHED_STEP / by["full"]["time_s"] == pytest.approx(1.141, abs=0.005)
    assert PUBLISHED_STEP / by["none"]["time_s"] == pytest.approx(1.524, abs=0.005)
    assert (by["none"]["fits"], by["full"]["fits"]) == (False, True)


# --- from A100 to GB200


def test_factors_multiply_to_the_total() -> None:
    for _, group in itertools.groupby(rows("moe_speedup"), key=lambda row: row["device"]):
        found = list(group)
        total = found[0]["total"]
        assert total == pytest.approx(found[0]["first_s"] / found[0]["time_s"], rel=1e-8)
        for way in ("path", "mean"):
            assert math.prod(row[way] for row in found) == pytest.approx(total, rel=1e-8)
        for row in found:
            assert row["least"] <= row["path"] <= row["largest"]
            assert row["least"] <= row["mean"] <= row["largest"]


def test_a_larger_domain_frees_compute() -> None:
    """B200 and GB200 differ little but in the domain: the factors of network and compute grow together."""
    by = {(row["device"], row["group"]): row for row in rows("moe_speedup")}
    for group in ("network", "compute"):
        assert by["gb200-nvl72", group]["mean"] > 1.3 * by["b200-sxm", group]["mean"]
    assert by["gb200-nvl72", "network"]["total"] > 2 * by["b200-sxm", "network"]["total"]
    between = [by[device, "network"]["time_s"] for device in study.FASTER[:3]]
    assert max(between) / min(between) < 1.15


# --- technology


def test_a_point_is_h800_with_other_figures() -> None:
    point = points.Point("5nm", "hbm4", ("nvlink5", "ndr"))
    system, values = study.system_at(point), point.values()
    assert system.matrix_rate("bf16").value == values["matrix_rate"]
    assert system.matrix_rate("fp8").value == 2 * values["matrix_rate"]
    assert system.value("scale_out_bandwidth") == 50e9
    assert system.value("memory_capacity") == 79.18 * 2**30


def test_nothing_faster_slows_a_step() -> None:
    """Along nodes, memories and both networks, everything else the same."""
    axes = (points.NODES, study.MEMORIES, ("nvlink3", "nvlink4", "nvlink5"), ("hdr", "ndr", "xdr"))
    times = {
        (row["precision"], row["node"], row["memory"], *row["network"].split("+")): row["time_s"]
        for row in rows("moe_grid")
    }
    assert len(times) == 2 * math.prod(map(len, axes))
    for key, time in times.items():
        for at, names in enumerate(axes, 1):
            for later in names[names.index(key[at]) + 1 :]:
                assert times[(*key[:at], later, *key[at + 1 :])] <= time * (1 + 1e-9)


def test_the_network_binds_where_the_all_to_all_is_most_of_the_step() -> None:
    for row in rows("moe_grid"):
        assert math.fsum(row[f"share_{name}"] for name in walking.RESOURCES) == pytest.approx(1, abs=1e-8)
        # Abrupt: nothing lies between less than a quarter of the step and four fifths of it.
        if row["bound"] in ("scale_out", "scale_up"):
            assert row["all_to_all"] > 0.8
        else:
            assert row["all_to_all"] < 0.23


@pytest.mark.parametrize("node", ["10nm", "1nm"])
def test_the_network_needed_is_exact(node: str) -> None:
    """Just below it networks have the largest share, just above another resource, and so for all faster ones."""
    (row,) = study.needed([node], ["fp8"])
    assert row["view"] == "exact"
    run = study.trained("fp8", study.system_at(points.Point(node, "hbm3e", ("nvlink4", "ndr"))))

    def kind(bandwidth: float) -> Any:
        return walking.Question("", run.bind(scale_out_bandwidth=bandwidth)).kind

    at = row["scale_out_bandwidth"]
    assert (kind(at * (1 - 1e-9)), kind(at * (1 + 1e-9))) == ("network", row["after"])
    assert {kind(at * factor) for factor in (1.1, 2, 10, 100)} == {"compute"}
    assert {kind(at / factor) for factor in (1.1, 1.5, 4)} == {"network"}


def test_the_network_needed_grows_with_the_rate() -> None:
    for precision in study.PRECISIONS:
        found = [row for row in rows("moe_needed") if row["precision"] == precision]
        for one, two in itertools.pairwise(found):
            growth = two["scale_out_bandwidth"] / one["scale_out_bandwidth"]
            assert 1.4 < growth <= two["matrix_rate"] / one["matrix_rate"] * (1 + 1e-9)
    halves = {(row["precision"], row["node"]): row["scale_out_bandwidth"] for row in rows("moe_needed")}
    ratios = [halves["fp8", node] / halves["bf16", node] for node in points.NODES]
    assert ratios == sorted(ratios, reverse=True)
    assert (ratios[0], ratios[-1]) == pytest.approx((1.16, 0.96), abs=0.005)


# --- the walk


def test_the_scale_out_network_is_doubled_most() -> None:
    for _, path in itertools.groupby(rows("moe_greedy"), key=lambda row: row["question"]):
        last = list(path)[-1]
        factors = [last[f"x_{name}"] for name in walking.RATES]
        assert last["x_scale_out"] == max(factors)


def test_a_share_is_no_gain() -> None:
    """What is longer has most of the training step; without limit it gives far less than that share would."""
    for precision, shorter in (("fp8", 0.073), ("bf16", 0.087)):
        name = f"training {precision}"
        first = next(row for row in rows("moe_walk") if row["question"] == name)
        gains = {row["infinite"]: 1 - 1 / row["speed_up"] for row in rows("moe_limits") if row["question"] == name}
        assert first["share_compute"] > 0.58
        assert gains["compute"] == pytest.approx(shorter, abs=0.005)
        if precision == "fp8":
            assert first["share_scale_out"] < 0.25
            assert gains["scale_out"] > gains["compute"]
            assert gains["scale_out"] == pytest.approx(0.111, abs=0.005)


def test_decoding_is_bound_by_latency_from_the_start() -> None:
    first = {row["question"]: row for row in rows("moe_crossings") if row["leg"] == "start"}
    assert first["decode"]["after"] == "latency"
    assert "decode" not in {row["question"] for row in rows("moe_greedy")}
    assert (first["training fp8"]["after"], first["prefill"]["after"]) == ("compute", "network")


# --- inference


@pytest.mark.parametrize("what", ["PREFILL", "DECODE"])
@pytest.mark.parametrize("system", study.SERVED)
def test_what_is_served_fits(what: str, system: str) -> None:
    assert study.served(getattr(study, what), system).fits


def test_bounds_of_operations() -> None:
    for (system, phase), group in itertools.groupby(rows("moe_bounds"), key=lambda r: (r["system"], r["phase"])):
        by = {row["operation"]: row for row in group}
        products = [row for row in by.values() if row["n"]]
        transfers = by["experts/dispatch"]["each_us"] + by["experts/combine"]["each_us"]
        assert by["experts/dispatch"]["bound"] == "scale_out", system
        assert transfers > math.fsum(row["each_us"] for row in products if row["operation"] != "head/logits")
        assert by["attention/flash"]["bound"] == "compute"
        decoding = {"memory"} if system == study.SYSTEM else {"memory", "launch", "l2"}
        expected = {"compute"} if phase == "prefill" else decoding
        assert {by[name]["bound"] for name in ("experts/up", "experts/down", "attention/output")} <= expected


def test_shapes_of_the_experts_by_hand() -> None:
    """128 devices with 24 tokens each and 8 experts a token leave 192 rows to each, over 2 experts: 96 rows."""
    by = {(r["phase"], r["operation"]): r for r in rows("moe_bounds") if r["system"] == study.SYSTEM}
    up = by["decode", "experts/up"]
    assert (up["m"], up["n"], up["k"]) == (128 * 24 * 8 // 256, 2 * 2048, 7168)
    up = by["prefill", "experts/up"]
    assert (up["m"], up["n"], up["k"]) == (128 * 4096 * 8 // 256, 2 * 2048, 7168)


def test_faster_memory_saturates() -> None:
    found = rows("moe_latency")
    for label in ("prefill", "token"):
        times, shares = ([row[f"{label}_{what}"] for row in found] for what in ("s", "memory"))
        assert times == sorted(times, reverse=True)
        assert shares == sorted(shares, reverse=True)
        assert times[0] / times[-1] < 1.5
    assert {row["prefill_bound"] for row in found} == {"scale_out"}


def test_memory_is_that_of_the_run() -> None:
    by = {row["recompute"]: row for row in rows("moe_memory")}
    assert (by["none"]["fits"], by["full"]["fits"]) == (False, True)
    for row in by.values():
        assert row["total_GB"] == pytest.approx(math.fsum(row[part] for part in module("moe_page").PARTS[:-1]))


# --- figures


def test_figures_show_their_lines() -> None:
    pytest.importorskip("matplotlib")
    page = module("moe_page")
    text = runner.picture(lambda figure: page.draw_share(figure, rows("moe_grid")))
    for label in ("hdr, hbm2e", "xdr, hbm4", "bf16", "fp8"):
        assert f"<!-- {label} -->" in text
    text = runner.picture(lambda figure: page.draw_walk(figure, rows("moe_walk"), study.SYSTEM))
    for label in (*study.NAMES, "scale-out"):
        assert f"<!-- {label} -->" in text
