"""Derivations are exact: active branches and lines give the number of the whole closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from support.derive_cases import ALL, make
from support.effort import some
from support.strategies import seeds

from symperf.codegen.interpret import arrays
from symperf.codegen.interpret import run as interpret
from symperf.codegen.lower import lower
from symperf.derive import derive
from symperf.derive.forms import values_of
from symperf.derive.numeric import Values
from symperf.derive.regime import RegimeRewriter
from symperf.formulas.language.atoms import Max, Min
from symperf.formulas.language.symbols import SYMBOLS

CONTINUOUS = ("_rate", "_bandwidth", "_latency", "_efficiency", "_half_bytes", "_capacity")
COUNTS = ("batch", "sequence", "prompt", "hidden_size", "num_layers")
POINTS = 2500


def _disturbed(run: Any, seed: int) -> Any:
    """The run with every figure of its system changed by up to a factor of 30."""
    rng = np.random.default_rng(seed)
    values = {}
    for name in sorted(run.compiled.program.inputs):
        if name.endswith(("_rate", "_bandwidth", "_latency", "_half_bytes")):
            values[name] = run.bound[name][0] * 10 ** rng.uniform(-1.5, 1.5)
    return run.bind(**values)


def _nearby(run: Any, seed: int) -> dict[str, Any]:
    """Points about a run's values: figures by a few per cent, and by more; sizes by powers of two."""
    rng = np.random.default_rng(seed)
    spread = 10 ** rng.uniform(-4, -0.5, POINTS)
    points: dict[str, Any] = {}
    for name in run.compiled.program.inputs:
        value = run.bound[name][0]
        if name.endswith(CONTINUOUS):
            points[name] = value * np.exp(spread * rng.normal(size=POINTS))
        elif name in COUNTS:
            points[name] = value * np.where(spread < 0.01, 1, 2.0 ** rng.integers(0, 3, POINTS))
        else:
            points[name] = np.full(POINTS, value)
    return points


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("of", ["time", "memory"])
def test_active_branches_give_the_number(name: str, of: str) -> None:
    """Wherever the conditions of a regime hold, its form is the whole form, within 1e-12; 10,000 points in all."""
    checked = 0
    for seed in range(2 if of == "time" else 1):
        run = _disturbed(ALL[name](), seed)
        derivation = derive(run, of)
        regime = RegimeRewriter(values_of(run))
        whole, active = derivation.full, derivation.active
        assert not active.atoms(Max, Min)
        choices = regime.choices(whole)
        outputs = {"whole": whole, "active": active}
        for k, choice in enumerate(choices):
            outputs |= {f"node{k}": choice.node, f"made{k}": choice.active}
        program = lower([], outputs)
        with np.errstate(all="ignore"):  # two parallel lines never cross: a quotient by zero that a minimum drops
            found = interpret(program, _nearby(run, seed), arrays())
        at = {key: np.broadcast_to(found[position], POINTS) for key, position in program.outputs.items()}
        holds = np.ones(POINTS, dtype=bool)
        for k in range(len(choices)):
            holds &= np.abs(at[f"node{k}"] - at[f"made{k}"]) <= 1e-13 * np.abs(at[f"node{k}"])
        np.testing.assert_allclose(at["active"][holds], at["whole"][holds], rtol=1e-12)
        checked += int(holds.sum())
    assert checked >= 750  # of 14 cases: more than 10,000 together


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", some(range(4)))
def test_lines_sum_to_the_value(name: str, seed: int) -> None:
    """The lines of every quantity sum to what the compiled program says, within 1e-12, in any regime."""
    run = _disturbed(ALL[name](), seed)
    for of in ("time", "memory", "tokens_per_s", "devices"):
        derivation = derive(run, of)
        assert derivation.value == pytest.approx(run.value(of), rel=1e-12)
        assert sum(line.value for line in derivation.lines) == pytest.approx(run.value(of), rel=1e-12)
        assert sum(line.share for line in derivation.lines) == pytest.approx(1, rel=1e-12)
        kept = sum(line.value for line in derivation.kept)
        assert kept + derivation.dropped_value == pytest.approx(run.value(of), rel=1e-12)


@pytest.mark.parametrize("name", some(ALL))
def test_terms_have_the_seconds_of_the_table(name: str) -> None:
    """The part of every folder and term is what the breakdown says."""
    run = _disturbed(ALL[name](), 3)
    rows = {row.name: row.time_s for row in run.table()}
    folders = {path.rpartition("/")[0] for path in rows if "/" in path} | {path.split("/")[0] for path in rows}
    for folder in folders:
        expected = sum(value for path, value in rows.items() if path == folder or path.startswith(f"{folder}/"))
        assert derive(run, term=folder).value == pytest.approx(expected, rel=1e-9, abs=1e-15)
        assert run.time[folder].value() == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", ["eager", "interleaved", "parallel"])
@pytest.mark.parametrize("free", [("memory_bandwidth",), ("micro_batch", "tp"), ("launch_latency", "hidden_size")])
def test_free_symbols_keep_the_value(name: str, free: tuple[str, ...]) -> None:
    """Everything else is a number, and at the run's values the lines still sum to the quantity."""
    run = ALL[name]()
    derivation = derive(run, free=free)
    assert derivation.value == pytest.approx(run.value("time"), rel=1e-12)
    assert {symbol.name for symbol in derivation.expr.free_symbols} <= set(free)
    values = Values({SYMBOLS[each].symbol: run.bound[each][0] for each in free})
    assert values(derivation.expr) == pytest.approx(run.value("time"), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_free_rates_follow_the_regime(seed: int) -> None:
    """Inside the regime the form in a free rate is the program's value at another rate."""
    run = make("gpt-22b", tp=8)
    rate = run.bound["matrix_rate"][0]
    derivation = derive(run, free=["matrix_rate"])
    nearest = min(condition.margin for condition in derivation.conditions)
    other = rate * nearest ** np.random.default_rng(seed).uniform(-0.9, 0.9)
    values = Values({SYMBOLS["matrix_rate"].symbol: other})
    assert values(derivation.expr) == pytest.approx(run.bind(matrix_rate=other).value("time"), rel=1e-12)


def test_conditions_are_sorted_and_hold() -> None:
    """Every winner wins; the nearest to a change comes first."""
    derivation = derive(_disturbed(make(tp=8, pp=8), 1))
    margins = [condition.margin for condition in derivation.conditions]
    assert margins == sorted(margins)
    for condition in derivation.conditions:
        for other in condition.others:
            if condition.kind == "max":
                assert condition.active.value >= other.value
            if condition.kind == "min":
                assert condition.active.value <= other.value
