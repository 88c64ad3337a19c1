"""`Run`: closed forms of time and memory equal the values, and print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import sympy
from support.run_cases import PIPELINED, RUNS, each_run, make

from symperf.book.latex import upright
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    import symperf as sf
from symperf.derive.forms import stand_in
from symperf.derive.writing import latex_notation


@pytest.fixture(scope="module")
def run() -> sf.Run:
    """The 175B run of Korthikanti et al. 2022, which several tests read."""
    return make(**PIPELINED)


@each_run
def test_closed_forms_equal_values(name: str) -> None:
    """Time and memory as SymPy expressions, with the bindings put in, are the numbers to 1e-12."""
    answer = RUNS[name]()
    assert all(isinstance(symbol, sympy.Symbol) for symbol in answer.bindings)
    assert all(SYMBOLS[symbol.name].symbol == symbol for symbol in answer.bindings)
    for tree, key in ((answer.time, "time"), (answer.memory, "memory")):
        assert tree.expr.free_symbols <= set(answer.bindings)
        number = tree.expr.xreplace({s: sympy.Rational(v) for s, v in answer.bindings.items()})
        assert float(number.evalf(30)) == pytest.approx(answer.value(key), rel=1e-12)


@each_run
def test_trees_name_their_terms(name: str) -> None:
    """The form over named terms, with each term's form put in, is the whole form; each term has its value."""
    answer = RUNS[name]()
    bindings = {s: sympy.Float(v, 30) for s, v in answer.bindings.items()}
    for tree, prefix in ((answer.time, ""), (answer.memory, "memory/")):
        terms = {sympy.Symbol(path, nonnegative=True): expr.xreplace(bindings) for path, expr in tree.terms.items()}
        whole = tree.formula.xreplace(bindings).xreplace(terms)
        assert float(whole) == pytest.approx(answer.value(tree.name), rel=1e-12)
        for path, expr in tree.terms.items():
            assert float(expr.xreplace(bindings)) == pytest.approx(answer.value(prefix + path), rel=1e-12), path


def test_trees_print(run: sf.Run) -> None:
    """As an indented tree with values; briefly in a prompt; as LaTeX in a notebook."""
    text = str(run.time)
    assert text.splitlines()[0].startswith("time = ")
    assert "  layer" in text
    assert "bubble" in text
    assert str(run.memory).splitlines()[0].startswith("memory = ")
    assert "print it" in repr(run.time)
    assert run.time._repr_latex_().startswith("$")
    assert " = " not in str(run.free("batch").time).splitlines()[0]
    assert "gpt3-175b on a100-80gb-sxm" in repr(run)


def test_latex(run: sf.Run) -> None:
    """An align environment of all parts and terms, and tables of every symbol, balanced and with values."""
    text = run.latex()
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 1
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") >= 1
    assert text.count("{") == text.count("}")
    align, table = text.split(r"\end{align*}")
    defined = [row for row in align.split("\n") if row.startswith((r"& \tau", "& T", "& X"))]
    assert len(defined) == len(set(defined))
    notation = latex_notation(run.time.terms)
    for path in run.time.terms:  # each has a definition of its own, or stands in a chain of equal ones
        glyph = notation.box(stand_in(path)).text
        assert re.search(rf"(^& |= ){re.escape(glyph)}( = | \\\\$|$)", align, re.MULTILINE), path
    rows = re.findall(r"^\$(.+?)\$ & ", table, re.MULTILINE)  # also the parameters of formulas that are called
    assert len(rows) == len(set(rows)) == table.count(r" \\") - text.count(r"\begin{tabular}")
    for symbol in run.time.expr.free_symbols:
        assert f"${upright(SYMBOLS[symbol.name].glyph)}$ &" in table
    assert r"$2.039\,\mathrm{TB/s}$" in table
