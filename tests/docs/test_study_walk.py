"""The study of how the bottleneck walks: shares, exact crossings, greedy paths, limits, and points of technology."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.study_pages import module, rows

from symperf import InputError, Model, System, Technology, training
from symperf.codegen.interpret import floats
from symperf.codegen.interpret import run as evaluate

study, walking, points, runner = module("walk"), module("walking"), module("technology_points"), module("run")
SYSTEM = study.SYSTEMS[0]
ASKED = {question.name: question for question in study.questions(SYSTEM)}
SHARES = tuple(f"share_{name}" for name in walking.RESOURCES)
FIGURES = {
    "memory": "memory_bandwidth",
    "l2": "l2_bandwidth",
    "scale_up": "scale_up_bandwidth",
    "scale_out": "scale_out_bandwidth",
}
each_question = pytest.mark.parametrize("name", list(ASKED))


def _paths(of: str) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Rows of a table by system and question (and rule)."""
    keys = ("system", "question", "rule") if of == "walk_greedy" else ("system", "question")
    return [(key, list(those)) for key, those in itertools.groupby(rows(of), key=lambda r: tuple(r[k] for k in keys))]


# --- one point


@each_question
@pytest.mark.parametrize("resource", FIGURES)
def test_a_faster_resource_is_the_run_with_that_figure(name: str, resource: str) -> None:
    question = ASKED[name]
    symbol = FIGURES[resource]
    bound = question.run.bind(**{symbol: 4 * question.run.bound[symbol][0]})
    assert question.with_faster(4.0, resource).seconds == pytest.approx(bound.value(question.of), rel=1e-12)


def test_a_faster_compute_raises_every_rate_of_it() -> None:
    question = ASKED["training"]
    rates = {name: 4 * question.run.bound[name][0] for name in ("matrix_rate", "vector_rate")}
    assert set(question.rates("compute")) == set(rates)
    assert question.with_faster(4.0, "compute").seconds == pytest.approx(question.run.bind(**rates).value("time"))


@each_question
@pytest.mark.parametrize("resource", walking.RATES)
def test_a_share_is_minus_the_elasticity(name: str, resource: str) -> None:
    """Against a difference, which a maximum between its ends would spoil."""
    question = ASKED[name]
    step = 1e-6
    ends = [question.with_faster(math.exp(sign * step), resource).seconds for sign in (1, -1)]
    slope = -(math.log(ends[0]) - math.log(ends[1])) / (2 * step)
    assert question.shares()[resource] == pytest.approx(slope, abs=1e-6)


@given(st.dictionaries(st.sampled_from(walking.RATES), st.floats(0.01, 1e4)), st.sampled_from(sorted(ASKED)), st.data())
@settings(max_examples=60, deadline=None)
def test_shares_sum_to_one_and_no_rate_slows(factors: dict[str, float], name: str, data: st.DataObject) -> None:
    question = ASKED[name]
    for resource, factor in factors.items():
        question = question.with_faster(factor, resource)
    shares = question.shares()
    assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-9)
    assert min(shares.values()) >= 0
    faster = question.with_faster(data.draw(st.floats(1, 100)), data.draw(st.sampled_from(walking.RATES)))
    assert faster.seconds <= question.seconds * (1 + 1e-12)


@each_question
@given(st.floats(0.01, 100))
@settings(max_examples=10, deadline=None)
def test_everything_faster_by_one_factor_is_that_much_faster(name: str, factor: float) -> None:
    """The time is homogeneous of degree one in latencies and reciprocal rates: why shares sum to one."""
    subject = ASKED[name].subject
    scaled = {n: v * factor ** -subject.degree(n) for n, v in subject.values.items()}
    value = evaluate(subject.program, scaled, floats())[subject.position]
    assert value == pytest.approx(ASKED[name].seconds / factor, rel=1e-9)


def test_an_unknown_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown quantity 'tiem'.*did you mean time"):
        _ = walking.Question("x", ASKED["training"].run, "tiem").subject


# --- the walk


def test_points_of_the_walk_are_whole_shares_and_never_slower() -> None:
    for _, path in _paths("walk"):
        times = [row["time_s"] for row in path]
        assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(times))
        for row in path:
            assert math.fsum(row[share] for share in SHARES) == pytest.approx(1, abs=1e-8)
            assert row[f"share_{row['bound']}"] == max(row[share] for share in SHARES)
        for one, two in itertools.pairwise(row for row in path if row["factor"] in (1, walking.TOP)):
            if one["leg"] != two["leg"]:
                assert one["time_s"] == two["time_s"]


