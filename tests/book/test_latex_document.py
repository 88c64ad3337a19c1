"""The book as LaTeX: compiled by pdflatex with amsmath and hyperref, without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.effort import NIGHTLY
from support.tools import tool

from symperf.book import pdf as make_pdf
from symperf.book.equation import latex_line
from symperf.book.pdflatex import Pdf, pdf
from symperf.book.references import reference
from symperf.book.render import tex
from symperf.common.errors import InputError
from symperf.formulas.registry import load
from symperf.formulas.sources import SOURCES

if TYPE_CHECKING:
    from pathlib import Path

FORMULAS = load()


@pytest.fixture(scope="module")
def document() -> str:
    return tex()


@pytest.fixture(scope="module")
def book(document: str) -> Pdf:
    tool("pdflatex")
    return pdf(document)


def complaints(made: Pdf) -> list[str]:
    """What LaTeX warns of: boxes that overflow or lack text, unknown references, fonts that are not there."""
    return re.findall(r"^(?:Overfull|Underfull|.*Warning:).*$", made.log, re.MULTILINE)


def test_it_compiles_without_a_warning(book: Pdf) -> None:
    """No box overflows or lacks text, every reference is known, every glyph has a font."""
    assert complaints(book) == []
    assert book.content.startswith(b"%PDF-")


def test_it_needs_amsmath_and_hyperref_only(document: str) -> None:
    assert re.findall(r"\\usepackage(?:\[.*\])?\{(.*)\}", document) == ["amsmath", "hyperref"]
    assert re.findall(r"\\documentclass.*", document) == [r"\documentclass[a4paper,fleqn]{article}"]


def test_it_holds_every_formula_and_source_once(document: str) -> None:
    titles = re.findall(r"\\formulatitle\{formula-(.*?)\}", document)
    assert sorted(titles) == sorted(FORMULAS)
    cited = set(re.findall(r"\\cite\{(.*?)\}", document))
    assert cited >= {formula.source for formula in FORMULAS.values()}
    assert sorted(re.findall(r"\\bibitem\{(.*?)\}", document)) == sorted(cited)


def test_its_links_lead_somewhere(document: str) -> None:
    """Every link has its place, and no place is there twice."""
    places = [
        *re.findall(r"\\hypertarget\{([^#]*?)\}", document),
        *re.findall(r"\\booksection\{(.*?)\}", document),
        *re.findall(r"\\formulatitle\{(.*?)\}", document),
    ]
    assert len(places) == len(set(places))
    assert set(re.findall(r"\\hyperlink\{(.*?)\}", document)) <= set(places)


def test_its_contents_have_five_pages_at_most(book: Pdf, tmp_path: Path) -> None:
    """Of the pages between the preface and the first chapter."""
    (tmp_path / "book.pdf").write_bytes(book.content)
    done = subprocess.run(
        [tool("pdftotext"), "-l", "8", "book.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    pages = done.stdout.split("\f")
    first = next(place for place, page in enumerate(pages) if "Contents" in page)
    notation = next(place for place, page in enumerate(pages) if "Letters" in page)
    assert 1 <= notation - first <= 5


def test_its_words_can_be_read(book: Pdf, tmp_path: Path) -> None:
    """The text of the PDF has the formulas' names and the first words of the introduction."""
    (tmp_path / "book.pdf").write_bytes(book.content)
    done = subprocess.run(
        [tool("pdftotext"), "-layout", "book.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    words = re.sub(r"[\W_]+", " ", done.stdout)
    assert "Formulas of symperf" in words
    missing = [name for name in FORMULAS if name.replace("_", " ") not in words]
    assert missing == []
    assert "??" not in done.stdout


def test_it_is_the_same_every_time() -> None:
    """In this process and in others, however Python hashes; of a few formulas, under `nightly` of all."""
    names = None if NIGHTLY else ["tiled_matmul_time", "thin_matmul_time"]
    document = tex(names)
    assert tex(names) == document
    assert pdf(document).content == pdf(document).content
    printed = [
        subprocess.run(
            [sys.executable, "-c", f"from symperf.book import tex; print(tex({names!r}), end='')"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert set(printed) == {document}


def test_equations_on_one_line_compile() -> None:
    """What `symperf formulas --latex` prints needs amsmath only as well."""
    tool("pdflatex")
    boxes = "\n".join(rf"\setbox0\hbox{{$\displaystyle {latex_line(formula)}$}}" for formula in FORMULAS.values())
    made = pdf(f"\\documentclass{{article}}\\usepackage{{amsmath}}\\begin{{document}}\n{boxes}\nx\\end{{document}}")
    assert complaints(made) == []


def test_a_book_of_one_formula() -> None:
    made = tex(["ring_all_reduce_time"])
    assert made.count(r"\formulatitle{") == 1
    assert made.count(r"\bibitem") == 1
    tool("pdflatex")
    assert complaints(make_pdf(made)) == []


DOCUMENT = r"\documentclass{{article}}\usepackage{{amsmath}}\begin{{document}}{}\end{{document}}"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (rf"\[ {'x + ' * 80} x \]", "Overfull"),
        (r"\cite{nothing}", "Citation"),
        (r"\hbox to 100pt{x}", "Underfull"),
    ],
)
def test_complaints_are_seen(body: str, complaint: str) -> None:
    """The test above can fail: LaTeX's warnings are found in its log."""
    tool("pdflatex")
    assert any(complaint in line for line in complaints(pdf(DOCUMENT.format(body))))


def test_an_error_of_latex_is_one_line() -> None:
    tool("pdflatex")
    with pytest.raises(InputError, match=r"^formulas: pdflatex failed: Undefined control sequence\.$"):
        pdf(DOCUMENT.format(r"\nosuchcommand"))


def test_a_document_cannot_run_commands(tmp_path: Path) -> None:
    tool("pdflatex")
    mark = tmp_path / "mark"
    pdf(DOCUMENT.format(rf"\immediate\write18{{touch {mark}}}x"))
    assert not mark.exists()


def test_without_pdflatex_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"^formulas: --pdf needs pdflatex, .*texlive-latex-base") as caught:
        pdf("")
    assert "\n" not in str(caught.value)
    assert os.environ["PATH"] == str(tmp_path)


@pytest.mark.parametrize("key", SOURCES)
def test_every_reference_is_whole(key: str) -> None:
    """Authors, title and year are read from its BibTeX, and nothing of the markup is left."""
    found = reference(key)
    assert found.authors
    assert found.title
    assert re.fullmatch(r"\d{4}", found.year)
    assert found.where
    assert not set(found.text) & set("{}\\")
    assert found.text.endswith(f"{found.year}.")
