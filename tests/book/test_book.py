"""The book in Markdown, HTML and Jupyter, and the proofs in it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from typing import Any

import pytest
import sympy

from symperf.book import html, markdown, show
from symperf.book.chapters import TITLES
from symperf.book.entry import entry, pages, unit, vocabulary
from symperf.book.proof import claims, steps
from symperf.common.errors import InputError
from symperf.formulas.language.atoms import Max, bubble, complement
from symperf.formulas.language.dimension import BANDWIDTH, FLOP
from symperf.formulas.language.formula import record_calls
from symperf.formulas.language.symbols import SYMBOLS, strip_units
from symperf.formulas.registry import load

FORMULAS = load()
XHTML, MATHML = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/1998/Math/MathML}"
each = pytest.mark.parametrize("name", FORMULAS)


@pytest.fixture(scope="module")
def page() -> str:
    return html()


@pytest.fixture(scope="module")
def tree(page: str) -> ElementTree.Element:
    return ElementTree.fromstring(page)


@pytest.fixture(scope="module")
def text() -> str:
    return markdown()


def test_html_is_xml_with_every_formula_once(tree: ElementTree.Element) -> None:
    titles = [e.get("id") for e in tree.iter(f"{XHTML}h4") if e.get("id")]
    assert sorted(map(str, titles)) == sorted(f"formula-{name}" for name in FORMULAS)
    identifiers = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(set(identifiers)) == len(identifiers)


def test_html_closes_what_it_opens(page: str) -> None:
    """An HTML5 parser finds the doctype, and an end for every element that needs one."""

    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.doctype = ""

        def handle_decl(self, decl: str) -> None:
            self.doctype = decl

        def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
            self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

        def handle_startendtag(self, tag: str, attrs: Any) -> None:
            pass

    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.doctype == "DOCTYPE html"
    assert checker.open == []


def test_html_loads_nothing(page: str, tree: ElementTree.Element) -> None:
    assert not [
        e.tag for e in tree.iter() if e.tag.removeprefix(XHTML) in ("script", "link", "img", "iframe", "object")
    ]
    assert not [e for e in tree.iter() if "src" in e.attrib]
    assert "@import" not in page
    assert "url(" not in page


def test_links_of_html_lead_somewhere(tree: ElementTree.Element) -> None:
    targets = {element.get("id") for element in tree.iter()}
    links = [str(element.get("href")) for element in tree.iter(f"{XHTML}a")]
    assert len(links) > len(FORMULAS)
    assert [link for link in links if not link.startswith("#") or link[1:] not in targets] == []


def test_html_has_each_equation_as_mathml(tree: ElementTree.Element) -> None:
    """Nothing of LaTeX is left in it, and no alignment mark."""
    for article in tree.iter(f"{XHTML}article"):
        blocks = [m for m in article.iter(f"{MATHML}math") if m.get("display") == "block"]
        assert blocks
        assert not [e for block in blocks for e in block.iter() if e.text == "&"]
    leaves = {str(e.text) for e in tree.iter() if e.tag.startswith(MATHML) and e.text}
    assert not [leaf for leaf in leaves if set(leaf) & set("\\^_")]
    assert {"+", "max", "min", "log"} <= leaves
    assert not list(tree.iter(f"{MATHML}merror"))


def test_html_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    with pytest.raises(InputError, match=r"^formulas: --html: needs latex2mathml, .*symperf\[book\]"):
        html(["work_time"])


def test_markdown_holds_every_formula_once(text: str) -> None:
    titles = re.findall(r"^#### [0-9.]+ .*\n\n`(.*?)`, \$", text, re.MULTILINE)
    assert sorted(titles) == sorted(FORMULAS)
    assert text.count("\n$$\n") % 2 == 0
    assert len(set(re.findall(r'<a id="(.*?)">', text))) == text.count('<a id="')


def test_links_of_markdown_lead_somewhere(text: str) -> None:
    targets = set(re.findall(r'<a id="(.*?)">', text))
    links = re.findall(r"\]\(#(.*?)\)", text)
    assert links
    assert set(links) <= targets


def test_tables_of_markdown_are_whole(text: str) -> None:
    """Every row has as many cells as its head; a bar in a cell would break it."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = block.splitlines()
        assert len({row.count("|") - row.count(r"\|") for row in rows}) == 1, rows[0]


