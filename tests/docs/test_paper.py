"""The paper says the numbers that its script prints, cites what is in its bibliography, and its figures are there."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

sys.path.insert(0, str(ROOT / "paper"))
import figures

PAPER = ROOT / "paper"
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (PAPER / "paper.bib").read_text(encoding="utf-8")
BLOCKS = re.compile(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", re.DOTALL)


def test_its_numbers_are_those_of_the_script() -> None:
    assert figures.written(TEXT) == TEXT


def test_a_number_that_was_changed_by_hand_is_stale() -> None:
    """In every block, whatever digit it is."""
    for block in BLOCKS.finditer(TEXT):
        digit = max(match.start() for match in re.finditer(r"\d", block[0])) + block.start()
        changed = f"{TEXT[:digit]}{(int(TEXT[digit]) + 1) % 10}{TEXT[digit + 1 :]}"
        assert changed != TEXT
        assert figures.written(changed) == TEXT


def test_no_result_stands_outside_the_blocks() -> None:
    """What is written by hand has no number with a unit, no percentage, no count of thousands."""
    by_hand = BLOCKS.sub("", TEXT.partition("# Summary")[2])
    assert re.findall(r"\d[\d.,]* ?(?:%|s\b|ms\b|GB|GiB)|\d,\d{3}|\d+\.\d+", by_hand) == [
        "1.25"
    ]  # the band of the figure


def test_a_paper_without_its_places_is_told() -> None:
    with pytest.raises(SystemExit, match=r"paper\.md: found 0 places for 'catalogue', expected 1"):
        figures.written("no blocks")


def test_the_numbers_are_those_of_the_table_of_predictions() -> None:
    """Counted again in another way."""
    scored = figures.rows()
    errors = sorted(abs(float(row["predicted"]) / float(row["measured"]) - 1) for row in scored)
    middle = (errors[(len(errors) - 1) // 2] + errors[len(errors) // 2]) / 2
    assert f"{len(scored):,} published measurements" in TEXT
    shown = re.search(r"median absolute error is ([\d.]+) %", TEXT)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(100 * middle, abs=0.06)


def test_everything_cited_is_in_the_bibliography_and_the_other_way_round() -> None:
    keys = set(re.findall(r"^@\w+\{([\w-]+),", BIBLIOGRAPHY, re.MULTILINE))
    assert set(re.findall(r"@([a-z]+\d{4})", TEXT)) == keys


def test_entries_are_whole() -> None:
    for entry in re.split(r"\n(?=@)", BIBLIOGRAPHY.strip()):
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = ", entry, re.MULTILINE))
        assert entry.count("{") == entry.count("}")


def test_it_has_the_form_of_the_journal() -> None:
    head = TEXT.split("---\n")[1]
    for key in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{key}:", head, re.MULTILINE)
    headings = re.findall(r"^# (.+)$", TEXT, re.MULTILINE)
    assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
    assert headings[-1] == "References"
    assert 500 < len(TEXT.split()) < 1750


def test_its_figures_are_there_and_have_a_function_that_draws_them() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    assert set(shown) == set(figures.FIGURES)
    for name in shown:
        assert (PAPER / name).read_bytes().startswith(b"\x89PNG")


def test_the_script_checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["figures.py", "--check"])
    assert figures.main() == 0
    stale = tmp_path / "paper.md"
    stale.write_text(TEXT.replace("published measurements", "measurements"), encoding="utf-8")
    monkeypatch.setattr(figures, "PAPER", stale)
    assert figures.main() == 1
    assert capsys.readouterr().out == "paper/paper.md: stale\n"
