"""The study of training memory: against the published closed forms, exact limits, and the fewest devices."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import pytest
from support.study_pages import module, rows

from symperf import Model, Plan, System, training

study, page = module("memory"), module("memory_page")
CAPACITY = System.load("a100-80gb-sxm").value("memory_capacity")
NAMES = [layout.model for layout in study.LAYOUTS]
CASES = [(layout, how) for layout, how in study._cases(study.LAYOUTS, study.MANNERS)]
EAGER = [case for case in CASES if case[1]["attention"] == "eager"]
IDS = [f"{layout.model}-{'-'.join(str(value) for value in how.values())}" for layout, how in CASES]


def _keyed(name: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(r["model"], r["attention"], r["sequence_parallel"], r["recompute"]): r for r in rows(name)}


def _published_layer(how: dict[str, Any], s: int, b: int, h: int, a: int, t: int) -> float:
    """Bytes that a layer keeps: Korthikanti et al. 2022, table 2 (eager attention with dropout)."""
    recompute, parallel = how["recompute"], how["sequence_parallel"]
    if recompute == "full":
        return 2 * s * b * h / (t if parallel else 1)
    scores = 5 * a * s / (h * t) if recompute == "none" else 0.0
    return s * b * h * ((34 / t if parallel else 10 + 24 / t) + scores)


@pytest.mark.parametrize(("layout", "how"), EAGER, ids=[IDS[CASES.index(case)] for case in EAGER])
def test_activations_of_layers_are_the_published_closed_forms(layout: Any, how: dict[str, Any]) -> None:
    """What a layer more in each stage adds is table 2 times the micro-batches in flight, to the last byte."""
    size, pp, vpp = Model.load(layout.model).sizes, layout.plan.get("pp", 1), layout.plan.get("vpp", 1)
    step = pp * vpp
    more = size["num_layers"] + step
    changed = study.replace(layout, values=layout.values | {"num_layers": more})
    one, two = (found.run(**how).stage_memory()[0]["activations"] for found in (layout, changed))
    b, t, s = layout.plan.get("micro_batch", 1), layout.plan["tp"], layout.sequence
    layer = _published_layer(how, s, b, size["hidden_size"], size["num_attention_heads"], t)
    in_flight = pp + (pp - 1) / vpp if vpp > 1 else pp
    assert two - one == pytest.approx(layer * vpp * in_flight, rel=1e-12)


def test_state_is_18_bytes_a_parameter() -> None:
    for row in rows("memory"):
        state = row["weights_GB"] + row["gradients_GB"] + row["optimizer_GB"]
        assert row["gradients_GB"] == pytest.approx(2 * row["weights_GB"])
        assert state == pytest.approx(9 * row["weights_GB"])
        parts = sum(row[f"{part}_GB"] for part in study.PARTS)
        assert row["total_GB"] == pytest.approx(parts)
        assert row["fits"] is (row["total_GB"] <= row["capacity_GB"])


def test_repeating_more_never_keeps_more() -> None:
    found = _keyed("memory")
    for model, (attention, parallel) in itertools.product(NAMES, study.MANNERS):
        kept = [
            found[model, attention, parallel, r]["activations_GB"]
            for r in study.RECOMPUTE
            if (model, attention, parallel, r) in found
        ]
        assert kept == sorted(kept, reverse=True)
        totals = [
            found[model, attention, parallel, r]["total_GB"]
            for r in study.RECOMPUTE
            if (model, attention, parallel, r) in found
        ]
        assert totals == sorted(totals, reverse=True)


def test_the_published_claim_holds() -> None:
    """Korthikanti et al. 2022: the two techniques together keep less than a fifth or so, and make every layout fit."""
    found = _keyed("memory")
    for model in NAMES:
        plain, both = found[model, "eager", False, "none"], found[model, "eager", True, "selective"]
        assert not plain["fits"]
        assert both["fits"]
        assert 4.9 < plain["activations_GB"] / both["activations_GB"] < 6.2


def test_published_bars_of_activations_are_near() -> None:
    """State and full recomputation differ for the reasons that the page gives, and only upwards."""
    for row in rows("memory_published"):
        if row["what"] == "state" or "full" in row["recompute"]:
            assert 0 < row["error"] < 0.25
        else:
            assert abs(row["error"]) < 0.025


# --- limits


@pytest.mark.parametrize(("layout", "how"), CASES[::5], ids=IDS[::5])
def test_the_longest_sequence_fits_and_one_step_more_does_not(layout: Any, how: dict[str, Any]) -> None:
    kept = _keyed("memory_limits")[(layout.model, *how.values())]
    longest, capacity = kept["longest_sequence"], CAPACITY
    assert longest % 8 == 0
    assert layout.of_sequence(longest).run(**how).memory_alone() <= capacity
    assert layout.of_sequence(longest + 8).run(**how).memory_alone() > capacity


@pytest.mark.parametrize(("layout", "how"), CASES[1::5], ids=IDS[1::5])
def test_the_crossing_of_the_micro_batch_is_that_of_the_whole_ones(layout: Any, how: dict[str, Any]) -> None:
    """Memory at every whole micro-batch is state + b (bytes of a sequence); the last that fits is below b*."""
    kept = _keyed("memory_limits")[(layout.model, *how.values())]
    for b in (1, 2, 3, 7):
        line = 1e9 * (kept["state_GB"] + b * kept["sequence_keeps_GB"])
        assert layout.of_micro_batch(b).run(**how).memory_alone() == pytest.approx(line, rel=1e-8)
    most = kept["most_micro_batch"]
    if most >= 1:
        assert layout.of_micro_batch(math.floor(most)).run(**how).memory_alone() <= CAPACITY
    assert layout.of_micro_batch(math.floor(most) + 1).run(**how).memory_alone() > CAPACITY


def test_a_staircase_never_falls() -> None:
    found = _keyed("memory_limits")
    for model, (attention, parallel) in itertools.product(NAMES, study.MANNERS):
        line = [found.get((model, attention, parallel, r)) for r in study.RECOMPUTE]
        lengths = [row["longest_sequence"] for row in line if row]
        assert lengths == sorted(lengths)


def test_the_longest_sequence_agrees_with_the_solver() -> None:
    """`run.solve` finds the same within the model's own positions, of which the study has only as many as it uses."""
    layout, how = study.LAYOUTS[0], {"attention": "eager", "sequence_parallel": False, "recompute": "selective"}
    solved = int(layout.run(**how).solve("sequence", memory=80e9).value)
    longest = study.longest(layout, how, 80e9)
    assert longest == solved - solved % 8
    assert study.longest(layout, how, 1e9) == 0


