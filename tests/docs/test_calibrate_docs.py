"""The quoted example of docs/calibration.md is what the command prints."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

from symperf.measuring.columns import KINDS

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")
DOCS = ROOT / "docs"
PAGE = (DOCS / "calibration.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```sh\n(symperf calibrate docs[^\n]*)\n```\n\n```text\n(.*?)```", re.DOTALL)


def test_the_example(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed table, on the file that comes with the page."""
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCS / "calibration_h100.csv", tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    found = EXAMPLE.search(PAGE)
    assert found is not None
    done = call(found[1].split()[1:])
    assert done.code == 0, done.err
    assert [line.rstrip() for line in done.out.splitlines()] == found[2].splitlines()


def test_every_kind_is_described() -> None:
    for kind in KINDS:
        assert f"| `{kind}` |" in PAGE
