"""The documentation's commands and examples do what they say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.effort import NIGHTLY
from support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_printed_parts_are_current() -> None:
    """Every quoted output, and the accuracy page, is what the program prints now.

    Of the rows whose hash has changed a sample is predicted here, all of them under `nightly` and by `.ci/run`.
    """
    sample = [] if NIGHTLY else ["--sample"]
    check = [sys.executable, str(ROOT / "docs" / "refresh.py"), "--check", *sample]
    done = subprocess.run(check, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path) -> None:
    """Every `>>>` example of a page prints what the page says."""
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert found.failed == 0


def test_the_readme_has_the_two_commands() -> None:
    """The README holds exactly the two command blocks that a newcomer needs; CI runs them."""
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").count("```sh\n")
    assert blocks == 2


def test_no_path_of_a_machine_is_in_a_page() -> None:
    """Pages name nothing of the machine that they were written on."""
    for page in PAGES:
        assert f"{ROOT}" not in page.read_text(encoding="utf-8")


OF_OTHERS = {"tests/test_low_latency.py"}
"""Paths of other projects."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_that_a_page_names_exist(page: Path) -> None:
    """Files of the packages and of tests, from the top folder on."""
    named = set(re.findall(r"(?<![\w/.-])(?:symperf|formulas|codegen|tests)/[\w/.-]+\.\w+", page.read_text("utf-8")))
    assert [name for name in sorted(named - OF_OTHERS) if not (ROOT / name).exists()] == []
