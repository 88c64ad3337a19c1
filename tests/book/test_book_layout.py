"""Lines of the book's equations: nothing overflows, and nothing is lost or changed by breaking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.book_cases import MARKS, Source, value
from support.effort import some
from support.oracle import MEANING, evaluate, sample

from symperf.book.equation import PAGE, called_formulas, latex_blocks, latex_line, shown_body, unicode_lines
from symperf.book.layout import Row, Spacing, lay_out
from symperf.book.unicode import columns
from symperf.formulas.language.atoms import Max, Min, above_one, ceil_div, complement, less_one, ring_share
from symperf.formulas.language.named_calls import calls_in
from symperf.formulas.language.symbols import FRACTION, SYMBOLS, strip_units
from symperf.formulas.mathematics.fractions import geometric_sum
from symperf.formulas.registry import load
from symperf.formulas.technology.cost import triangular_part

if TYPE_CHECKING:
    from symperf.formulas.language.formula import Formula

FORMULAS = load()
each = pytest.mark.parametrize("name", FORMULAS)
NARROW = Spacing(line=60, step=3)
WIDE = Spacing(line=1e9, step=3)
FITTING = Spacing(line=90, step=1)


def known(expr: Any) -> bool:
    """Whether the independent evaluator knows every function."""
    return {node.func.__name__ for node in sympy.preorder_traversal(expr) if node.args} <= set(MEANING)


def exactly(expr: Any, points: Any) -> Any:
    """The values at points in exact numbers."""
    at = [{s: sympy.Rational(float(values[k])) for s, values in points.items()} for k in range(4)]
    return np.array([float(expr.xreplace(values)) for values in at])


def laid_out(expr: Any, spacing: Spacing, parameters: list[Any]) -> tuple[list[Row], Source]:
    notation = Source({symbol: str(symbol) for symbol in expr.free_symbols}, parameters)
    return lay_out(expr, notation.glyph("left"), notation, spacing, MARKS), notation


def points_of(formula: Formula) -> Any:
    """Points at which a formula and the formulas that it calls have values."""
    expr = strip_units(formula.expression)
    used = {symbol for called in called_formulas(formula) for symbol in strip_units(called.expression).free_symbols}
    points = sample(expr.free_symbols | shown_body(formula).free_symbols | used, seed=1, size=64)
    if not known(expr):  # a sum over a range, whose ends are whole
        points = {symbol: np.ceil(array[:4]) + 1 for symbol, array in points.items()}
    if expr.has(geometric_sum):  # whose quotient has no value where the ratio is 1
        points = {
            s: np.minimum(array, 0.99) if SYMBOLS[str(s)].domain == FRACTION else array for s, array in points.items()
        }
    if expr.has(triangular_part):  # whose quotient has no value at 0
        points = {s: np.maximum(array, 1e-3) for s, array in points.items()}
    return points


@pytest.mark.parametrize("name", some(FORMULAS, 0.34))
@pytest.mark.parametrize("spacing", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_broken_equation_has_the_value_of_the_formula(name: str, spacing: Spacing) -> None:
    """What the rows say, computed from their text, is the closed form; so no bracket or part is lost.

    The formulas that are called are computed by themselves; so the equation is the closed form over them.
    """
    formula = FORMULAS[name]
    shown, expr = shown_body(formula), strip_units(formula.expression)
    rows, notation = laid_out(shown, spacing, [SYMBOLS[parameter].symbol for parameter in formula.parameters])
    assert spacing is NARROW or len(rows) == 1
    points = points_of(formula)
    with np.errstate(all="ignore"):
        # Extended precision: a text may subtract what the evaluator does not.
        values = {str(symbol): np.asarray(array, np.longdouble) for symbol, array in points.items()}
        found = value(rows, notation, values, calls_in(shown))
        expected = evaluate(expr, points) if known(expr) else exactly(expr, points)
    assert np.allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", some(FORMULAS, 0.34))
@pytest.mark.parametrize("width", [60, 80, 118])
def test_lines_fit_a_terminal(name: str, width: int) -> None:
    lines = unicode_lines(FORMULAS[name], width)
    assert max(map(columns, lines)) <= width, lines


@each
def test_every_called_formula_is_told(name: str) -> None:
    """Its glyph with its parameters and its name, which the book knows; nothing else has a name of its own."""
    formula = FORMULAS[name]
    text = "\n".join(unicode_lines(formula, 200))
    called = called_formulas(formula)
    assert all(f": {one.name}" in text for one in called)
    assert text.count(": ") == len(called)
    assert "X_" not in text
    assert len(latex_blocks(formula)) == 1


def test_a_product_is_told_over_its_tiles() -> None:
    """The example of the literature: the corner of the ridge, whole and split tiles, whose waves are their own."""
    names = [one.name for one in called_formulas(FORMULAS["tiled_matmul_time"])]
    assert {"ridge_corner_time", "whole_tile_time", "split_tile_time", "smooth_compute_time"} <= set(names)
    assert [one.name for one in called_formulas(FORMULAS["split_passes"])] == ["matmul_waves"]


@each
def test_latex_is_balanced(name: str) -> None:
    for text in (*latex_blocks(FORMULAS[name]), latex_line(FORMULAS[name])):
        for opening, closing in ((r"\left", r"\right"), (r"\bigl", r"\bigr"), ("{", "}"), (r"\begin", r"\end")):
            assert text.count(opening) == text.count(closing), (opening, text)
        assert "operatorname" not in text


symbols = sympy.symbols("a:h", positive=True)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        several.map(lambda parts: sympy.Add(*parts)),
        several.map(lambda parts: sympy.Mul(*parts)),
        several.map(lambda parts: Max(*parts)),
        several.map(lambda parts: Min(*parts)),
        st.tuples(inner, inner).map(lambda pair: pair[0] / pair[1]),
        inner.map(lambda part: part * 2),
        inner.map(lambda part: less_one(part + 1)),
        inner.map(lambda part: 1 + complement(1 / (1 + part))),
        inner.map(lambda part: 1 + above_one(part)),
        inner.map(lambda part: ring_share(part + 2)),
        inner.map(lambda part: part**2),
        st.tuples(inner, inner).map(lambda pair: ceil_div(pair[0], pair[1] * sympy.Rational(31, 29))),
    )


expressions = st.recursive(st.sampled_from(symbols), _nested, max_leaves=25)


@given(expr=expressions, width=st.sampled_from([30, 60, 120]))
def test_any_expression_keeps_its_value(expr: Any, width: int) -> None:
    rows, notation = laid_out(expr, Spacing(line=width, step=3), [])
    random = np.random.default_rng(0)
    points = {symbol: random.uniform(0.5, 2, 16) for symbol in symbols}
    found = value(rows, notation, {str(symbol): points[symbol] for symbol in symbols})
    assert np.allclose(found, evaluate(expr, points), rtol=1e-9)


@given(expr=expressions)
def test_rows_of_any_expression_fit(expr: Any) -> None:
    """As wide as 90 columns every part can be made to fit, as symbols are six columns wide."""
    rows, _ = laid_out(expr, FITTING, [])
    for row in rows:
        assert row.depth * FITTING.step + row.width <= FITTING.line, rows


def test_the_page_is_as_wide_as_the_template_says() -> None:
    """160 mm at ten points are 45.5 em; the rest is a margin for what widths leave out."""
    assert 0.85 * 45.5 < PAGE.line < 45.5