def test_training_walks_from_compute_to_memory_to_network_to_latency() -> None:
    for (_, name), path in _paths("walk_crossings"):
        if name == "training":
            assert [row["after"] for row in path] == ["compute", "memory", "network", "latency"]
            assert [row["leg"] for row in path] == ["start", "compute", "memory", "network"]


def test_decoding_walks_from_memory_to_latency() -> None:
    for (_, name), path in _paths("walk_crossings"):
        if name.startswith("decode"):
            assert [row["after"] for row in path] == ["memory", "latency"]


def test_crossings_follow_one_another() -> None:
    for _, path in _paths("walk_crossings"):
        for one, two in itertools.pairwise(path):
            assert one["after"] == two["before"] != two["after"]
            order = [("start", *walking.LEGS).index(row["leg"]) for row in (one, two)]
            assert order == sorted(order)
            assert order[0] < order[1] or one["factor"] < two["factor"]


@each_question
def test_crossings_are_those_of_a_dense_scan(name: str) -> None:
    """On both sides of each, 1e-9 away, the kinds are those named; between them a scan finds no other change."""
    found, question = walking.crossings(ASKED[name]), ASKED[name]
    now = found[0]["after"]
    for leg, resources in walking.LEGS.items():
        here = [row for row in found if row["leg"] == leg]
        for row in here:
            at = [question.with_faster(row["factor"] * (1 + side), *resources).kind for side in (-1e-9, 1e-9)]
            assert at == [row["before"], row["after"]]
        for factor in np.geomspace(1, walking.TOP, 150):
            passed = [row["after"] for row in here if row["factor"] < factor]
            assert question.with_faster(float(factor), *resources).kind == [now, *passed][-1]
        now = here[-1]["after"] if here else now
        question = question.with_faster(walking.TOP, *resources)


def test_crossings_of_training_need_no_grid() -> None:
    for row in rows("walk_crossings"):
        assert row["view"] in ((None,) if row["leg"] == "start" else ("exact", "sampled"))
        assert row["view"] != "sampled" or row["question"].startswith("decode")


# --- greedy


def test_gains_multiply_to_the_speed_up_and_latency_binds_in_the_end() -> None:
    for (system, name, _), path in _paths("walk_greedy"):
        start = ASKED[name].seconds if system == SYSTEM else path[0]["time_s"] * path[0]["gain"]
        assert math.prod(row["gain"] for row in path) == pytest.approx(path[-1]["speed_up"], rel=1e-8)
        assert start / path[-1]["time_s"] == pytest.approx(path[-1]["speed_up"], rel=1e-8)
        assert min(row["gain"] for row in path) > 1
        doublings = sum(math.log2(path[-1][f"x_{resource}"]) for resource in walking.RATES)
        assert doublings == len(path) == path[-1]["step"]
        if system == SYSTEM:
            end = ASKED[name]
            for row in path:
                assert end.bound != "latency"
                end = end.with_faster(2.0, row["resource"])
            assert end.bound == "latency"
            assert end.seconds == pytest.approx(path[-1]["time_s"], rel=1e-9)


@each_question
@pytest.mark.parametrize("rule", study.RULES)
def test_each_doubling_is_the_best_by_its_rule(name: str, rule: str) -> None:
    question = ASKED[name]
    for row in walking.greedy(question, rule):
        if rule == "share":
            shares = question.shares()
            assert row["share"] == max(shares[resource] for resource in walking.RATES)
        else:
            others = [question.seconds / question.with_faster(2.0, resource).seconds for resource in walking.RATES]
            assert row["gain"] == pytest.approx(max(others), rel=1e-12)
        question = question.with_faster(2.0, row["resource"])


def test_gpt_3_never_doubles_the_network_between_domains() -> None:
    """It doubles every other resource, and in training the network inside a domain as often as memory, or once more."""
    assert {row["resource"] for row in rows("walk_greedy")} == set(walking.RATES) - {"scale_out"}
    for (_, name, _), path in _paths("walk_greedy"):
        if name == "training":
            doubled = [row["resource"] for row in path]
            assert doubled.count("scale_up") - doubled.count("memory") in (0, 1)


