"""What a question is about: outputs, terms, folders, dollars and joules, all as the run itself tells them."""

from __future__ import annotations

from typing import Any

import pytest
from support.analysis_cases import made
from support.effort import some

import symperf as sf
from symperf.analysis.subject import known_quantities, subject_of
from symperf.codegen.interpret import floats, run
from symperf.common.errors import InputError
from symperf.spending.quantities import QUANTITIES

OWNED = {"price": 30_000.0, "lifetime": 1e8, "electricity_price": 3e-8, "facility_overhead": 1.3}


def inferred(**fields: Any) -> Any:
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    return sf.inference(model, system, sf.Plan(**fields), batch=8, prompt=200, generate=200)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: made("gpt").bind(**OWNED),
        lambda: made("llama"),
        lambda: inferred(tp=2),
        lambda: inferred(precision="fp8", dp=2),
    ],
    ids=["owned", "rented", "inference", "fp8"],
)
def test_every_quantity_is_what_the_run_tells(asked: Any) -> None:
    """By all of its names: outputs, terms, folders of terms and of memory, cost and energy."""
    question = asked()
    names = [name for name in known_quantities(question) if not name.startswith("term/")]
    assert {"time", "memory/weights", "throughput", *QUANTITIES} <= set(names)
    for name in some(names, 0.1):
        subject = subject_of(question, name, "test")
        found = run(subject.program, subject.values, floats())[subject.position]
        assert found == pytest.approx(question.value(name), rel=1e-12), name


def test_a_folder_is_all_executions_below_it() -> None:
    """Executions times the seconds of one, as the rows of the table say; a term is one execution."""
    question = made("gpt")
    rows = [row for row in question.table() if row.name.startswith("layer/mlp/")]
    assert question.value("layer/mlp") == pytest.approx(sum(row.count * row.each_s for row in rows), rel=1e-12)
    assert question.value(rows[0].name) == rows[0].each_s
    weights = sum(size for name, size in question.memory_terms().items() if name.startswith("weights/"))
    assert question.value("memory/weights") == pytest.approx(weights, rel=1e-12)


@pytest.mark.parametrize("precision", some(["fp8", "bf16"], 0.5))
def test_dollars_and_joules_follow_any_symbol(precision: str) -> None:
    """At other values of the symbol they are what a run bound to them tells, also where a price is in watts."""
    question = inferred(precision=precision)
    for of, symbol, low, high in (
        ("energy", "matrix_rate", 1e14, 1e16),
        ("cost", "memory_bandwidth", 1e12, 1e13),
        ("energy_per_token", "batch", 1, 16),
    ):
        for regime in question.regimes(symbol, low, high, of=of).intervals:
            at = int(regime.at) if symbol == "batch" else regime.at
            assert regime.value == pytest.approx(question.bind(**{symbol: at}).value(of), rel=1e-9)


def test_what_energy_goes_to() -> None:
    """The shares of joules are those of the run's own account."""
    question = inferred()
    (regime,) = question.regimes("memory_energy", 60e-12, 60.1e-12, of="energy").intervals
    told = question.bind(memory_energy=regime.at).energy()
    matrix = told.joules["matrix"] + told.joules.get("attention", 0.0)
    assert regime.shares["memory"] == pytest.approx(told.joules["memory"] / told.total, rel=1e-9)
    assert regime.shares["matrix"] == pytest.approx(matrix / told.total, rel=1e-9)


@pytest.mark.parametrize(
    ("of", "line"),
    [
        ("layer/mpl", "unknown quantity 'layer/mpl'; did you mean layer/mlp"),
        ("memory/weight", "unknown quantity 'memory/weight'; did you mean memory/weights"),
        ("layer/", "unknown quantity 'layer/'"),
        ("costs", "unknown quantity 'costs'; did you mean cost"),
    ],
)
def test_what_there_is_not(of: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        subject_of(made("gpt"), of, "test")
    assert line in str(caught.value)
    with pytest.raises(InputError):
        made("gpt").value(of)


def test_no_price() -> None:
    with pytest.raises(InputError, match="cost: system h800-sxm has no price; set price_per_hour, or price and lifet"):
        subject_of(made("gpt").swap(system=sf.System.load("h800-sxm")), "cost", "test")
