"""Bad questions are one clear line that says what was found and what was expected."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from support.analysis_cases import made

from symperf.common.errors import InputError


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (
            lambda r: r.regimes("micro_bach", 1, 8),
            "regimes: the run has no symbol 'micro_bach'; did you mean micro_batch",
        ),
        (lambda r: r.regimes("tp", 8, 1), "regimes: the range from 8 to 1 is reversed, expected low below high"),
        (lambda r: r.regimes("tp", 8, 8), "regimes: the range from 8 to 8 is empty, expected low below high"),
        (lambda r: r.regimes("tp", 1.5, 8), "regimes: low is 1.5, but tp is a whole number"),
        (lambda r: r.regimes("tp", 0, 8), "regimes: low is 0, expected a number above 0"),
        (lambda r: r.regimes("tp", 1, float("inf")), "regimes: high is inf, expected a finite number"),
        (lambda r: r.regimes("tp", "1", 8), "regimes: low is '1', expected a finite number"),
        (lambda r: r.regimes("tp", True, 8), "regimes: low is True, expected a finite number"),
        (lambda r: r.regimes(3, 1, 8), "regimes: the symbol is 3, expected its name"),
        (lambda r: r.regimes("tp", 1, 8, of="tim"), "regimes: unknown quantity 'tim'; did you mean time"),
        (lambda r: r.regimes("tp", 1, 8, view="fine"), "regimes: view is 'fine', expected whole or smooth"),
        (
            lambda r: r.regimes("memory_bandwidth", 1e9, 1e12, view="whole"),
            "regimes: view is 'whole', expected none: memory_bandwidth is no whole number",
        ),
        (
            lambda r: r.regimes("sequence", 1, 10**9, view="whole"),
            "regimes: 1000000000 whole numbers, expected at most",
        ),
        (lambda r: r.regimes("workspace_bytes", 1, 8), "regimes: time does not depend on workspace_bytes"),
        (lambda r: r.free("tp").regimes("tp", 1, 8), "free symbols have no value: tp; bind them first"),
        (lambda r: r.solve("memory_bandwith", time=1), "no symbol 'memory_bandwith'; did you mean memory_bandwidth"),
        (lambda r: r.solve("memory_capacity", time=1), "solve: time does not depend on memory_capacity"),
        (lambda r: r.solve("memory_bandwidth", memory=1e9), "solve: memory does not depend on memory_bandwidth"),
        (lambda r: r.solve("tp"), "solve: found no target, expected one such as time = 0.02"),
        (lambda r: r.solve("tp", time=1, memory=-2), "solve: memory is -2, expected a finite number above 0"),
        (lambda r: r.solve("tp", time=-1), "solve: time is -1, expected a finite number above 0"),
        (lambda r: r.solve("tp", time="1 s"), "solve: time is '1 s', expected a finite number above 0"),
        (lambda r: r.solve("tp", tme=1), "solve: unknown quantity 'tme'; did you mean time"),
        (lambda r: r.solve("tp", low=9, high=4, time=1), "solve: no value of tp from 9 to 4, expected low below high"),
        (lambda r: r.solve("tp", low="a", time=1), "solve: low is 'a', expected a finite number of at least 0"),
        (lambda r: r.asymptotics("sequenc"), "limits: the run has no symbol 'sequenc'; did you mean sequence"),
        (lambda r: r.phase("tp", (1, 8), "tp", (1, 8)), "phase: found 'tp' twice, expected two symbols"),
        (lambda r: r.phase("tp", (8, 1), "pp", (1, 8)), "phase: tp: the range from 8 to 1 is reversed"),
        (lambda r: r.phase("tp", 8, "pp", (1, 8)), "phase: the range of tp is 8, expected its lowest and its highest"),
        (lambda r: r.phase("tp", (1, 8), "ppp", (1, 8)), "phase: the run has no symbol 'ppp'; did you mean"),
        (lambda r: r.phase("tp", (1, 8), "pp", (1, 8), points=1), "phase: points is 1, expected a whole number from 2"),
    ],
)
def test_bad_questions(ask: Any, line: str) -> None:
    with pytest.raises(InputError) as caught:
        ask(made("gpt"))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_symbol_that_makes_no_difference_is_refused() -> None:
    """On one device no bandwidth of a network matters, although the closed form holds it."""
    with pytest.raises(InputError, match="time does not depend on scale_out_bandwidth at these values"):
        made("one device").solve("scale_out_bandwidth", time=0.1)


def test_a_warm_answer_needs_no_sympy() -> None:
    """Once the structure is compiled, every number comes without SymPy, and without matplotlib."""
    code = """
import sys, symperf as sf
plan = sf.Plan(dp=8)
run = sf.training(sf.Model.load("llama-2-7b"), sf.System.load("tpu-v5p"), plan, batch=16, sequence=512)
run.regimes("memory_bandwidth", 1e11, 1e13), run.regimes("sequence", 128, 256), run.solve("memory_bandwidth", time=1.0)
run.gains(), run.bounds(), run.attribution(), run.asymptotics("sequence")
run.phase("memory_bandwidth", (1e11, 1e13), "matrix_rate", (1e13, 1e15), points=5)
print("sympy" in sys.modules, "matplotlib" in sys.modules)
"""
    for warm in (False, True):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split()[1] == "False"
        assert not warm or done.stdout.split()[0] == "False"
