"""One glyph, one thing: no two symbols, and no two formulas, are written alike, on paper or on a terminal."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from symperf.book.latex import upright
from symperf.book.unicode import ACCENTS, COMMANDS, plain
from symperf.formulas.language.symbols import SYMBOLS
from symperf.formulas.registry import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOOKALIKES = str.maketrans("νοικρ", "voikp") | str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX")
"""Greek letters that print as Latin ones do, or nearly so."""
TOLD_APART = str.maketrans("", "", "′*")
RUN = [entry for entry in SYMBOLS.values() if entry.group not in ("formal", "unit")]
FORMULAS = load()


def shared(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """What more than one name is written as."""
    found = defaultdict(list)
    for name, written in pairs:
        found[written].append(name)
    return {written: names for written, names in found.items() if len(names) > 1}


@pytest.mark.parametrize("write", [str, upright, plain], ids=["as given", "LaTeX", "Unicode"])
def test_every_symbol_has_a_glyph_of_its_own(write: Callable[[str], str]) -> None:
    assert not shared((name, write(entry.glyph)) for name, entry in SYMBOLS.items())


def test_no_two_symbols_of_a_run_differ_in_case_or_a_prime_only() -> None:
    """But for single letters, whose case the Megatron papers tell apart: b and B, l and L."""

    def core(glyph: str) -> str:
        text = plain(glyph).translate(TOLD_APART)
        return text if len(text) == 1 else text.casefold()

    assert not shared((entry.name, core(entry.glyph)) for entry in RUN)


def test_no_symbol_of_a_run_looks_like_another_symbol() -> None:
    """A Greek letter that prints as a Latin one does is another glyph only by what stands at it."""
    alike = shared((name, plain(entry.glyph).translate(LOOKALIKES)) for name, entry in SYMBOLS.items())
    of_runs = {entry.name for entry in RUN}
    assert not {written: names for written, names in alike.items() if of_runs & set(names)}


@pytest.mark.parametrize("write", [upright, plain], ids=["LaTeX", "Unicode"])
def test_every_formula_has_a_glyph_of_its_own(write: Callable[[str], str]) -> None:
    assert not shared((name, write(formula.glyph)) for name, formula in FORMULAS.items())


def test_a_formula_is_written_as_a_symbol_only_where_it_is_that_symbols_value() -> None:
    """Such as the banks of a memory: a formal parameter of one formula, and what another computes."""
    symbols = {plain(entry.glyph): entry for entry in SYMBOLS.values()}
    for formula in FORMULAS.values():
        symbol = symbols.get(plain(formula.glyph))
        if symbol is not None:
            assert symbol.dimension == formula.dimension, (formula.name, symbol.name)
            assert symbol.name not in formula.parameters, (formula.name, symbol.name)


@pytest.mark.parametrize("glyph", [*(e.glyph for e in SYMBOLS.values()), *(f.glyph for f in FORMULAS.values())])
def test_nothing_of_a_glyph_is_lost_on_a_terminal(glyph: str) -> None:
    """Every command has a character or is said in words, and every letter and figure is there."""
    for command in re.findall(r"\\([A-Za-z]+)", glyph):
        assert command in COMMANDS or command in ACCENTS
    letters = re.sub(r"\\[A-Za-z]+", "", glyph)
    assert all(letter in plain(glyph) for letter in re.findall(r"[A-Za-z0-9]", letters))
    assert not plain(glyph).endswith("_")
