"""All LaTeX of derivations compiles without a warning, with amsmath alone, and no line overflows."""

from __future__ import annotations

import itertools
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.derive_cases import ALL, PIPELINED, TRAINING, generation, make
from support.effort import some
from support.tools import tool

from symperf.book.equation import called_formulas
from symperf.derive import derive
from symperf.derive.document import run_latex
from symperf.derive.whole import shown_definitions, used_formulas
from symperf.formulas.language.formula import REGISTRY
from symperf.formulas.language.named_calls import calls_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from symperf.evaluation.base_run import BaseRun

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


MORE: dict[str, Callable[[], BaseRun]] = {
    "experts": lambda: make("mixtral-8x7b", "h100-sxm", tp=2, ep=8, dp=8, sequence_parallel=True),
    "latent, in 8 bits": lambda: make("deepseek-v3", "h100-sxm", 2048, tp=1, ep=64, dp=64, precision="fp8", zero=1),
    "recurrent": lambda: make("mamba-2.8b", "h100-sxm", dp=8),
    "bidirectional": lambda: make("llama-2-70b", "h100-sxm", 256, tp=8, pp=4, dp=2, schedule="dualpipe"),
    "latent generation": lambda: generation("deepseek-v3", "h100-sxm", tp=16),
    "windows": lambda: generation("mistral-7b", "h100-sxm", generate=5000),
}
"""Structures of other kinds."""
PAGES = {"latent, in 8 bits": 29}
"""Pages of longer documents: two kinds of layers, modules of further tokens and casts in one step."""
DOCUMENTS = [*itertools.product(ALL, ("time", "memory")), *((name, "time") for name in MORE)]


@pytest.mark.parametrize(("name", "of"), some(DOCUMENTS, 0.3))
def test_documents(name: str, of: str, tmp_path: Path) -> None:
    """Time and memory of five structures of training, and of inference; the time of six of other kinds."""
    derivation = derive(({**ALL, **MORE})[name](), of)
    text = derivation.latex()
    assert "X_{" not in text
    assert compiled(text, tmp_path) <= PAGES.get(name, 18 if name in MORE else 9)
    assert compiled(PLAIN.format(derivation.fragment()), tmp_path) in (1, 2)


def test_the_step_of_gpt_3_takes_six_pages(tmp_path: Path) -> None:
    assert compiled(derive(make(tp=8, pp=8)).latex(), tmp_path) <= 6


def test_every_formula_is_defined_once() -> None:
    """Each that a definition calls, and each that one of these calls, with the name that the book has it under."""
    derivation = derive(make(tp=8, pp=8))
    text = derivation.latex()
    shown = shown_definitions(derivation)
    used = {formula.name for formula in used_formulas(shown)}
    assert {call.formula.name for _, form in shown for call in calls_in(form)} <= used
    assert {called.name for name in used for called in called_formulas(REGISTRY[name])} <= used
    tags = re.findall(r"\\tag\*\{\\footnotesize\\texttt\{(.*?)\}\}", text)
    assert sorted(tag.replace(r"\_\allowbreak{}", "_") for tag in tags) == sorted(used)


@pytest.mark.parametrize("name", some(TRAINING))
def test_runs(name: str, tmp_path: Path) -> None:
    """The whole closed form of a run and its table fit the class article as it is; each term is defined."""
    run = TRAINING[name]()
    text = run_latex(run)
    for path in run.time.terms:
        words = re.sub(r"([A-Za-z]+)", r"\\mathrm{\1}", path.replace("_", r"\,"))
        assert rf"\tau_{{{words}}} = " in text or rf"\tau_{{{words}}} \\" in text, path
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
