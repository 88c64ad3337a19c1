"""Emitted Python, C and JavaScript run alone and agree with the program."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import move_cases
from support.derive_cases import ALL, PIPELINED, make
from support.tools import step_points, tool

from symperf.codegen.interpret import floats
from symperf.codegen.interpret import run as interpret
from symperf.derive import Derivation, derive
from symperf.derive.source import function_name, program_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POINTS = 40
QUESTIONS: dict[str, dict[str, Any]] = {
    "time": {},
    "memory": {"of": "memory"},
    "throughput": {"of": "tokens_per_s"},
    "device seconds": {"of": "device_seconds"},
    "of two symbols": {"free": ("batch", "matrix_rate")},
    "part, of one symbol": {"term": "layer/mlp", "free": ("memory_bandwidth",)},
    "phase": {"of": "decode"},
}
CALL = """
import json, sys
from unit import {name}
print(json.dumps([{name}(**point) for point in json.load(open("points.json"))] + [{name}()]))
assert not any(module.split(".")[0] == "symperf" for module in sys.modules)
"""
SCRIPT = """
import {{ readFileSync }} from "node:fs";
import {{ evaluate, outputs }} from "./unit.mjs";
const points = JSON.parse(readFileSync("points.json", "utf8"));
console.log(JSON.stringify(points.map((point) => evaluate(point)[outputs[0]])));
"""
MAIN = """
#include <stdio.h>
int main(void) {{
    double inputs[{count}], outputs[1];
    for (;;) {{
        for (int k = 0; k < {count}; k++)
            if (scanf("%lf", &inputs[k]) != 1) return 0;
        {name}(inputs, outputs);
        printf("%.17g\\n", outputs[0]);
    }}
}}
"""


Case = tuple[Derivation, list[dict[str, float]], list[float]]
"""A derivation, points, and the value at each."""


def _question(name: str, what: str) -> Case:
    """A derivation, points about the run's values, and the program's value at each."""
    run = ALL[name]()
    derivation = derive(run, **QUESTIONS[what])
    program, output = program_of(derivation)
    if derivation.free:
        assert set(program.inputs) <= set(derivation.free)
    columns = step_points({each: run.bound[each][0] for each in program.inputs}, POINTS)
    points = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    expected = [interpret(program, point, floats())[program.outputs[output]] for point in points]
    return derivation, points, expected


def _away(name: str, what: str) -> Case:
    """A derivation, points far from the run's values, and what the run's own program gives at each."""
    run = move_cases.make(name)
    derivation = derive(run, **QUESTIONS[what])
    moved = move_cases.moves(run, 6, POINTS)
    truth = move_cases.outputs_at(run, moved)
    truth["device_seconds"] = truth["time"] * truth["devices"]
    of = derivation.term if derivation.term in truth else derivation.of
    names = program_of(derivation)[0].inputs
    kept = [k for k in range(POINTS) if np.isfinite(truth[of][k])]
    points = [{each: float(moved[each][k]) for each in names} for k in kept]
    return derivation, points, [float(truth[of][k]) for k in kept]


CASES = [(_question, "interleaved", what) for what in QUESTIONS if what != "phase"]
CASES += [(_question, "flash", "time"), (_question, "zero", "memory"), (_question, "small", "time")]
CASES += [(_away, "zero 3", "time"), (_away, "eager pipeline", "device seconds"), (_away, "grouped heads", "phase")]
each_case = pytest.mark.parametrize(("pose", "name", "what"), CASES)


@each_case
def test_python(pose: Callable[[str, str], Case], name: str, what: str, tmp_path: Path) -> None:
    """A new interpreter without this package gets the same numbers, and the run's own value without arguments."""
    derivation, points, expected = pose(name, what)
    (tmp_path / "unit.py").write_text(derivation.python(), encoding="utf-8")
    (tmp_path / "main.py").write_text(CALL.format(name=function_name(derivation)), encoding="utf-8")
    (tmp_path / "points.json").write_text(json.dumps(points), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-s", "main.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env={"PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    *found, default = json.loads(done.stdout)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert default == pytest.approx(derivation.value, rel=1e-12)


@each_case
def test_c(pose: Callable[[str, str], Case], name: str, what: str, tmp_path: Path) -> None:
    """One file, compiled with every warning, gets the same numbers."""
    derivation, points, expected = pose(name, what)
    text = derivation.c() + MAIN.format(count=len(points[0]), name=function_name(derivation))
    (tmp_path / "unit.c").write_text(text, encoding="utf-8")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]
    compiler = tool("gcc", "cc", "clang")
    done = subprocess.run(
        [compiler, *flags, "unit.c", "-lm", "-o", "unit"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = "\n".join(" ".join(value.hex() for value in point.values()) for point in points)
    ran = subprocess.run([str(tmp_path / "unit")], input=lines, capture_output=True, text=True, check=True)
    np.testing.assert_allclose([float(line) for line in ran.stdout.split()], expected, rtol=1e-13)


@each_case
def test_javascript(pose: Callable[[str, str], Case], name: str, what: str, tmp_path: Path) -> None:
    """A module without imports gets the same numbers."""
    derivation, points, expected = pose(name, what)
    text = derivation.javascript()
    assert "import" not in text
    (tmp_path / "unit.mjs").write_text(text, encoding="utf-8")
    (tmp_path / "main.mjs").write_text(SCRIPT.format(), encoding="utf-8")
    (tmp_path / "points.json").write_text(json.dumps(points), encoding="utf-8")
    done = subprocess.run(
        [tool("node", "nodejs"), "main.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-13)


def test_names_do_no_harm() -> None:
    """A model's name from a file cannot end a comment or a string."""
    run = make(**PIPELINED)
    object.__setattr__(run.model, "name", 'x"""\n*/ evil(); //\\ é')
    derivation = derive(run, free=["batch"])
    compile(derivation.python(), "unit.py", "exec")
    assert "*/ evil" not in derivation.c()
    assert "evil();" not in derivation.javascript()
