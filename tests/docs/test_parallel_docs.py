"""The page of architectures: every command runs, and prints what the table says, to 1 %."""

from __future__ import annotations

import json
import re

import pytest
from support.effort import some
from support.paths import ROOT

from symperf.cli import main

PAGE = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
COMMANDS = re.findall(r"^symperf (train .*)$", PAGE, re.MULTILINE)


def number(text: str) -> float:
    """The number of a cell, with its unit and spaces between thousands."""
    return float(text.replace(" ", "").removesuffix("%"))


@pytest.mark.parametrize(("command", "row"), some(zip(COMMANDS, ROWS, strict=True)), ids=str)
def test_a_command_prints_what_its_row_says(command: str, row: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    _, _, step, tokens, mfu, memory, longest = row
    assert number(step) == pytest.approx(found["time_s"], rel=0.01)
    assert number(tokens) == pytest.approx(found["tokens_per_s"], rel=0.01)
    assert number(mfu) == pytest.approx(100 * found["mfu"], rel=0.01)
    assert number(memory) == pytest.approx(found["memory_bytes"]["total"] / 1e9, rel=0.01)
    term = max(found["breakdown"], key=lambda term: term["share"])
    name, share = re.fullmatch(r"`(.*)` (\d+ %)", longest).groups()  # type: ignore[union-attr]
    assert name == term["name"]
    assert number(share) == pytest.approx(100 * term["share"], abs=1)
    assert sum(found["shares"].values()) == pytest.approx(1, rel=1e-12)
