"""Calls of formulas that stay calls: what they keep, and that nothing else ever sees them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sympy
from support.named_calls import expand_calls

from symperf.formulas.kernels.matmul import quantised_matmul_time, smooth_matmul_time
from symperf.formulas.kernels.roofline import ridge_time, roofline_time
from symperf.formulas.language.atoms import Max
from symperf.formulas.language.dimension import dimension_of
from symperf.formulas.language.formula import record_calls
from symperf.formulas.language.named_calls import NamedCall, calls_in, name_calls, remember_forms
from symperf.formulas.language.symbols import dimensions, launch_latency, matrix_rate, vector_rate
from symperf.formulas.registry import load

FORMULAS = load()
each = pytest.mark.parametrize("name", FORMULAS)
work, traffic = sympy.symbols("T_w T_c", positive=True)


@each
def test_a_body_is_the_closed_form_over_calls(name: str) -> None:
    """Opened, it is what predictions are composed of, to the last node; it has the same symbols and dimension."""
    formula = FORMULAS[name]
    assert expand_calls(formula.body) == formula.expression
    assert formula.expression.free_symbols <= formula.body.free_symbols
    assert dimension_of(formula.body, dimensions()) == formula.dimension


def test_a_call_is_a_positive_part_of_an_expression() -> None:
    with name_calls():
        time = 2 * ridge_time(work, traffic) + launch_latency
    (call,) = calls_in(time)
    assert call.is_nonnegative
    assert call.arguments == {"work_time": work, "transfer_time": traffic}
    assert Max(time, 0).has(call)


def test_a_substitution_reaches_what_a_formula_reads() -> None:
    """As low precision replaces the rate of a product that is composed already."""
    sizes = sympy.symbols("m n k g Q", positive=True)
    with name_calls():
        named = smooth_matmul_time(*sizes).xreplace({matrix_rate: vector_rate})
    assert named.replaced == {matrix_rate: vector_rate}
    assert expand_calls(named) == smooth_matmul_time(*sizes).xreplace({matrix_rate: vector_rate})


def test_keywords_and_numbers_are_arguments_too() -> None:
    with name_calls():
        assert roofline_time(2, 3, rate=4, bandwidth=5) == roofline_time(2, 3, 4, 5)
        assert roofline_time(2, 3, 4, 5).args == (2, 3, 4, 5)


def test_outside_of_it_a_call_gives_the_closed_form() -> None:
    with name_calls():
        inside = roofline_time(1, 2, 3, 4)
        with name_calls(wanted=False):
            assert not roofline_time(1, 2, 3, 4).has(NamedCall)
    assert inside.has(NamedCall)
    assert not roofline_time(1, 2, 3, 4).has(NamedCall)
    assert not any(formula.expression.has(NamedCall) for formula in FORMULAS.values())


def test_recording_knows_named_calls() -> None:
    sizes = sympy.symbols("m n k g Q", positive=True)
    with record_calls() as names, name_calls():
        quantised_matmul_time(*sizes)
    assert list(names) == ["quantised_matmul_time"]


def test_what_is_remembered_with_calls_is_apart() -> None:
    """No prediction is ever composed of calls because a derivation was asked for first."""
    built = []

    @remember_forms(maxsize=2)
    def build(first: str) -> object:
        built.append(first)
        return roofline_time(1, 2, 3, 4)

    with name_calls():
        named = build("a")
        assert build("a") is named
    assert build("a") == roofline_time(1, 2, 3, 4)
    assert built == ["a", "a"]
    build.cache_clear()
    build("a")
    assert built == ["a", "a", "a"]


IMPORTS = """
import importlib, pkgutil, symperf
from symperf.formulas.language.named_calls import CLASSES, name_calls
with name_calls():
    for page in pkgutil.walk_packages(symperf.__path__, "symperf."):
        if not page.name.endswith("__main__"):
            importlib.import_module(page.name)
print(sorted(CLASSES))
"""


def test_no_module_calls_a_formula_as_it_is_imported() -> None:
    """Whatever is open while a module is imported for the first time, what it holds is the same."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