# --- fewest devices


def test_the_fewest_devices_are_those_of_every_plan() -> None:
    """Every degree of the smallest model, one by one, without the search of `devices`."""
    layout, how = study.LAYOUTS[0], {"attention": "eager", "sequence_parallel": True, "recompute": "selective"}
    model, system = Model.load(layout.model), System.load(layout.system)
    fitting = {"pipeline": [], "zero-3": []}  # type: ignore[var-annotated]
    for tp in (2, 4, 8):
        for pp in (pp for pp in range(1, 49) if 48 % pp == 0):
            run = training(model, system, Plan(tp=tp, pp=pp, **how), batch=pp, sequence=2048)
            fitting["pipeline"] += [tp * pp] if run.fits else []
        for dp in range(1, 30):
            run = training(model, system, Plan(tp=tp, dp=dp, zero=3, **how), batch=dp, sequence=2048)
            fitting["zero-3"] += [tp * dp] if run.fits else []
    kept = {
        row["sharing"]: row["devices"]
        for row in rows("memory_devices")
        if (row["model"], row["attention"], row["sequence_parallel"], row["recompute"]) == (layout.model, *how.values())
    }
    assert kept == {sharing: min(found) for sharing, found in fitting.items()}


def test_a_state_needs_at_least_its_own_devices() -> None:
    """No count is below 18 bytes a parameter over a device, and full recomputation always has one."""
    for row in rows("memory_devices"):
        size = Model.load(row["model"]).sizes
        parameters = 12 * size["num_layers"] * size["hidden_size"] ** 2
        if row["devices"] is None:
            assert row["recompute"] != "full"
        else:
            assert row["devices"] * CAPACITY > 18 * parameters
            assert row["total_GB"] <= CAPACITY / 1e9


def test_more_stages_keep_as_many_activations() -> None:
    """Under 1F1B the first stage keeps p micro-batches of L/p layers: the same for every p, ends apart."""
    how: dict[str, Any] = {"recompute": "selective", "sequence_parallel": True, "tp": 8}
    model, system = Model.load("gpt-1t"), System.load("a100-80gb-sxm")

    def added(pp: int) -> float:
        """What a layer of the model more keeps on the first stage."""
        runs = [
            training(model, system, Plan(pp=pp, **how), batch=pp, sequence=2048, num_layers=layers)
            for layers in (128, 256)
        ]
        one, two = (run.stage_memory()[0]["activations"] for run in runs)
        return float((two - one) / 128)

    assert added(2) == pytest.approx(added(64), rel=1e-12)


# --- the mixture of experts, and the figure


def test_the_moe_is_laid_out_as_its_report_says() -> None:
    plan = Plan(**study.DEEPSEEK.plan)
    assert plan.devices == 2048
    found = {row["recompute"]: row for row in rows("memory_moe")}
    assert found["full"]["fits"]
    assert not found["none"]["fits"]
    # Kept activations make the first stage the fullest, which has the dense layers and so fewer weights.
    assert found["none"]["weights_GB"] < found["full"]["weights_GB"]


def test_the_numbers_need_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert study.limits(study.LAYOUTS[:1])


def test_the_figure_shows_every_model_and_part() -> None:
    pytest.importorskip("matplotlib")
    runner = module("run")
    text = runner.picture(lambda figure: page.draw(figure, rows("memory"), rows("memory_limits")))
    for label in (*NAMES, *study.PARTS, *page.VARIANTS):
        assert f"<!-- {label} -->" in text
