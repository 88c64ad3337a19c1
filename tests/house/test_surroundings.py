"""Tests do not depend on how they were started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.paths import ROOT

INSIDE = """
import signal, subprocess, sys

def test_inside():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    child = "import signal; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    assert subprocess.run([sys.executable, "-c", child]).returncode == 0
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_ignored_interrupt_is_heard_again(tmp_path_factory: pytest.TempPathFactory, workers: str) -> None:
    """A shell that ignores SIGINT hands that on to all children; tests of interrupts would wait for ever."""
    folder = tmp_path_factory.mktemp("inside")
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_inside.py").write_text(INSIDE, encoding="utf-8")
    command = f"trap '' INT; exec {sys.executable} -m pytest -q -n {workers} -p no:cacheprovider {folder}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
