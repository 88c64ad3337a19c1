"""The page in headless Chromium, where there is one: it answers, without a word on the console."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

import symperf as sf
from symperf.explore.explorer import Explorer
from symperf.runs.inference_run import InferenceRun

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--dump-dom"),
)
MODEL, SYSTEM = "llama-2-7b", "h100-sxm"
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of inference."""
    explorer = Explorer([sf.Model.load(MODEL)], [sf.System.load(SYSTEM)], sf.Plan(), kinds=("infer",))
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(explorer.html(), encoding="utf-8")
    return path


def _open(page: Path, address: str, folder: Path) -> tuple[str, str]:
    """What a browser makes of the page at an address, as markup, and what it says on the console."""
    assert BROWSER is not None
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder}", f"file://{page}{address}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, "\n".join(said)


def test_a_link_gives_its_configuration_and_pythons_numbers(page: Path, tmp_path: Path) -> None:
    """Of tp = 2 and 32 sequences; every view has drawn."""
    dom, said = _open(page, "#a=infer&a.tp=1&a.batch=32&a.prompt=512", tmp_path)
    assert said == ""
    run = InferenceRun(sf.Model.load(MODEL), sf.System.load(SYSTEM), sf.Plan(tp=2), batch=32, prompt=512, generate=256)
    cells = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', dom))
    assert cells["Prefill (TTFT)"] == f"{run.value('prefill') * 1e3:.3g} ms"
    assert cells["Time per token"] == f"{run.value('time_per_token') * 1e3:.3g} ms"
    for name in ("shares", "operations", "memory", "symbols"):
        assert re.search(rf'<div id="{name}"><', dom), name
    assert 'role="alert" hidden' in dom


def test_a_configuration_that_cannot_be_says_why(page: Path, tmp_path: Path) -> None:
    """In the words of the command line; an address of nonsense is left aside."""
    dom, said = _open(page, "#a=infer&a.dp=16&a.batch=7&a.tp=99&b=x&a.prompt=1e999", tmp_path)
    assert said == ""
    assert "batch: 7 sequences are not divisible by dp x micro_batch = 16 x 1 = 16" in html.unescape(dom)
