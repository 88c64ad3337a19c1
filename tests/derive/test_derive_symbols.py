"""Every glyph that a printed derivation has is one symbol, and stands in its table with value and sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support.answer_cases import STRUCTURES
from support.effort import NIGHTLY, some

from symperf.book.unicode import plain
from symperf.common.table import columns
from symperf.derive import terminal
from symperf.derive.forms import TIMES
from symperf.derive.writing import QUANTITIES, unicode_notation
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    from symperf.evaluation.base_run import BaseRun

WIDE = 10_000
"""Columns at which every line is whole, and two blanks part its columns."""
NAMES = {plain(glyph) for glyph in QUANTITIES.values()} | {"X", "x"}
"""Glyphs of quantities, which the first line of their lines defines; of parts and of what a sum runs over."""
GLYPHS = {plain(entry.glyph) for entry in SYMBOLS.values() if entry.group not in ("formal", "unit")}
FUNCTIONS = {"max", "min", "log₂", "Σ"}


def answers() -> list[tuple[str, str, bool]]:
    """Structures with a quantity, and whether the whole form is printed too."""
    every = [(name, of, of == "mfu") for of in ("time", "memory", "mfu") for name in STRUCTURES]
    return [
        (name, {"mfu": "time_per_token"}.get(of, of) if name.startswith("answers") else of, whole)
        for name, of, whole in (every if NIGHTLY else some(every, 0.1))
    ]


def printed(run: BaseRun, of: str, *, whole: bool, monkeypatch: Any) -> tuple[dict[Any, str], list[str], list[str]]:
    """What the notation of an answer wrote, the lines above the table of symbols, and the lines of the table."""
    made = []

    def keep(paths: Any) -> Any:
        made.append(unicode_notation(paths))
        return made[-1]

    monkeypatch.setattr(terminal, "unicode_notation", keep)
    above, _, table = terminal.text(run.derive(of), WIDE, whole=whole).rpartition("\nSymbols\n")
    written = {symbol: plain(glyph) for symbol, glyph in made[0].written.items()}
    return written, above.splitlines(), table.splitlines()


def glyphs(text: str) -> set[str]:
    """What stands between the signs of an equation: no numbers, no functions, no powers."""
    tokens = re.split(r"[\s()\[\]⌈⌉,;{}·≥≤=>…−√]+", text)
    bare = {re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+$|\^$", "", token) for token in tokens}
    return {token for token in bare if not re.fullmatch(r"[+/]?|[\d.]+(e[+-]?\d+)?|[a-z_]+(/[a-z_0-9]+)+", token)}


@pytest.mark.parametrize(("name", "of", "whole"), answers())
def test_a_glyph_is_one_symbol_and_in_the_table(name: str, of: str, whole: bool, monkeypatch: Any) -> None:
    written, above, table = printed(STRUCTURES[name](), of, whole=whole, monkeypatch=monkeypatch)
    assert len(set(written.values())) == len(written)
    rows = [row.split() for row in table]
    listed = {row[0]: row[1] for row in rows}
    assert len(listed) == len(rows)
    for symbol, glyph in written.items():
        if symbol.name in SYMBOLS or symbol in TIMES:
            assert listed.pop(glyph) == symbol.name
        else:
            assert glyph == f"τ[{symbol.name}]"
    assert listed.keys() <= {"τ[path]"}
    everywhere = "\n".join(above)
    known = set(written.values()) | NAMES | FUNCTIONS | {"τ"}
    for glyph in (glyph for glyph in written.values() if not whole and not glyph.startswith("τ[")):
        assert re.search(rf"(?<![\w′]){re.escape(glyph)}(?![\w′])", everywhere), glyph
    for line in above:
        if found := re.match(r" *[\d.]+ %  [=+] (.*?)(?:   *|$)", line):
            told = glyphs(found[1]) - known
            assert not {each for each in told if not re.fullmatch(r"[a-zA-Z/]*", each) or found[1][:1].isalpha()}, line
    marked = set(re.findall(r"(?<![\w/])[^\W\d]′?_[A-Za-zα-ω\d+]+|[α-ωΑ-Ω][A-Za-zα-ω\d_′]*", everywhere))
    assert not (marked & GLYPHS if whole else marked) - known


def test_quantities_have_glyphs_of_their_own() -> None:
    """None is written as a symbol of a run."""
    times = {"T" if term is None else f"T_{term}" for term in TIMES.values()}
    assert not GLYPHS & ({plain(glyph) for glyph in QUANTITIES.values()} | times)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_sentence_is_dropped_and_no_line_is_too_wide(width: int) -> None:
    derivation = STRUCTURES["hybrid sharding"]().derive()
    text = derivation.unicode(width)
    assert max(map(columns, text.splitlines())) <= width
    found = "".join(text.split())
    wide = derivation.unicode(WIDE)
    assert all(word in found for word in wide.split())
    for name in ("zero_shards", "head_dim", "ridge_efficiency", "sustained_efficiency"):
        told = "".join(SYMBOLS[name].sentence.split())
        assert (told in found) == (f" {name} " in wide)
