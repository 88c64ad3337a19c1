"""Lines of the book's equations: nothing overflows, and nothing is lost or changed by breaking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.book_cases import Data, value
from support.effort import some
from support.oracle import MEANING, evaluate, sample

from symperf.book.equation import GLYPH, PAGE, latex_blocks, latex_line, unicode_lines
from symperf.book.layout import Spacing, lay_out
from symperf.book.unicode import columns
from symperf.formulas.language.atoms import Max, Min
from symperf.formulas.language.symbols import FRACTION, SYMBOLS, strip_units
from symperf.formulas.mathematics.fractions import geometric_sum
from symperf.formulas.registry import load
from symperf.formulas.technology.cost import triangular_part

FORMULAS = load()
each = pytest.mark.parametrize("name", FORMULAS)
NARROW = Spacing(line=60, equals=3, indent=2, stack=6)
WIDE = Spacing(line=1e9, equals=3, indent=2, stack=6)


def known(expr: Any) -> bool:
    """Whether the independent evaluator knows every function."""
    return {node.func.__name__ for node in sympy.preorder_traversal(expr) if node.args} <= set(MEANING)


def exactly(expr: Any, points: Any) -> Any:
    """The values at points in exact numbers."""
    at = [{s: sympy.Rational(float(values[k])) for s, values in points.items()} for k in range(4)]
    return np.array([float(expr.xreplace(values)) for values in at])


def laid_out(expr: Any, spacing: Spacing, parameters: list[Any]) -> tuple[list[Any], Data]:
    notation = Data({symbol: str(symbol) for symbol in expr.free_symbols}, parameters)
    return lay_out(expr, notation.glyph("left"), notation, spacing, GLYPH), notation


@pytest.mark.parametrize("name", some(FORMULAS, 0.34))
@pytest.mark.parametrize("spacing", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_broken_equation_has_the_value_of_the_formula(name: str, spacing: Spacing) -> None:
    """What the lines say, computed from their text, is the closed form; so no bracket or part is lost."""
    formula = FORMULAS[name]
    expr = strip_units(formula.expression)
    lines, _ = laid_out(expr, spacing, [SYMBOLS[parameter].symbol for parameter in formula.parameters])
    assert spacing is NARROW or len(lines) == 1
    points = sample(expr.free_symbols, seed=1, size=64)
    if not known(expr):  # a sum over a range, whose ends are whole
        points = {symbol: np.ceil(array[:4]) + 1 for symbol, array in points.items()}
    if expr.has(geometric_sum):  # whose quotient has no value where the ratio is 1
        points = {
            s: np.minimum(array, 0.99) if SYMBOLS[str(s)].domain == FRACTION else array for s, array in points.items()
        }
    if expr.has(triangular_part):  # whose quotient has no value at 0
        points = {s: np.maximum(array, 1e-3) for s, array in points.items()}
    with np.errstate(all="ignore"):
        # Extended precision: a text may subtract what the evaluator does not.
        found = value(lines, {str(symbol): np.asarray(array, np.longdouble) for symbol, array in points.items()})
        expected = evaluate(expr, points) if known(expr) else exactly(expr, points)
    assert np.allclose(found, expected, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", some(FORMULAS, 0.34))
@pytest.mark.parametrize("width", [60, 80, 118])
def test_lines_fit_a_terminal(name: str, width: int) -> None:
    lines = unicode_lines(FORMULAS[name], width)
    assert max(map(columns, lines)) <= width, lines


@each
def test_named_parts_are_numbered_as_they_are_read(name: str) -> None:
    """X_1, X_2, ... in the order of their definitions, each used before it is defined."""
    text = unicode_lines(FORMULAS[name], 60)
    defined = [line.split(" = ")[0] for line in text if line.startswith(f"{GLYPH}_")]
    assert [one.removesuffix(" =") for one in defined] == [f"{GLYPH}_{k + 1}" for k in range(len(defined))]
    first = {
        one: next(i for i, line in enumerate(text) if f"{one} " in f"{line} " or f"{one})" in line or f"{one}," in line)
        for one in defined
    }
    starts = {one: next(i for i, line in enumerate(text) if line.startswith(f"{one} =")) for one in defined}
    assert all(first[one] < starts[one] for one in defined)


def test_no_symbol_is_called_as_named_parts_are() -> None:
    assert not [name for name, entry in SYMBOLS.items() if entry.glyph.startswith(f"{GLYPH}_")]


@each
def test_latex_is_balanced(name: str) -> None:
    for text in (*latex_blocks(FORMULAS[name]), latex_line(FORMULAS[name])):
        assert text.count(r"\left") == text.count(r"\right")
        assert text.count("{") == text.count("}")
        assert "operatorname" not in text
        assert r"\begin" not in text or text.count(r"\begin") == text.count(r"\end")


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
    )


expressions = st.recursive(st.sampled_from(symbols), _nested, max_leaves=25)


@given(expr=expressions, width=st.sampled_from([30, 60, 120]))
def test_any_expression_keeps_its_value(expr: Any, width: int) -> None:
    lines, _ = laid_out(expr, Spacing(line=width, equals=3, indent=2, stack=6), [])
    random = np.random.default_rng(0)
    points = {symbol: random.uniform(0.5, 2, 16) for symbol in symbols}
    found = value(lines, {str(symbol): points[symbol] for symbol in symbols})
    assert np.allclose(found, evaluate(expr, points), rtol=1e-9)


@given(expr=expressions)
def test_lines_of_any_expression_fit(expr: Any) -> None:
    """As wide as 60 columns every part can be made to fit, as symbols are six columns wide."""
    lines, _ = laid_out(expr, NARROW, [])
    for line in lines:
        before = NARROW.indent + NARROW.equals if line.below else line.left.width + NARROW.equals
        room = NARROW.line - before - (0 if line.kind == "plain" else NARROW.stack)
        assert all(box.width <= room for _, box in line.parts), line


def test_the_page_is_as_wide_as_the_template_says() -> None:
    """160 mm at ten points are 45.5 em; the rest is a margin for what widths leave out."""
    assert 0.85 * 45.5 < PAGE.line < 45.5
