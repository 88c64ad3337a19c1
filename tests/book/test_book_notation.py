"""Equations of the book: every atom in LaTeX and Unicode, brackets where they are needed, glyphs."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

from symperf.book.latex import Latex, glyph_width, upright
from symperf.book.unicode import Unicode, columns, plain
from symperf.formulas.language.atoms import (
    ATOMS,
    Max,
    Min,
    above_one,
    bubble,
    ceil_div,
    complement,
    less_one,
    log2,
    ring_share,
)
from symperf.formulas.language.symbols import SYMBOLS

a, b, c, n, q = sympy.symbols("a b c n q", positive=True)
GLYPHS = {a: "a", b: r"\beta_u", c: "c'", n: "n_{kv}", q: "q"}
half = sympy.Rational(1, 2)

CASES: list[tuple[Any, str, str]] = [
    (Max(a, b), r"\max(a, \beta_u)", "max(a, β_u)"),
    (Min(a, 2, b), r"\min(2, a, \beta_u)", "min(2, a, β_u)"),
    (Max(a / b, q), r"\max\left(q, \frac{a}{\beta_u}\right)", "max(q, a / β_u)"),
    (ceil_div(a, q), r"\left\lceil \frac{a}{q}\right\rceil", "⌈a / q⌉"),
    (ceil_div(a * ceil_div(n, q), b), None, "⌈a ⌈n_kv / q⌉ / β_u⌉"),
    (log2(q), r"\log_{2} q", "log₂(q)"),
    (log2(q + 1), r"\log_{2} (q + 1)", "log₂(q + 1)"),
    (3 * a * log2(q), r"3 \, a \log_{2} q", "3 a log₂(q)"),
    (ring_share(q), r"\frac{q - 1}{q}", "(q − 1) / q"),
    (2 * n * ring_share(q) / b, r"\frac{2 \, n_{\mathrm{kv}} \, (q - 1)}{\beta_u \, q}", "2 n_kv (q − 1) / (β_u q)"),
    (ring_share(a * q), r"\frac{a \, q - 1}{a \, q}", "(a q − 1) / (a q)"),
    (bubble(q, a), r"\frac{q - 1}{a}", "(q − 1) / a"),
    (n + bubble(q, 1), r"n_{\mathrm{kv}} + q - 1", "n_kv + q − 1"),
    (bubble(q, a) / n, r"\frac{q - 1}{a \, n_{\mathrm{kv}}}", "(q − 1) / (a n_kv)"),
    (a * less_one(q), r"a \, (q - 1)", "a (q − 1)"),
    (less_one(q) - log2(q), r"q - 1 - \log_{2} q", "q − 1 − log₂(q)"),
    (a - less_one(q), "a - (q - 1)", "a − (q − 1)"),
    (less_one(q) ** 2, "(q - 1)^{2}", "(q − 1)²"),
    (complement(a), "1 - a", "1 − a"),
    (n * complement(a + b), r"n_{\mathrm{kv}} \, (1 - (a + \beta_u))", "n_kv (1 − (a + β_u))"),
    (above_one(q), "[q > 1]", "[q > 1]"),
    (complement(above_one(q)) * a, r"a \, (1 - [q > 1])", "a (1 − [q > 1])"),
    (sympy.sqrt(a + b), r"\sqrt{a + \beta_u}", "√(a + β_u)"),
    (a / sympy.sqrt(b), r"\frac{a}{\sqrt{\beta_u}}", "a / √β_u"),
    (a ** (3 * half), "a^{3/2}", "a^(3/2)"),
    (c**2, "{c'}^{2}", "c′²"),
    (sympy.Integer(7) * half, r"\frac{7}{2}", "7 / 2"),
    (-a, "-a", "−a"),
    (a * (b + q) / 2, r"\frac{a \, (\beta_u + q)}{2}", "a (β_u + q) / 2"),
    (sympy.Float(0.5) * a, r"0.5 \, a", "0.5 a"),
    (a - 2 * b, r"a - 2 \, \beta_u", "a − 2 β_u"),
    (1 / (a * b), r"\frac{1}{a \, \beta_u}", "1 / (a β_u)"),
]


@pytest.mark.parametrize(("expr", "latex", "text"), CASES, ids=[str(case[0]) for case in CASES])
def test_an_expression_is_written_so(expr: Any, latex: str | None, text: str) -> None:
    if latex is not None:
        assert Latex(GLYPHS).box(expr).text == latex
    assert Unicode(GLYPHS).box(expr).text == text
    assert Unicode(GLYPHS).box(expr).width == columns(text)


@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: atom.__name__)
def test_every_atom_has_a_form_of_its_own(atom: Any) -> None:
    """None is written as a function in words; a new atom needs a rule in the notation."""
    expr = atom(
        *[sympy.Symbol(f"x{k}", positive=True) for k in range(2 if atom in (Max, Min) else next(iter(atom.nargs)))]
    )
    glyphs = {symbol: str(symbol) for symbol in expr.free_symbols}
    assert "operatorname" not in Latex(glyphs).box(expr).text
    assert atom.__name__ not in Unicode(glyphs).box(expr).text.replace("max", "").replace("min", "")


def test_factors_come_in_the_order_of_the_parameters() -> None:
    expr = 2 * a * b * q
    assert Unicode(GLYPHS, [q, b, a]).box(expr).text == "2 q β_u a"
    assert Unicode(GLYPHS, [a, q]).box(expr).text == "2 a q β_u"


def test_a_tall_factor_stands_beside_its_fraction() -> None:
    text = Latex(GLYPHS).box(a * Max(n / q, b) / q).text
    assert text == r"\frac{a}{q} \max\left(\beta_u, \frac{n_{\mathrm{kv}}}{q}\right)"


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_glyph_is_set_upright_and_plain(name: str) -> None:
    """Its words are upright, its Unicode form has no LaTeX in it, and its braces stay balanced."""
    glyph = SYMBOLS[name].glyph
    text = upright(glyph)
    assert text.count("{") == text.count("}")
    assert upright(text).count("mathrm{mathrm") == 0
    assert not set(plain(glyph)) & set("\\{}"), plain(glyph)
    assert plain(glyph)
    assert glyph_width(text) > 0


@pytest.mark.parametrize(
    ("glyph", "shown"),
    [
        (r"\beta_l", "β_l"),
        (r"\Theta_{x}", "Θ_x"),
        ("T_{norm'}", "T_norm′"),
        (r"\underline{T}_{ar}", "T\N{COMBINING LOW LINE}_ar"),
        ("s^*", "s*"),
        (r"\mathrm{FLOP}", "FLOP"),
    ],
)
def test_a_glyph_on_the_terminal(glyph: str, shown: str) -> None:
    assert plain(glyph) == shown


def test_widths_grow_with_what_is_set() -> None:
    latex = Latex(GLYPHS)
    assert latex.box(a).width < latex.box(a + b).width < latex.box(a + b + q).width
    assert latex.box(a / b).width < latex.box(a).width + latex.box(b).width
    assert glyph_width("T_{gpipe}") > glyph_width("T_g") > glyph_width("T")
