"""Phase diagrams: regions as single runs have them, and boundaries on which two resources are equal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.analysis_cases import made
from support.effort import some
from support.legal_cases import accepted

import symperf as sf
from symperf.analysis.closed import evaluator
from symperf.analysis.plane import REFUSED
from symperf.analysis.symbols import domain_of
from symperf.common.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

RANGES = ("memory_bandwidth", (1e11, 1e14), "matrix_rate", (1e13, 1e16))


def largest(shares: dict[str, float]) -> str:
    return max(shares, key=lambda name: shares[name])


def test_regions_are_those_of_single_runs() -> None:
    run = made("llama")
    found = run.phase(*RANGES, points=9)
    assert found.region.shape == (9, 9)
    for row, column in ((0, 0), (8, 0), (0, 8), (8, 8), (4, 4), (3, 6)):
        bound = run.bind(memory_bandwidth=found.x_values[column], matrix_rate=found.y_values[row])
        assert found.bound(row, column) == largest(bound.shares())


@pytest.mark.parametrize("name", ["gpt", "llama", "no tiles"])
def test_boundaries_are_exact(name: str) -> None:
    """A billionth to one side of a boundary the one resource has the largest share, to the other side the other.

    The shares themselves may jump there, where a maximum takes another branch.
    """
    run = made(name)
    found = run.phase(*RANGES, points=17)
    assert found.boundaries
    for boundary in found.boundaries:
        assert boundary.before != boundary.after
        for x, y in list(zip(boundary.x, boundary.y, strict=True))[::4]:
            at = {"memory_bandwidth": float(x), "matrix_rate": float(y)}
            below = at | {boundary.solved: at[boundary.solved] * (1 - 1e-9)}
            above = at | {boundary.solved: at[boundary.solved] * (1 + 1e-9)}
            assert largest(run.bind(**below).shares()) == boundary.before
            assert largest(run.bind(**above).shares()) == boundary.after


def test_boundaries_agree_with_regimes() -> None:
    """Along one symbol at a value of the other, `regimes` gives the point of the curve."""
    run = made("no tiles")
    found = run.phase(*RANGES, points=9)
    curve = max((b for b in found.boundaries if b.solved == "matrix_rate"), key=lambda b: len(b.x))
    x, y = float(curve.x[3]), float(curve.y[3])
    changes = [c.x for c in run.bind(memory_bandwidth=x).regimes("matrix_rate", 1e13, 1e16).crossovers if c.bound]
    assert any(c == pytest.approx(y, rel=1e-9) for c in changes)


def test_whole_numbers_are_on_the_grid() -> None:
    """A whole number with few values has each of them; solved for, its boundary is the first of the new region."""
    run = made("no tiles")
    found = run.phase("scale_up_bandwidth", (1e9, 1e13), "tp", (1, 32), points=33)
    assert found.views == ("exact", "whole")
    assert found.y_values.tolist() == sorted(accepted(run, "tp", range(1, 33)))
    curves = [b for b in found.boundaries if b.solved == "tp"]
    assert curves
    for curve in curves:
        assert not np.any(curve.y % 1)
    wide = run.phase("sequence", (128, 1 << 17), "memory_bandwidth", (1e11, 1e14), points=9)
    assert wide.views == ("smooth", "exact")


def test_a_picture_and_data(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = made("gpt").phase(*RANGES, points=9)
    for suffix in ("png", "pdf", "svg"):
        target = tmp_path / f"phase.{suffix}"
        found.plot(target)
        assert target.stat().st_size > 2000
    with pytest.raises(InputError, match=r"expected a file that ends in \.png, \.pdf, \.svg"):
        found.plot(tmp_path / "phase.txt")
    with pytest.raises(InputError, match="cannot be written"):
        found.plot(tmp_path / "missing" / "phase.png")
    told = json.loads(json.dumps(found.to_dict()))
    assert len(told["region"]) == 9
    assert {b["solved"] for b in told["boundaries"]} <= {"memory_bandwidth", "matrix_rate"}


def test_a_missing_matplotlib_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = made("gpt").phase(*RANGES, points=3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"plot: needs matplotlib, which is not installed: pip install"):
        found.plot(tmp_path / "phase.png")


@pytest.mark.parametrize(
    ("x", "x_range", "y", "y_range"),
    [
        ("batch", (1, 40), "memory_bandwidth", (1e12, 8e12)),
        ("tp", (1, 8), "batch", (1, 24)),
        ("dp", (1, 8), "tp", (1, 8)),
    ],
)
def test_cells_are_what_the_bound_run_says(
    x: str, x_range: tuple[float, float], y: str, y_range: tuple[float, float]
) -> None:
    """Also where the run sets other numbers from the two symbols, and refuses some of them together."""
    model, system = sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm")
    question = sf.inference(model, system, sf.Plan(), batch=24, prompt=200, generate=64)
    found = question.phase(x, x_range, y, y_range, points=41)
    whole = domain_of(y).whole
    taken = 0
    for row in some(range(len(found.y_values)), 0.2):
        for column in some(range(len(found.x_values)), 0.2):
            first, second = int(found.x_values[column]), found.y_values[row]
            try:
                bound = question.bind(**{x: first, y: int(second) if whole else float(second)})
            except InputError:
                assert found.region[row, column] == REFUSED
                assert (first, int(second)) in {each.value for each in found.plane.skipped}
                continue
            taken += 1
            assert found.bound(row, column) == largest(bound.shares())
    assert taken


def test_closed_forms_of_boundaries_hold_along_them() -> None:
    """At every point of a curve with a closed form, the expression in the other symbols is the one solved for."""
    question = made("gpt")
    found = question.phase(*RANGES, points=9)
    forms = [(curve, form) for curve, form in found.forms if form is not None]
    assert forms
    for curve, form in forms:
        assert curve.solved not in {symbol.name for symbol in form.free_symbols}
        for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
            at = {"memory_bandwidth": x, "matrix_rate": y}
            bound = question.bind(**at).bound
            value = evaluator(form)({name: value for name, (value, _) in bound.items()})
            assert value == pytest.approx(at[curve.solved], rel=1e-9)
