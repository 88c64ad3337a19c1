"""The commands of docs/bottlenecks.md print what its excerpts quote; `docs/refresh.py` has the rest."""

from __future__ import annotations

import re
import shlex

import pytest
from support.effort import some
from support.paths import ROOT

from symperf.cli import main

QUOTED = re.compile(r"```sh\n(symperf [^\n]*)\n```\n\n```text excerpt\n(.*?)```\n", re.DOTALL)
EXAMPLES = QUOTED.findall((ROOT / "docs" / "bottlenecks.md").read_text(encoding="utf-8"))


def test_the_page_has_the_textbooks_crossovers() -> None:
    assert len(EXAMPLES) >= 9


@pytest.mark.parametrize(("command", "quoted"), some(EXAMPLES, 0.25), ids=lambda text: str(text)[:60])
def test_commands_print_what_is_quoted(command: str, quoted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every quoted line is part of the answer, however lines are broken."""
    assert main(shlex.split(command)[1:]) == 0
    printed = f" {' '.join(capsys.readouterr().out.split())} "
    for line in filter(None, quoted.splitlines()):
        assert f" {' '.join(line.split())} " in printed