def test_an_equation_in_markdown_needs_no_escape(text: str) -> None:
    """Braces are written as words, which Markdown does not read as escapes."""
    for block in re.findall(r"^\$\$\n(.*?)\n\$\$$", text, re.DOTALL | re.MULTILINE):
        assert r"\{" not in block
        assert "$" not in block


def test_pages_hold_every_formula_in_reading_order() -> None:
    found = pages()
    assert sorted(formula.name for page in found for formula in page.formulas) == sorted(FORMULAS)
    assert [page.name.rsplit(".", 1)[-1] for page in found] == list(TITLES), "every page has a title"
    assert all(page.introduction for page in found)


@each
def test_an_entry_is_whole(name: str) -> None:
    """Every symbol of the equation and every parameter has its row; the sentence is the docstring's."""
    found = entry(name)
    rows = [row.name for row in found.symbols]
    used = {symbol.name for symbol in strip_units(found.formula.expression).free_symbols}
    assert set(rows) == used | set(found.formula.parameters)
    assert len(set(rows)) == len(rows)
    assert found.sentence == found.formula.sentence
    assert not [text for text in found.details if ">>>" in text or text.startswith(("Assumes:", "Source:"))]


def test_the_table_of_symbols_is_whole() -> None:
    used = {s.name for f in FORMULAS.values() for s in strip_units(f.expression).free_symbols}
    rows = [row.name for row in vocabulary(FORMULAS.values())]
    assert used <= set(rows) <= set(SYMBOLS)
    assert rows == [name for name in SYMBOLS if name in rows]


def test_units() -> None:
    assert (unit(BANDWIDTH), unit(FLOP), unit(FLOP / FLOP)) == ("B/s", "FLOP", "")


@each
def test_claims_are_those_of_the_registry(name: str) -> None:
    formula = FORMULAS[name]
    found = claims(formula)
    rising, falling = ({claim.symbol for claim in found if claim.rises is way} for way in (True, False))
    counted = {symbol for symbol in SYMBOLS if SYMBOLS[symbol].group != "unit"}
    assert rising == formula.increasing & counted
    assert falling == formula.decreasing & counted


@each
def test_steps_of_a_proof_have_a_direction(name: str) -> None:
    """None is undecided, and a symbol that only enters directly rises."""
    for claim in claims(FORMULAS[name]):
        assert all(way in (1, -1) for _, way in claim.steps), claim
        assert claim.steps or claim.rises


def test_steps_go_from_the_inside_outwards() -> None:
    p, v, m = sympy.symbols("p v m", positive=True)
    expr = Max(m, 3 * complement(1 / (1 + bubble(p, v))))
    assert [way for _, way in steps(expr, p)] == [1, -1, 1]
    assert steps(expr, p)[0][0] == bubble(p, v)
    assert [way for _, way in steps(expr, v)] == [-1, 1, -1]
    assert steps(expr, m) == ()


def test_recording_sees_calls_of_calls_and_ends() -> None:
    from symperf.formulas.kernels.roofline import ridge_intensity, serial_time

    with record_calls() as outer:
        serial_time(1, 2, 3, 4)
        with record_calls() as inner:
            ridge_intensity(1, 2)
    ridge_intensity(1, 2)
    assert list(outer) == ["serial_time", "work_time", "traffic_time"]
    assert list(inner) == ["ridge_intensity"]


def test_a_notebook_shows_a_formula() -> None:
    shown = show("roofline_time")
    assert shown._repr_latex_().startswith("$$\nT_{\\mathrm{roof}}(")
    assert "#### 2.3 Roofline: lower bound of a kernel's time\n\n`roofline_time`, $" in shown._repr_markdown_()
    assert "| $Q$ | `traffic_bytes` |" in shown._repr_markdown_()
    assert repr(shown).startswith("roofline_time: Lower bound")
    assert shown.latex in shown._repr_latex_()
    assert FORMULAS["roofline_time"]._repr_latex_() == rf"$\displaystyle {FORMULAS['roofline_time'].latex()}$"


def test_an_unknown_formula_is_told_with_the_nearest() -> None:
    for give in (show, entry, lambda name: markdown([name])):
        with pytest.raises(InputError, match=r"^formulas: unknown formula 'roofline_tme'; did you mean roofline_time"):
            give("roofline_tme")
