"""Mathematics in sentences: what is set as mathematics, what stays a word, and that nothing is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.effort import part, some

from symperf.book.entry import entry, pages
from symperf.book.fragments import Piece, expression, pieces
from symperf.book.latex import upright
from symperf.book.letters import Letters, ascii_glyph, by_shape, symbols_of
from symperf.book.prose import breakable, parts
from symperf.formulas.language.symbols import SYMBOLS
from symperf.formulas.registry import load

FORMULAS = load()


def shown(found: list[Piece]) -> str:
    """Pieces on one line: mathematics between angle brackets, names between backticks, emphasis between stars."""
    marks = {"text": ("", ""), "math": ("<", ">"), "code": ("`", "`"), "emphasis": ("*", "*")}
    return "".join(marks[piece.kind][0] + piece.text + marks[piece.kind][1] for piece in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FLOPs of g products: 2 m n k g.", r"FLOPs of <g> products: <2\, m\, n\, k\, g>."),
        ("an m x k by k x n product", r"an <m \times k> by <k \times n> product"),
        ("Layers: ceil(L / p).", r"Layers: <\lceil L / p\rceil>."),
        ("max(W / R, Q / R_b)", r"<\max(W / R, Q / R_{b})>"),
        ("a share, (q-1)/q n bytes", r"a share, <(q - 1) / q\, n> bytes"),
        ("[q > 1] alpha", r"<[q > 1]\, \alpha>"),
        ("12 L h^2 (1 + 13/(12 h))", r"<12\, L\, h^{2}\, (1 + 13 / (12\, h))>"),
        ("two scores, 3 w a score", r"two scores, <3\, w> a score"),
        ("w_x a feature of a token", r"<w_{x}> a feature of a token"),
        ("a time in s, of s tokens", r"a time in s, of <s> tokens"),
        ("the s^2 / 2 pairs", r"the <s^{2} / 2> pairs"),
        ("1F1B and ZB-2p hold 2p", r"1F1B and ZB-2p hold <2\, p>"),
        ("a gated delta rule", "a gated delta rule"),
        ("delta + 1", r"<\delta + 1>"),
        ("L2, FP8, A100, 2-byte, 8 B, 700 W", "L2, FP8, A100, 2-byte, 8 B, 700 W"),
        ("appendix B, section 3.1 (M/D/1)", "appendix B, section 3.1 <(M / D / 1)>"),
        ("rho = Lambda / capacity", r"<\rho = \Lambda / \text{capacity}>"),
        ("memory or compute, plus a launch", "memory or compute, plus a launch"),
        ("waves / max(1, floor(u / tiles))", r"<\text{waves} / \max(1, \lfloor u / \text{tiles}\rfloor )>"),
        ("sqrt(log2 N)", r"<\sqrt{\log_{2} N}>"),
        ("e^-x and y_b^N", r"<e^{-x}> and <y_{b}^{N}>"),
        ("its F' and beta', at l*", r"its <F'> and <\beta'>, at <l^{*}>"),
        ("1 + alpha + ... + alpha^k", r"<1 + \alpha + \dots  + \alpha^{k}>"),
        ("as `thin_matmul_time` has it", "as `thin_matmul_time` has it"),
        ("(I + tril(...))^-1 of keys", r"<(I + \mathrm{tril}(\dots ))^{-1}> of keys"),
        ("*Expanded*: keys", "*Expanded*: keys"),
        ("heads: a for MHA, 1 for MQA", "heads: <a> for MHA, 1 for MQA"),
        ("A device needs A bytes", "A device needs <A> bytes"),
        ("Llama 4's layers; a device's own", "Llama 4's layers; a device's own"),
        ("tiles of 1 x 128, twice", r"tiles of <1 \times 128>, twice"),
        ("1 + 4/128 bytes", "1 + 4/128 bytes"),
        ("and/or, h/w", "and/or, <h / w>"),
    ],
)
def test_a_sentence(text: str, expected: str) -> None:
    assert shown(pieces(text, Letters())) == expected


@pytest.mark.parametrize("name", some(FORMULAS, 0.25))
def test_a_letter_is_a_quantity_of_its_formula(name: str) -> None:
    """Its own glyph; or the only one that begins so, where the docstring does not write that one as well."""
    formula = FORMULAS[name]
    letters = Letters(formula)
    glyphs = {ascii_glyph(SYMBOLS[symbol].glyph): SYMBOLS[symbol].glyph for symbol in symbols_of(formula)}
    for written, glyph in glyphs.items():
        assert letters.latex(written) == upright(glyph)
        base = re.split("['_^]", written)[0]
        alike = [other for other in glyphs if re.split("['_^]", other)[0] == base]
        if alike == [written] != [base] and base.isalpha():
            meant = not re.search(rf"{re.escape(written)}\b", formula.doc)
            assert letters.latex(base) == (upright(glyph) if meant else by_shape(base))


def test_names_of_collectives() -> None:
    letters = Letters(FORMULAS["ring_all_reduce_time"])
    assert letters.latex("BW") == upright(SYMBOLS["link_bandwidth"].glyph)
    assert letters.latex("half") == upright(SYMBOLS["half_bytes"].glyph)
    assert Letters().latex("BW") == r"\mathrm{BW}"
    assert [by_shape("T_rs"), by_shape("w_mu"), by_shape("s*")] == [r"T_{\mathrm{rs}}", r"w_{\mu}", "s^{*}"]


def test_a_name_of_the_formula_is_a_quantity_and_one_of_another_is_a_name() -> None:
    letters = Letters(FORMULAS["ridge_time"])
    work, transfer = (upright(SYMBOLS[name].glyph) for name in ("work_time", "transfer_time"))
    found = parts("`work_time` and `roofline_time`, `transfer_time`", letters)
    assert shown(found) == f"<{work}> and `roofline_time`, <{transfer}>"


def test_an_introduction_writes_names() -> None:
    """Of symbols, also of one word, and of formulas; other words are none."""
    letters = Letters(by_name=True)
    glyph = {name: upright(SYMBOLS[name].glyph) for name in ("rows", "matrix_rate", "matrix_efficiency")}
    assert expression("2 rows / (matrix_rate matrix_efficiency)", letters) == (
        rf"2\, {glyph['rows']} / ({glyph['matrix_rate']}\, {glyph['matrix_efficiency']})"
    )
    assert expression("ridge_batch + 1", letters) == f"{upright(FORMULAS['ridge_batch'].glyph)} + 1"
    assert expression("rows and columns", letters) is None
    assert expression("rows rows_of", letters) is None


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name.rsplit(".", 1)[-1])
def test_nothing_that_is_mathematics_stays_text(page: object) -> None:
    """Of all docstrings: no power, no letter with an index, no Greek name; and braces of LaTeX are balanced."""
    texts = [(text, Letters()) for text in page.introduction]  # type: ignore[attr-defined]
    for formula in page.formulas:  # type: ignore[attr-defined]
        one, letters = entry(formula.name), Letters(formula)
        further = (formula.assumes, formula.derivation, formula.reference_only)
        texts += [(text, letters) for text in (one.sentence, *one.details, *further)]
    for text, letters in texts:
        for piece in parts(text, letters):
            if piece.kind == "math":
                assert piece.text.count("{") == piece.text.count("}"), text
                assert piece.text.count("(") == piece.text.count(")"), text
            elif piece.kind == "text":
                assert not re.search(r"\^|\b[A-Za-z]_\w|\b(alpha|beta|eta|phi|lambda|tau|omega|chi)\b", piece.text), (
                    text
                )


LETTERS = ["a", "A", "I", "s", "n", "x", "m_f", "w_x", "alpha", "beta'", "BW", "half", "2", "3.5", "2p", "q-1", "..."]
SIGNS = [*"()[],+-/^=<>_&", "^^", "max(", "ceil(", "sqrt(", "log2"]
PLAIN = ["an", "in", "of", "the", "L2", "F&B", "'tis", "don't", "tile-wise", "`name`", "*so*"]
WORDS = st.sampled_from([*LETTERS, *SIGNS, *PLAIN])


@given(words=st.lists(WORDS, max_size=12), spaces=st.lists(st.sampled_from(["", " "]), min_size=12, max_size=12))
@part(0.5)
def test_any_text_is_cut_in_order(words: list[str], spaces: list[str]) -> None:
    """Whatever is written: words outside of mathematics are there as they were, in their order."""
    text = "".join(word + space for word, space in zip(words, spaces, strict=False))
    place = 0
    for piece in pieces(text, Letters()):
        if piece.kind != "math":
            found = text.find(piece.text, place)
            assert found >= 0
            place = found + len(piece.text)
        assert piece.kind != "math" or piece.text.count("{") == piece.text.count("}")


def test_a_line_breaks_outside_of_braces_only() -> None:
    assert breakable(r"a\, \sqrt{b\, c}\, d") == r"a\,\allowbreak \sqrt{b\, c}\,\allowbreak d"
