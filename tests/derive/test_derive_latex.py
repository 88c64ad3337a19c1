"""All LaTeX of derivations compiles without a warning, with amsmath alone, and no line overflows."""

from __future__ import annotations

import itertools
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.derive_cases import ALL, PIPELINED, TRAINING, make
from support.effort import some
from support.tools import tool

from symperf.derive import derive
from symperf.derive.document import run_latex

if TYPE_CHECKING:
    from pathlib import Path

COMPLAINTS = re.compile(r"^(?:!.*|Overfull.*|Underfull.*|.*Warning.*)$", re.MULTILINE)
PLAIN = "\\documentclass{{article}}\n\\usepackage{{amsmath}}\n\\begin{{document}}\n{}\n\\end{{document}}\n"


def compiled(text: str, folder: Path) -> int:
    """Compile a document without a complaint.

    Returns:
        Its pages.
    """
    assert re.findall(r"\\usepackage\{(.*?)\}", text) == ["amsmath"]
    (folder / "page.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [tool("pdflatex"), "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert not COMPLAINTS.findall(done.stdout)
    assert done.returncode == 0
    return int(re.search(r"\((\d+) pages?", done.stdout)[1])  # type: ignore[index]


@pytest.mark.parametrize(("name", "of"), some(itertools.product(ALL, ("time", "memory")), 0.6))
def test_documents(name: str, of: str, tmp_path: Path) -> None:
    """Time and memory of five structures of training, and of inference."""
    derivation = derive(ALL[name](), of)
    assert compiled(derivation.latex(), tmp_path) >= 1
    assert compiled(PLAIN.format(derivation.fragment()), tmp_path) in (1, 2)


@pytest.mark.parametrize("name", some(TRAINING))
def test_runs(name: str, tmp_path: Path) -> None:
    """The whole closed form of a run and its table fit the class article as it is."""
    run = TRAINING[name]()
    text = run_latex(run)
    for path in run.time.terms:
        shown = re.escape(path.replace("_", r"\,")).replace("/", "/")
        words = re.sub(r"([A-Za-z]+)", r"\\\\mathrm\\{\1\\}", shown)
        assert len(re.findall(rf"& \\tau_\{{{words}\}}(?: =|\n| \\\\)", text)) == 1, path
    compiled(PLAIN.format(text), tmp_path)


@pytest.mark.parametrize("of", some(["mfu", "tokens_per_s", "model_flops", "device_seconds"]))
def test_metrics(of: str, tmp_path: Path) -> None:
    """Quantities over the time, with the time below."""
    compiled(derive(make(**PIPELINED), of).latex(), tmp_path)


@pytest.mark.parametrize(
    "question",
    [
        {"free": ["micro_batch", "memory_bandwidth"]},
        {"free": ["tp"]},
        {"term": "layer/mlp", "below": 0},
        {"below": 0},
        {"fold": ["none"], "below": 0.001},
    ],
)
def test_other_questions(question: dict[str, object], tmp_path: Path) -> None:
    """With free symbols, of a part, with every line."""
    compiled(derive(make(**PIPELINED), **question).latex(), tmp_path)  # type: ignore[arg-type]


def test_names_do_no_harm(tmp_path: Path) -> None:
    """A model's name from a file is text."""
    run = make(**PIPELINED)
    object.__setattr__(run.model, "name", r"a_b & 50 % #1 $x {y} \input{z} ~^")
    compiled(derive(run, "memory").latex(), tmp_path)


def test_units() -> None:
    """Values stand in SI units with prefixes."""
    text = run_latex(make(system="a100-40gb-sxm", **PIPELINED))
    assert r"$1.555\,\mathrm{TB/s}$" in text
    assert r"\mathrm{\mu s}" in text