def test_both_rules_end_alike() -> None:
    """After as many doublings within 9 % of one another; looking at gains saves none and needs up to one more."""
    found = dict(_paths("walk_greedy"))
    for (system, name, rule), path in found.items():
        if rule == "share":
            other = found[system, name, "gain"]
            assert 0 <= len(other) - len(path) <= 1
            at = len(path) - 1
            assert 1 / 1.09 < other[at]["speed_up"] / path[at]["speed_up"] < 1.09


# --- limits


@each_question
def test_the_last_limit_is_what_latencies_cost(name: str) -> None:
    question = ASKED[name]
    counted = walking.floors(question)
    left = walking.limits(question)[-1]
    assert left["infinite"].split(" + ") == [*walking.RATES]
    assert math.fsum(row["seconds"] for row in counted) == pytest.approx(left["time_s"], rel=1e-9)
    for row in counted:  # with endless rates the fewest pieces are best, for an eighth of their latency a call
        whole = row["times"] * (8 if row["latency"] == "domain_piece_latency" else 1)
        assert whole == int(whole)
    assert question.with_faster(walking.ENDLESS, *walking.RATES).seconds == pytest.approx(left["time_s"], rel=1e-9)


@each_question
def test_limits_bound_every_faster_resource(name: str) -> None:
    question = ASKED[name]
    by = {row["infinite"]: row["time_s"] for row in walking.limits(question)}
    for resource in walking.RATES:
        faster = [question.with_faster(factor, resource).seconds for factor in (2.0, 64.0, 1e6)]
        assert question.seconds >= faster[0] >= faster[1] >= faster[2] >= by[resource] * (1 - 1e-12)
        assert faster[2] == pytest.approx(by[resource], rel=1e-4)
    names = [tuple(name.split(" + ")) for name in by]
    for one, two in itertools.permutations(names, 2):
        if set(one) < set(two):
            assert by[" + ".join(two)] <= by[" + ".join(one)] * (1 + 1e-12)


def test_kernels_and_hops_of_inference_by_hand() -> None:
    """96 layers of eight kernels, five around them; two all-reduces a layer and one, each twice 8 - 1 hops; a gather.

    A layer: norm, qkv, attention, output, norm, up, activation, down. Around them: embedding, norm, head, sampling of
    two kernels. Each collective has a start of its own, and qkv, up, down and head, with k above 2048, may take a
    second kernel. Software's gap is before them all.
    """
    for name in ("prefill", "decode", "decode 16"):
        counts = {row["latency"]: row["times"] for row in walking.floors(ASKED[name])}
        assert counts["launch_latency"] == 96 * 8 + 5
        assert counts["split_latency"] == 96 * 3 + 1
        assert counts["domain_latency"] == 96 * 2 + 2
        assert counts["gap_latency"] == sum(counts[f"{each}_latency"] for each in ("launch", "split", "domain"))
        assert counts["domain_hop_latency"] == (2 * 96 + 1) * 2 * 7 + 7
        assert counts["domain_piece_latency"] == counts["domain_latency"] / 8
        assert counts["scale_out_latency"] == 0


def test_kernels_of_training_by_hand() -> None:
    """The printed form, and its value for this plan and another one of the same structure.

    Kernels (but those behind a collective, which is longer) and collectives: 38 and 10 in a layer, 5 and 6 in the head,
    which each micro-batch passes, 8 and 3 in a step; and each chunk of a stage sends results on and gradients back, in
    a kernel that starts as any other, where a collective has a start of its own.
    """
    question = ASKED["training"]
    other = walking.Question("x", question.run.bind(batch=96, pp=16, vpp=2))
    for asked, micro_batches, pp, vpp in ((question, 64, 8, 3), (other, 96, 16, 2)):
        by = {row["latency"]: row for row in walking.floors(asked)}
        layers, passes = 96 / pp, micro_batches + (pp - 1) / vpp
        kernels = (38 * layers + 2 * vpp) * passes + 5 * micro_batches + 8
        calls = 10 * layers * passes + 6 * micro_batches + 3
        assert by["launch_latency"]["times"] == pytest.approx(kernels, rel=1e-12)
        assert by["domain_latency"]["times"] == pytest.approx(calls, rel=1e-12)
        form = by["launch_latency"]["closed_form"]
        sends = "2*overlap_pp*pp*(vpp - 1) + 2*vpp*(1 - overlap_pp)"  # 2 vpp where nothing is beside them
        assert form.startswith(f"5*batch/(dp*micro_batch) + 38*num_layers/pp + {sends} + (38*num_layers/pp")


