"""The loops in C that benchmarks hold kernels against, and what is said of a step that has grown."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.paths import ROOT

from symperf.codegen.evaluate import evaluate
from symperf.codegen.passes import prune
from symperf.codegen.program import Program

if TYPE_CHECKING:
    from pathlib import Path

sys.path.insert(0, str(ROOT / "benchmarks"))

from history import COLUMNS, growth, releases
from loops_in_c import QUICK, Loops, write_loops

AXES = ("a", "b", "c")
STEP = Program(
    [
        *(("input", name) for name in (*AXES, "scale")),
        ("divide", 0, 2),  # a / c, whose divisor is known in the innermost loop alone
        ("multiply", 4, 1),
        ("ceil_div", 1, 3),
        ("divide", 2, 3),
        ("divide", 7, 0),  # multiplied by a reciprocal of the outermost loop
        ("divide", 2, 1),
        ("ceil_div", 9, 3),  # a quotient that is rounded up: divided where it stands
        ("max", 5, 6),
        ("add", 11, 8),
        ("add", 12, 10),
        ("subtract", 1, 2),
    ],
    {"a": 0, "b": 1, "c": 2, "scale": 3},
    {},
    {"time": 13, "slack": 14},
)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("order", [AXES, ("c", "a", "b"), ("b", "c", "a")])
def test_loops_in_c_find_what_numpy_finds(order: tuple[str, ...], tmp_path: Path) -> None:
    axes = {"a": np.arange(1.0, 6.0), "b": np.arange(2.0, 9.0) * 1.7, "c": np.arange(1.0, 5.0) * 2.3}
    grid = dict(zip(order, np.meshgrid(*(axes[name] for name in order), indexing="ij"), strict=True))
    at = evaluate(prune(STEP, ["time", "slack"]), {**grid, "scale": 3.0}, {13, 14})
    least, where = Loops.of(STEP, order, tmp_path, QUICK).best(axes, {"scale": 3.0})
    times = np.where(at[14] >= 0, at[13], np.inf)
    assert least == pytest.approx(times.min(), rel=1e-14)
    assert times.ravel()[where] == pytest.approx(least, rel=1e-14)
    assert (at[14] < 0).any()


def test_a_divisor_is_divided_by_where_it_is_known_unless_the_quotient_is_rounded() -> None:
    text = write_loops(STEP, AXES)
    assert "* y0;" in text
    assert "y1" not in text


def test_a_step_that_grows_by_more_than_three_percent_is_told() -> None:
    known = [{"release": "1", "step_instructions": "10"}, {"release": "2", "step_instructions": "1000"}]
    assert growth(known, 1030) is None
    assert growth(known, 900) is None
    told = growth(known, 1050)
    assert told is not None
    assert "5.0 % more than in release 2 (1,000)" in told


def test_the_history_has_the_columns_that_are_written() -> None:
    known = releases()
    assert known
    assert all(tuple(line) == COLUMNS and all(line.values()) for line in known)


def test_every_benchmark_compares_its_results_in_ci() -> None:
    smoked = set((ROOT / "Makefile").read_text(encoding="utf-8").partition("SMOKES = ")[2].partition("\n")[0].split())
    able = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if '"--smoke"' in path.read_text(encoding="utf-8")}
    assert smoked == able
    assert {path.stem for path in (ROOT / "benchmarks").glob("bench_*.py")} <= smoked
    assert "make smoke" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
