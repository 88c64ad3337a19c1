"""Titles of formulas: every one has one that a person would write, and no two are alike."""

from __future__ import annotations

from collections import Counter

import pytest

from symperf.book.chapters import TITLES
from symperf.book.entry import numbers, parts
from symperf.book.fragments import pieces
from symperf.book.letters import Letters
from symperf.book.titles import LONGEST, first_clause, title_of, titles
from symperf.formulas.registry import load

FORMULAS = load()


@pytest.mark.parametrize("name", FORMULAS)
def test_a_title_is_for_people(name: str) -> None:
    """A few words that begin with a capital, without mathematics, names of code, or an end of a sentence."""
    title = title_of(FORMULAS[name])
    assert 4 <= len(title) <= LONGEST, f"{title!r} needs an entry in titles.toml"
    assert title[0].isupper()
    assert not title.endswith((".", ",", ":"))
    assert not set(title) & set("`_=^$\\")
    assert [piece.kind for piece in pieces(title, Letters())] == ["text"]


def test_no_two_are_alike() -> None:
    assert [title for title, count in Counter(map(title_of, FORMULAS.values())).items() if count > 1] == []


def test_the_table_has_what_a_docstring_does_not_give() -> None:
    """Formulas that are there, none of which has the title of its docstring."""
    assert set(titles()) <= set(FORMULAS)
    assert [name for name, title in titles().items() if title == first_clause(FORMULAS[name].sentence)] == []


def test_numbers_follow_the_chapters() -> None:
    """From 1 on in each, and as many as there are formulas."""
    found = numbers()
    assert set(found) == set(FORMULAS)
    assert len(set(found.values())) == len(found)
    for part in parts():
        names = [formula.name for page in part.pages for formula in page.formulas]
        assert [found[name] for name in names] == [f"{part.number}.{place}" for place in range(1, len(names) + 1)]


def test_every_page_stands_in_a_chapter_that_names_it() -> None:
    assert {formula.page for formula in FORMULAS.values()} == set(TITLES)