# --- technology


def test_networks_and_nodes_are_the_published_ones() -> None:
    """NVLink 3 to 5: 300, 450 and 900 GB/s a direction; InfiniBand: 200, 400 and 800 Gb/s a port; DeepFlow: 22.7."""
    for (up, out), expected in zip(points.NETWORKS, ((300, 25), (450, 50), (900, 100)), strict=True):
        values = points.Point("7nm", "hbm3", (up, out)).values()
        assert (values["scale_up_bandwidth"] / 1e9, values["scale_out_bandwidth"] / 1e9) == expected
    ends = [Technology.load("deepflow", node).chip().value("matrix_rate") for node in (points.NODES[0], "1nm")]
    assert round(ends[1] / ends[0], 1) == 22.7
    for row in rows("walk_corners"):
        assert row["compute"] == pytest.approx(ends[1] / ends[0], rel=1e-8)


def test_a_ladder_changes_one_thing_at_a_time() -> None:
    for one, two in itertools.pairwise(points.ladder()):
        assert sum(a != b for a, b in zip(one.row().values(), two.row().values(), strict=True)) in (2, 3)
        changed = [key for key in ("node", "memory", "network") if one.row()[key] != two.row()[key]]
        assert len(changed) == 1


def test_a_point_is_the_system_with_its_values() -> None:
    """The row of a node, from a system made of its values and a training run of its own."""
    row = next(r for r in rows("walk_nodes") if (r["question"], r["node"], r["memory"]) == ("training", "1nm", "hbm4"))
    system = System.load(SYSTEM).with_values(points.Point("1nm", "hbm4").values(), "bf16")
    run = training(Model.load(study.MODEL), system, study.TRAINED, batch=64, sequence=2048)
    assert row["time_s"] == pytest.approx(run.value("time"), rel=1e-8)
    assert row["share_compute"] == pytest.approx(run.shares()["compute"], rel=1e-8)


def test_an_unknown_node_is_one_line() -> None:
    for point in (points.Point("4nm"), points.Point("5nm", "hbm5x"), points.Point("5nm", "hbm3", ("nvlink9", "hdr"))):
        with pytest.raises(InputError) as caught:
            point.values()
        assert "\n" not in str(caught.value)
        assert "expected" in str(caught.value)


def test_what_the_page_says_of_technology() -> None:
    """More compute gives a fraction of itself, the more the faster the rest; a token loses 1 to 2 % beyond 10 nm."""
    corners = {(r["question"], r["memory"], r["network"]): r for r in rows("walk_corners")}
    slow, fast = ("hbm2e", "nvlink3+hdr"), ("hbm6", "nvlink5+xdr")
    for name in ("training", "prefill"):
        assert 2.8 < corners[name, *slow]["speed_up"] < corners[name, *fast]["speed_up"] < 22.7
    for name in ("decode", "decode 16"):
        times = [r["time_s"] for r in rows("walk_nodes") if r["question"] == name and r["memory"] == "hbm2e"]
        assert times[1:] == sorted(times[1:])
        assert 1.01 < times[-1] / times[1] < 1.02
    trained = [r["bound"] for r in rows("walk_nodes") if r["question"] == "training"]
    assert [bound for bound, _ in itertools.groupby(trained)] == ["l2", "compute", "memory", "scale_up", "compute"]
    faster = [r["time_s"] for r in rows("walk_nodes") if r["question"] == "training"]
    assert faster == sorted(faster, reverse=True)


# --- figures


@pytest.mark.parametrize("figure", ["walk", "nodes"])
def test_figures_show_every_question(figure: str) -> None:
    pytest.importorskip("matplotlib")
    page = module("walk_page")
    draw = {"walk": lambda f: page.draw_walk(f, rows("walk"), SYSTEM), "nodes": lambda f: page.draw_nodes(f, ladder)}
    ladder = rows("walk_nodes")
    text = runner.picture(draw[figure])
    assert text == runner.picture(draw[figure])
    for label in (*study.NAMES, "compute", "L2", "latency"):
        assert f"<!-- {label} -->" in text
