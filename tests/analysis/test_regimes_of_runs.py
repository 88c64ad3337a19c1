"""Regimes of runs against dense scans: at every value that a run accepts, they say what the run bound to it says."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.analysis_cases import made
from support.effort import part, some
from support.legal_cases import accepted

import symperf as sf
from symperf.analysis import Unreachable
from symperf.analysis.followers import followers
from symperf.analysis.spans import BAND
from symperf.analysis.subject import subject_of
from symperf.analysis.symbols import argument_of, domain_of, lead_dependents
from symperf.codegen.interpret import arrays, run
from symperf.common.errors import InputError


@cache
def asked(name: str) -> Any:
    """A run that no test changes."""
    h100, load = sf.System.load("h100-sxm"), sf.Model.load
    match name:
        case "dense":
            return sf.inference(load("llama-2-70b"), h100, sf.Plan(tp=4, dp=2), batch=16, prompt=64, generate=32)
        case "long":
            a100 = sf.System.load("a100-80gb-sxm").with_values({"l2_efficiency": 0.5}, "bf16")  # l2 is near the others
            work = {"batch": 8, "prompt": 2000, "generate": 200, "stack": "tensorrt-llm"}
            return sf.inference(load("llama-2-70b"), a100, sf.Plan(tp=8), **work)
        case "latent":
            plan = sf.Plan(tp=8, dp=2, ep=16, precision="fp8")
            return sf.inference(load("deepseek-v3"), h100, plan, batch=64, prompt=64, generate=32)
        case "experts":
            plan = sf.Plan(tp=2, dp=8, ep=4, sequence_parallel=True)
            return sf.training(load("mixtral-8x7b"), h100, plan, batch=64, sequence=1024)
    return made(name)


NAMES = ("dense", "latent", "experts", "gpt", "llama")


def subjects(name: str) -> list[str]:
    program = asked(name).compiled.program
    terms = [term.path for term in asked(name).compiled.terms if not term.idle]
    folders = sorted({path.rpartition("/")[0] for path in terms})
    return ["time", "memory", "tokens_per_s", *(["decode"] if "decode" in program.outputs else []), *terms, *folders]


def largest(run_: Any, of: str) -> tuple[str, float]:
    """What binds a quantity of a bound run by much, or nothing where it is a tie, by the adjoints of its program."""
    at = run_.compiled.program.outputs.get(of, run_.compiled.program.lets.get(of))
    shares = sorted(run_._resource_shares(at).items(), key=lambda item: -item[1])
    return shares[0][0], shares[0][1] - shares[1][1]


@given(st.sampled_from(NAMES), st.data())
@part(0.1)
def test_regimes_are_those_of_the_bound_run(name: str, data: Any) -> None:
    """Of any quantity along any symbol, the value at the point of each regime is that of the run bound there."""
    question = asked(name)
    symbol = data.draw(st.sampled_from(sorted(question.bound)), label="symbol")
    of = data.draw(st.sampled_from(subjects(name)), label="of")
    now, domain = question.bound[symbol][0], domain_of(symbol)
    low, high = (max(1, round(now / 4)), max(2, round(now * 2))) if domain.whole else (now / 3, now * 3)
    low, high = max(low, domain.low), min(high, domain.high)
    if not low < high or low <= 0 or followers(question, symbol) is None:
        return
    if domain.whole and high - low > 64:
        low = high - 64
    argument = argument_of(symbol)
    values = range(int(low), int(high) + 1) if domain.whole else np.geomspace(low, high, 5).tolist()
    taken = accepted(question, argument, values)
    found = refused = None
    try:
        found = question.regimes(symbol, low, high, of=of)
    except (InputError, Unreachable) as error:
        refused = error
    if found is None:  # only where the run takes no value, or not the ends of a real range, or where nothing changes
        missing = not taken if domain.whole else len(taken) < len(values)
        assert missing or len({float(other.value(of)) for other in taken.values()}) == 1, refused
        return
    for regime in found.intervals:
        at = int(regime.at) if domain.whole else regime.at
        assert regime.value == pytest.approx(question.bind(**{argument: at}).value(of), rel=1e-9), regime


@pytest.mark.parametrize(
    ("name", "symbol", "low", "high", "of"),
    some(
        [
            ("dense", "batch", 1, 128, "decode"),
            ("gpt", "tp", 1, 64, "time"),
            ("experts", "ep", 1, 16, "time"),
            ("dense", "tp", 1, 64, "time"),
            ("llama", "vpp", 1, 8, "time"),
            ("dense", "dp", 1, 16, "decode"),
            ("dense", "prompt", 16, 96, "prefill"),
            ("latent", "batch", 1, 256, "time"),
            ("gpt", "batch", 1, 128, "time"),
            ("llama", "micro_batch", 1, 32, "time"),
        ],
        0.5,
    ),
)
def test_whole_numbers_against_a_scan(name: str, symbol: str, low: int, high: int, of: str) -> None:
    """No crossover of the bounding resource is missed and none invented; refused values are told with their reason."""
    question = asked(name)
    found = question.regimes(symbol, low, high, of=of)
    scan = accepted(question, symbol, range(low, high + 1))
    assert found.legal is not None
    assert found.legal.values == sorted(scan)
    assert [s.value for s in found.legal.skipped] == [n for n in range(low, high + 1) if n not in scan]
    assert all(s.reason for s in found.legal.skipped)
    for n, other in scan.items():
        (regime,) = (r for r in found.intervals if r.low <= n <= r.high)
        bound, lead = largest(other, of)
        assert regime.bound == bound or lead < 1e-9
    for before, after in pairwise(found.intervals):
        assert before.high < after.low
        assert not any(before.high < n < after.low for n in scan)


@given(st.sampled_from(["dense", "gpt", "experts"]), st.sampled_from(["memory_bandwidth", "matrix_rate"]), st.data())
@part(0.05)
def test_real_symbols_against_a_scan(name: str, symbol: str, data: Any) -> None:
    """Between two crossovers of what binds the same resource has the largest share at every point."""
    question = asked(name)
    span = data.draw(st.floats(1.5, 16.0), label="span")
    now = question.bound[symbol][0]
    of = "decode" if name == "dense" else "time"
    found = question.regimes(symbol, now / span, now * span, of=of)
    for x in np.geomspace(now / span, now * span, 23)[1:-1]:
        (_, _, bound) = next(each for each in found.bounds() if each[0] <= x < each[1])
        told, lead = largest(question.bind(**{symbol: float(x)}), of)
        assert bound == told or lead < 1e-6


def test_one_answer_not_ten_flickers() -> None:
    """What waves and tiles change and change back is told as flicker; the exact changes stay."""
    question = asked("long")
    found = question.regimes("batch", 1, 1024, of="decode")
    every = question.regimes("batch", 1, 1024, of="decode", band=0.0)
    assert len(found.spans) <= 3 < len(every.spans)
    assert found.sentence.startswith("From batch 1 to 128 memory binds decode")
    assert found.sentence.endswith("compute does.")
    assert any("flickers" in note for note in found.notes())
    assert [(s.low, s.high, s.bound) for s in every.spans] == [
        (low, last, bound) for (low, _, bound), last in zip(every.bounds(), [s.high for s in every.spans], strict=True)
    ]


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=40), st.floats(0.0, 0.5))
def test_what_is_told_wrongly_is_less_than_the_band(shares: list[float], band: float) -> None:
    """A stretch inside a told one falls short by less than the band over a doubling; with no band every one is told."""
    from symperf.analysis.spans import Profile, spans_of

    count = len(shares)
    points = 2.0 ** (np.arange(count) / 4)
    rows = np.array([shares, [1 - share for share in shares]])
    wins = (rows[1] > rows[0]).astype(int)
    runs = np.concatenate([[0], np.cumsum(np.diff(wins) != 0)])
    edges = tuple((float(points[runs == k][0]), float(points[runs == k][-1])) for k in range(runs[-1] + 1))
    profile = Profile(points, ("a", "b"), rows, np.full(count, 0.25), runs, edges)
    told = spans_of(profile, band)
    assert told[0].low == points[0]
    assert told[-1].high == points[-1]
    assert len(spans_of(profile, 0.0)) == len(edges)
    for span in told:
        inside = (points >= span.low) & (points <= span.high)
        mine = rows[("a", "b").index(str(span.bound))]
        for k in np.unique(runs[inside]):
            short = ((rows.max(axis=0) - mine) * 0.25)[runs == k].sum()
            assert short <= band + 1e-12


def test_followers_follow() -> None:
    """A micro-batch that the batch and the replicas set, efficiencies that others share, and what sets nothing."""
    question = asked("dense")
    found = followers(question, "batch")
    assert found is not None
    assert found.powers == {"micro_batch": 1}
    found = followers(question, "dp")
    assert found is not None
    assert found.powers == {"micro_batch": -1}
    found = followers(question, "matrix_efficiency")
    assert found is not None
    assert found.powers == {"half_efficiency": 1}
    found = followers(question, "memory_bandwidth")
    assert found is not None
    assert (found.powers, found.others) == ({}, ())
    assert followers(asked("latent"), "num_experts") is None


@pytest.mark.parametrize(("symbol", "values"), [("batch", (8, 32)), ("dp", (1, 8)), ("matrix_rate", (1e14, 1e16))])
def test_led_subjects_are_the_bound_runs(symbol: str, values: tuple[float, ...]) -> None:
    question = asked("dense")
    for of in ("decode", "decode/layer/mlp/gate_up", "decode/layer/attention/flash", "memory"):
        subject = lead_dependents(question, subject_of(question, of, "test"), symbol)
        for value in values:
            found = run(subject.program, subject.values | {symbol: np.array([value])}, arrays())[subject.position]
            number = int(value) if domain_of(symbol).whole else value
            assert np.ravel(found)[0] == pytest.approx(question.bind(**{symbol: number}).value(of), rel=1e-12)


def test_a_term_along_what_the_run_sets_it_from() -> None:
    """The time of one execution depends on the batch by the micro-batch alone."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    work = {"batch": 8, "prompt": 64, "generate": 16, "stack": "tensorrt-llm"}
    question = sf.inference(model, system, sf.Plan(), **work)
    found = question.regimes("batch", 1, 300, of="decode/layer/mlp/up")
    assert found.spans[0].bound == "memory"
    assert found.turns[-1].after == "compute"
    assert question.solve("batch", **{"decode/layer/mlp/up": 1e-4}).value > 8
    assert question.asymptotics("batch", of="decode/layer/mlp/up").at_infinity is not None


def test_a_structure_that_a_symbol_switches_on() -> None:
    """A run without host latency has no such input; along it the run with one is followed."""
    found = made("gpt").regimes("host_latency", 1e-6, 1e-3)
    for regime in found.intervals:
        assert regime.value == pytest.approx(made("gpt").bind(host_latency=regime.at).value("time"), rel=1e-12)


def test_closed_forms_of_whole_numbers_are_without_roundings() -> None:
    """The crossover of a whole number is told with that of the real one beside, and its closed form gives that."""
    question = asked("long")
    found = question.regimes("batch", 1, 512, of="memory")
    (turn,) = found.turns
    assert (turn.before, turn.after) == ("weights", "activations")
    assert turn.form is not None
    values = {s: question.bind(batch=2).bound[s.name][0] for s in turn.form.free_symbols}
    assert math.isclose(float(turn.form.xreplace(values)), found.unrounded[0].at, rel_tol=1e-9)
    told = found.to_dict()
    assert told["crossovers"][0]["closed_form"] == str(turn.form)
    assert 0 <= BAND < 1
