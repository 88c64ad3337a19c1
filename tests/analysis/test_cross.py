"""Comparisons against dense scans of bound runs: no change of the lead is missed, and none invented."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.analysis_cases import REAL as REALS
from support.analysis_cases import made, output_at, subject_at
from support.effort import some
from support.law_cases import few, regimes
from support.points import STRUCTURES
from support.strategies import seeds

import symperf as sf
from symperf.analysis.cross import BAND, Cross
from symperf.analysis.cross_real import order, order_along
from symperf.analysis.solution import is_higher_better
from symperf.codegen.program import Program
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.analysis.subject import Subject
    from symperf.evaluation.base_run import BaseRun


@cache
def run_of(name: str) -> Any:
    """A run that no test changes."""
    if name == "infer":
        return sf.inference("llama-2-70b", "h100-sxm", sf.Plan(tp=8), batch=8, prompt=200, generate=200)
    if name == "products apart":  # a software that fuses no gate and up
        return run_of("infer").swap(stack="tensorrt-llm")
    if name == "serve":
        from symperf.serve.iteration_run import IterationRun

        model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
        return IterationRun(model, system, sf.Plan(tp=2), prompt=512, generate=128, concurrency=16)
    return made(name)


WHOLE = [
    ("gpt", "plan: tp=8 pp=8 vpp=1", "plan: tp=4 pp=16 vpp=1", "batch", 150, 190, "time"),
    ("gpt", "plan: vpp=1", "plan: vpp=3", "batch", 1, 120, "mfu"),
    ("gpt", "plan: recompute=full", "base", "micro_batch", 1, 64, "memory"),
    ("gpt", "plan: sequence_parallel pp=16 vpp=1", "plan: pp=4 vpp=1 no-sequence-parallel", "tp", 1, 96, "time"),
    ("llama", "plan: zero=3", "base", "batch", 64, 800, "time"),
    ("llama", "plan: tp=4 dp=32", "base", "sequence", 512, 560, "tokens_per_s"),
    ("llama", "system: a100-80gb-sxm", "base", "dp", 1, 512, "tokens_per_s_per_device"),
    ("one device", "plan: recompute=none", "base", "b.batch", 2, 40, "time"),
    ("infer", "precision=fp8", "stack: vllm", "batch", 1, 40, "time"),
    ("infer", "system: a100-80gb-sxm", "base", "a.prompt", 100, 160, "prefill"),
    ("infer", "plan: tp=2 pp=4", "base", "generate", 1, 60, "time"),
    ("serve", "stack: vllm", "precision=fp8", "concurrency", 1, 60, "time"),
    ("gpt", "compute", "scale_up", "batch", 8, 120, ""),
    ("infer", "compute", "memory", "batch", 100, 240, ""),
    ("gpt", "layer/mlp/up/forward", "layer/attention/reduce/forward", "micro_batch", 1, 64, ""),
    ("infer", "prefill", "decode", "prompt", 3000, 3050, ""),
    ("products apart", "prefill/layer/mlp/up", "prefill/layer/mlp/down", "batch", 1, 120, ""),
]
"""Run, two sides, symbol, range, and quantity; nothing of terms, resources and quantities."""
REAL = [
    ("llama", "plan: micro_batch=2", "system: b200-sxm", "scale_up_latency", 1e-8, 1e-4, "mfu"),
    ("gpt", "plan: tp=4 pp=16", "base", "scale_up_bandwidth", 1e9, 1e13, "time"),
    ("gpt", "system: h100-sxm", "base", "matrix_rate", 1e13, 1e16, "time"),
    ("gpt", "system: h100-sxm", "base", "a.memory_bandwidth", 1e11, 1e14, "mfu"),
    ("gpt", "plan: vpp=1", "base", "scale_out_latency", 0.0, 0.1, "time"),
    ("llama", "plan: zero=3", "plan: tp=2 dp=64", "scale_out_bandwidth", 1e8, 1e14, "time"),
    ("llama", "plan: overlap_dp=0", "plan: overlap_tp=1", "scale_out_bandwidth", 1e8, 1e14, "tokens_per_s"),
    ("no tiles", "plan: recompute=full", "base", "launch_latency", 1e-9, 1e-2, "time"),
    ("infer", "system: b200-sxm", "base", "a.memory_bandwidth", 1e12, 1e15, "time"),
    ("infer", "precision=fp8", "stack: vllm", "matrix_rate", 1e13, 1e16, "time"),
    ("infer", "plan: tp=2 pp=4", "base", "scale_up_latency", 1e-8, 1e-3, "time_per_token"),
    ("serve", "plan: tp=1", "base", "scale_up_latency", 1e-7, 1e-3, "time"),
    ("gpt", "compute", "memory", "memory_bandwidth", 1e11, 1e14, ""),
    ("llama", "scale_out", "scale_up", "scale_out_bandwidth", 1e8, 1e14, ""),
    ("gpt", "layer/mlp/up/forward", "layer/mlp/down/forward", "l2_bandwidth", 1e11, 1e15, ""),
    ("infer", "prefill", "time_per_token", "memory_bandwidth", 1e9, 1e14, ""),
]


def sides(run: BaseRun, a: str, b: str, over: str, of: str) -> list[Any]:
    """For each side, what a value of the symbol gives by binding it: the quantity, or nothing where it is refused."""
    which, _, name = over.rpartition(".")
    found = []
    for letter, text in (("a", a), ("b", b)):
        chosen = run
        quantity = of or text
        if of:
            options = parse(text)
            chosen = run.swap(**options)
        moves = which in ("", letter)

        def value(x: float, chosen: Any = chosen, quantity: str = quantity, moves: bool = moves) -> float | None:
            try:
                bound = chosen.bind(**{name: x}) if moves else chosen
            except InputError:
                return None
            if quantity in set(run.compiled.resources.values()) and not of:
                return float(bound.shares()[quantity] * bound.value("time"))
            return float(bound.value(quantity))

        found.append(value)
    return found


def parse(text: str) -> dict[str, Any]:
    """A choice of these tests, read in another way than the program does."""
    if text == "base":
        return {}
    if text.startswith(("system: ", "stack: ")):
        head, _, name = text.partition(": ")
        return {head: name}
    found: dict[str, Any] = {}
    for word in text.removeprefix("plan: ").split():
        name, equals, value = word.partition("=")
        if not equals:
            found[name.removeprefix("no-").replace("-", "_")] = not name.startswith("no-")
        else:
            found[name] = int(value) if value.isdigit() else value
    return found


def leader(found: Cross, a: float, b: float, of: str) -> str | None:
    """Who leads, given both values."""
    if math.isclose(a, b, rel_tol=1e-12):
        return None
    larger = a > b
    return found.a.label if larger == (not of or is_higher_better(of)) else found.b.label


@pytest.mark.parametrize("case", some(WHOLE, 0.5), ids=lambda case: f"{case[0]} {case[3]} {case[6]}")
def test_whole_numbers_against_every_legal_value(case: tuple[Any, ...]) -> None:
    """The lead changes where bound runs say, and a number is skipped where one of them is refused."""
    name, a, b, over, low, high, of = case
    run = run_of(name)
    found = run.cross(a, b, over, low, high, **({"of": of} if of else {}))
    first, second = sides(run, a, b, over, of)
    values = {n: (first(n), second(n)) for n in range(low, high + 1)}
    legal = [n for n, (x, y) in values.items() if x is not None and y is not None]
    assert (found.low, found.high) == (legal[0], legal[-1])
    if not found.found.told:
        assert sorted(found.skipped) == sorted(set(values) - set(legal))
    leads = [leader(found, *values[n], of) for n in legal]
    changes = [(legal[k], n, leads[k], leads[k + 1]) for k, n in enumerate(legal[1:]) if leads[k] != leads[k + 1]]
    every = sorted((*found.crossings, *found.flickers), key=lambda crossing: crossing.low)
    assert sum(crossing.changes for crossing in every) == len(changes)
    assert all(each.first != each.then for each in found.crossings)
    place = 0
    for crossing in every:
        group = changes[place : place + crossing.changes]
        place += crossing.changes
        assert (crossing.before, crossing.low, crossing.first) == (group[0][0], group[0][1], group[0][2])
        assert (crossing.at, crossing.then) == (group[-1][1], group[-1][3])
        inside = [values[n] for n in legal if group[0][1] <= n < group[-1][1]]
        assert all(abs(x - y) <= BAND * max(x, y) for x, y in inside)
    assert found.leads == (leads[0], *(crossing.then for crossing in found.crossings))
    assert found.always == (leads[0] if not found.crossings else None)


@pytest.mark.parametrize("case", some(REAL, 0.5), ids=lambda case: f"{case[0]} {case[3]} {case[6]}")
def test_real_symbols_against_a_dense_scan(case: tuple[Any, ...]) -> None:
    """Between neighbours of a grid of bound runs the lead changes as often as it must, and at a crossing both agree."""
    name, a, b, over, low, high, of = case
    run = run_of(name)
    found = run.cross(a, b, over, low, high, **({"of": of} if of else {}))
    first, second = sides(run, a, b, over, of)
    xs = np.geomspace(low or 1e-9, high, 41)[1:-1]
    leads = [leader(found, first(float(x)), second(float(x)), of) for x in xs]
    for x, lead in zip(xs, leads, strict=True):
        assert any(begin <= x <= end for begin, end in found.intervals(lead)), (x, lead)
    for crossing in found.crossings:
        before, after = crossing.at * (1 - 1e-9), crossing.at * (1 + 1e-9)
        assert leader(found, first(before), second(before), of) == crossing.first
        assert leader(found, first(after), second(after), of) == crossing.then
    for crossing, following in itertools.pairwise(found.crossings):
        assert crossing.at < following.at
        assert crossing.then == following.first


def test_cases_have_crossings() -> None:
    """What is compared above is not one-sided: of real symbols most lead changes are there to be found."""
    counts = []
    for name, a, b, over, low, high, of in REAL[1::3]:
        counts.append(len(run_of(name).cross(a, b, over, low, high, **({"of": of} if of else {})).crossings))
    assert sum(map(bool, counts)) >= len(counts) / 2


def test_many_whole_numbers_are_learned_from_trials() -> None:
    """A range of thousands is not bound one by one: its steps, its end and its crossings are those of bound runs."""
    run = run_of("gpt")
    found = run.cross("plan: vpp=1", "plan: vpp=3", "batch", 1, 4096)
    assert not found.found.bound
    (crossing,) = found.crossings
    first, second = sides(run, "plan: vpp=1", "plan: vpp=3", "batch", "time")
    assert crossing.at - crossing.before == 8
    assert first(int(crossing.at)) < second(int(crossing.at))
    assert first(int(crossing.before)) > second(int(crossing.before))
    ended = run.cross("plan: recompute=full", "plan: recompute=none", "sequence", 1, 4096, of="mfu")
    assert ended.high == 2048
    assert any("learned positions" in reason for reason in ended.skipped.values())


def test_flicker_by_tiles_is_told_as_one() -> None:
    """Where two are within 1 % of each other while the lead goes back and forth, that is one place with a note."""
    found = run_of("products apart").cross("prefill/layer/mlp/up", "prefill/layer/mlp/down", "batch", 1, 300)
    assert [each.changes for each in found.flickers] == [2, 2, 2, 2]
    assert [each.changes for each in found.crossings] == [1]
    assert sum("the lead changes 2 times while the two differ by less than 1%" in note for note in found.notes()) == 4


def test_a_closed_form_of_a_crossing() -> None:
    """Of two terms, in the other symbols; it gives the number."""
    run = run_of("gpt")
    found = run.cross("layer/mlp/up/forward", "layer/attention/reduce/forward", "scale_up_bandwidth")
    form = found.closed_form()
    values = {s: run.bound[s.name][0] for s in form.free_symbols}
    assert float(form.xreplace(values).doit()) == pytest.approx(found.crossings[0].at, rel=1e-9)


def test_the_sentence_says_who_leads_where() -> None:
    run = run_of("gpt")
    found = run.cross("plan: tp=8 pp=8", "plan: tp=4 pp=16 vpp=1", "batch", 8, 16)
    assert found.sentence == "tp=8 pp=8 beats tp=4 pp=16 vpp=1 in time for every batch from 8 to 16."
    found = run.cross("compute", "memory", "memory_bandwidth")
    assert found.sentence == "compute exceeds memory while memory_bandwidth > 514.5 GB/s."
    assert str(found).startswith(found.sentence)


def test_answers_are_plain(tmp_path: Path) -> None:
    """As JSON without NaN or infinity, as LaTeX, HTML and a picture."""
    run = run_of("gpt")
    keys = {"crossings", "always", "leads", "closed_form", "skipped", "view"}
    for found in (run.cross("base", "plan: vpp=1", "batch", 8, 64), run.cross("compute", "memory", "memory_bandwidth")):
        assert keys <= set(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
        assert found.latex().startswith("\\documentclass")
        assert "<table>" in found._repr_html_()
    found.plot(tmp_path / "cross.png")
    assert (tmp_path / "cross.png").stat().st_size > 5000


def test_degrees_of_a_serving_run_are_tried_number_by_number() -> None:
    """The sequences that fit follow a degree in no proportion: no one program holds along it, each number is bound."""
    from symperf.serve.iteration_run import IterationRun

    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    run = IterationRun(model, system, sf.Plan(tp=2), prompt=128, generate=64)
    found = run.cross("plan: recompute=none", "system: b200-sxm", "tp", 1, 8)
    assert json.dumps(found.to_dict(), allow_nan=False)
    for degree in ("tp", "pp"):
        target = 0.9 * run.value("tokens_per_s")
        value = int(run.solve(degree, tokens_per_s=target).value)
        assert run.bind(**{degree: value}).value("tokens_per_s") >= target


def test_a_resource_beside_a_term() -> None:
    """Both are seconds; "memory" beside another resource is one, beside bytes it is bytes."""
    run = run_of("gpt")
    assert run.cross("scale_up", "layer/mlp/up/forward", "batch", 8, 32).always == "scale_up"
    assert run.cross("memory", "memory/weights/layers", "batch", 8, 32).always == "memory"


BAD = {
    ("base", "plan: vpp=1", "first_stage_layers"): "over: first_stage_layers",
    ("computee", "memory", "batch"): "a: unknown quantity 'computee'.*did you mean compute",
    ("layer/mlp/up/forward", "base", "batch"): "expected two of one kind",
    ("memory", "time", "batch"): "memory is in B and time is in s, expected two of one unit",
    ("mfu", "time", "batch"): "mfu is a number and time is in s",
    ("time", "time", "batch"): "a and b are both 'time', expected two that differ",
    ("base", "base", "batch"): "a and b are both 'base'",
    ("layer/mpl/up/forward", "time", "batch"): "unknown quantity 'layer/mpl/up/forward'; did you mean layer/mlp/up",
    ("base", "plan: vpp=1", "bach"): "over: the run has no symbol 'bach'; did you mean batch",
    ("base", "plan: vpp=1", "c.batch"): "over: found 'c.batch', expected NAME, a.NAME or b.NAME",
    ("base", "plan: tp=4", "tp"): "over: tp is set by 'tp=4', expected a symbol that it leaves open",
    ("base", "plan: vpp=1", "batch", 10, 5): "the range from 10 to 5 is reversed, expected low below high",
    ("base", "plan: vpp=1", "batch", 8, 8): "the range from 8 to 8 is empty",
    ("base", "plan: vpp=1", "batch", 1, 7): "no batch from 1 to 7 is legal on both sides: base: schedule",
    ("base", "plan: vpp=1", "batch", 1.5, 7): "low is 1.5, but batch is a whole number",
    ("base", "plan: vpp=1", "memory_bandwidth", 1, 7): "memory_bandwidth goes from 1 GB/s to 10 PB/s",
    ("base", "plan: vpp=1", "batch", float("nan"), 7): "low is nan, expected a finite number",
    ("", "plan: vpp=1", "batch"): "a: found '', expected a name or a choice",
    ("base", "plan: tp=7", "batch"): "b: 'plan: tp=7': tp: 7 does not divide",
    ("layer/mlp/up/forward", "layer/mlp/down/forward", "batch"): "neither .* nor .* depends on batch",
    ("layer/mlp/up/forward", "layer/mlp/down/forward", "scale_out_latency"): "neither .* depends on scale_out_latency",
}


@pytest.mark.parametrize("asked", BAD, ids=lambda asked: " ".join(map(str, asked)))
def test_what_cannot_be_compared_is_told_in_one_line(asked: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match=f"^cross: .*{BAD[asked]}") as error:
        run_of("gpt").cross(*asked)
    assert "\n" not in str(error.value)


def test_an_unknown_quantity_of_choices() -> None:
    with pytest.raises(InputError, match="unknown quantity 'tiem'; did you mean time"):
        run_of("gpt").cross("base", "plan: vpp=1", "batch", of="tiem")


class Curve:
    """A subject along one of its symbols."""

    faithful = True

    def __init__(self, subject: Subject, symbol: str) -> None:
        self.subject, self.symbol = subject, symbol

    def pieces(self, low: float, high: float) -> Any:
        """Its exact pieces."""
        return self.subject.line(self.symbol, low, high).values[self.subject.position]

    def values(self, xs: Any) -> Any:
        """Its values."""
        return output_at(self.subject, self.symbol, xs)

    def value(self, x: float) -> float:
        """Its value."""
        return float(self.values(np.array([x]))[0])


@given(st.sampled_from(sorted(STRUCTURES)), st.sampled_from(sorted(STRUCTURES)), seeds, regimes, st.sampled_from(REALS))
@few
def test_every_change_of_the_lead_is_found(a: str, b: str, seed: int, regime: str, symbol: str) -> None:
    """Of any two structures at random points: between neighbours of a dense grid the order is what it is said to be."""
    first, second = subject_at(a, seed, regime), subject_at(b, seed + 1, regime)
    assume(all(symbol in each.program.inputs and each.values[symbol] > 0 for each in (first, second)))
    low, high = first.values[symbol] / 300, first.values[symbol] * 300
    # at one height in the middle, so that they cross
    middle = np.array([math.sqrt(low * high)])
    ratio = float(output_at(first, symbol, middle)[0] / output_at(second, symbol, middle)[0])
    curves = Curve(first, symbol), Curve(scaled(second, ratio * 1.0001), symbol)
    found = order_along(*curves, low, high)
    xs = np.geomspace(low, high, 801)[1:-1]
    heights = [curve.values(xs) for curve in curves]
    clear = np.abs(heights[0] - heights[1]) > 1e-9 * heights[0]
    told = np.array(found.signs)[np.searchsorted(found.cuts, xs, side="right")]
    assert np.all((told == np.sign(heights[0] - heights[1]))[clear])
    assert found.exact
    for cut in found.cuts:  # equal there, or one of them jumps over the other
        before, after = (
            order(*(c.values(np.array([cut * shift])) for c in curves))[0] for shift in (1 - 1e-9, 1 + 1e-9)
        )
        there = [curve.value(cut) for curve in curves]
        assert before != after or there[0] == pytest.approx(there[1], rel=1e-11)


def scaled(subject: Subject, factor: float) -> Subject:
    """A subject times a number."""
    program = Program(list(subject.program.instructions), dict(subject.program.inputs), dict(subject.program.lets), {})
    program.instructions += [("constant", factor), ("multiply", subject.position, len(subject.program))]
    program.outputs[subject.output] = len(program) - 1
    return dataclasses.replace(subject, program=program)
