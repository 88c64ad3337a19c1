"""The page of memory: every command runs, and prints what its row of the table says, to 1 %."""

from __future__ import annotations

import json
import re

import pytest
from support.effort import some
from support.paths import ROOT

from symperf.cli import main

PAGE = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
COMMANDS = re.findall(r"^symperf (train .*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("command", "row"), some(zip(COMMANDS, ROWS, strict=True)), ids=str)
def test_a_command_prints_what_its_row_says(command: str, row: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    memory = found["memory_bytes"]
    sizes = [memory[name] / 1e9 for name in ("weights", "optimizer", "activations", "total")]
    sizes.append(found.get("host_memory_bytes", {}).get("total", 0.0) / 1e9)
    assert float(row[2]) == pytest.approx(found["time_s"], rel=0.01)
    assert [float(cell) for cell in row[3:]] == pytest.approx(sizes, rel=0.01, abs=0.051)
    assert max(stage["memory_bytes"]["total"] for stage in found["stages"]) == pytest.approx(memory["total"], rel=1e-5)


def test_every_flag_of_the_page_is_in_a_command() -> None:
    """The options that the page speaks of are run."""
    text = "\n".join(COMMANDS)
    for word in (
        *("adam-8bit", "adam-4bit", "adafactor", "sgd-momentum", "muon", "fp8", "--recompute-layers"),
        *("--recompute-modules", "--offload", "--nvme", "--set"),
    ):
        assert word in text
