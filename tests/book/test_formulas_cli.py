"""`symperf formulas` and `symperf cite`."""

from __future__ import annotations

import contextvars
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.effort import some
from support.tools import tool

from symperf.book.used import used_formulas
from symperf.cli.cite import RUNS
from symperf.formulas.registry import load
from symperf.formulas.sources import SOURCES
from symperf.models.model import Model
from symperf.plans.plan import Plan
from symperf.runs.training_run import Run
from symperf.systems.system import System
from symperf.train.build import build, step_tree

if TYPE_CHECKING:
    from pathlib import Path

FORMULAS = load()
RUN = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--tp", "8", "--batch", "8", "--sequence", "2048"]


def output(call: Any, *arguments: str) -> str:
    code, out, err = call(arguments)
    assert (code, err) == (0, "")
    return str(out)


def data(call: Any, *arguments: str) -> Any:
    return json.loads(output(call, *arguments, "--json"))


def test_the_list_has_every_formula_under_its_page(call: Any) -> None:
    out = output(call, "formulas")
    listed = re.findall(r"^  (\w+)  ", out, re.MULTILINE)
    assert sorted(name for name in listed if name in FORMULAS) == sorted(FORMULAS)
    assert out.startswith("Roofline\n")
    rows = data(call, "formulas")["formulas"]
    assert [row["name"] for row in rows] == [name for name in listed if name in FORMULAS]
    assert {"name", "title", "page", "glyph", "latex_glyph", "unit", "sentence", "source"} == set(rows[0])


@pytest.mark.parametrize("name", some(FORMULAS))
def test_one_formula(call: Any, name: str) -> None:
    """Sentence, equation, symbols, assumptions, source and proofs; no line is wider than the terminal."""
    out = output(call, "formulas", name)
    words = " ".join(out.split())
    formula = FORMULAS[name]
    assert out.startswith(name)
    assert formula.sentence.replace("`", "") in words
    assert re.search(r" =( |$)", out, re.MULTILINE)
    for parameter in formula.parameters:
        assert re.search(rf"\b{parameter}\b", out)
    assert f"[{formula.source}]" in words
    assert max(map(len, out.splitlines())) <= 120 + out.count("\N{COMBINING LOW LINE}")
    assert all(word in out for word in ("assumes", "source"))
    assert "rises with" in out or not formula.increasing - {"flop"}


def test_a_formula_on_the_terminal(call: Any) -> None:
    out = output(call, "formulas", "ring_all_reduce_time")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "ring_all_reduce_time  T_ar^ring in s"
    assert "  T_ar^ring(n_b, q, β_l, α, ν_b) = 2 (n_b + ν_b) (q − 1) / (q β_l) + 2 α (q − 1)" in lines
    assert "  rises with  q: q − 1 ↑, (q − 1) / q ↑." in lines
    assert any(line.startswith("  Reference only: the literature's form") for line in lines)
    assert "  falls with  β_l: by reciprocals." in lines


def test_a_formula_as_json(call: Any) -> None:
    found = data(call, "formulas", "roofline_time")
    assert found["latex"].startswith(r"T_{\mathrm{roof}}(W_f, Q, R, R_b) = \max")
    assert found["equation"] == "max(T_traffic, T_work)"
    assert found["calls"] == ["traffic_time", "work_time"]
    assert [row["name"] for row in found["symbols"]] == ["work_flops", "traffic_bytes", "rate", "bandwidth"]
    proofs = {claim["symbol"]: claim for claim in found["claims"]}
    assert proofs["rate"]["direction"] == "falls"
    assert "a reciprocal power, which turns the direction" in proofs["rate"]["proof"]
    assert found["bibtex"] == SOURCES["williams2009"]


def test_latex(call: Any) -> None:
    assert output(call, "formulas", "work_time", "--latex") == "T_{\\mathrm{work}}(W_f, R) = \\frac{W_f}{R}\n"
    out = output(call, "formulas", "--latex")
    assert sorted(re.findall(r"^% (\w+)$", out, re.MULTILINE)) == sorted(FORMULAS)
    assert all("latex" in row for row in data(call, "formulas", "--latex")["formulas"])


@pytest.mark.parametrize(
    ("kind", "begin"), [("tex", b"% The formulas"), ("md", b"# Formulas"), ("html", b"<!DOCTYPE"), ("pdf", b"%PDF-")]
)
def test_a_book_is_written(call: Any, tmp_path: Path, kind: str, begin: bytes) -> None:
    if kind == "pdf":
        tool("pdflatex")
    path = tmp_path / f"book.{kind}"
    assert output(call, "formulas", "work_time", f"--{kind}", str(path)) == f"wrote {path}\n"
    assert path.read_bytes().startswith(begin)
    found = data(call, "formulas", "work_time", f"--{kind}", str(path))
    assert (found["written"], found["bytes"]) == (str(path), path.stat().st_size)
    assert found.keys() == {"written", "bytes", "schema", "constants_version"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            "formulas ring_all_reduce_tme",
            "formulas: unknown formula 'ring_all_reduce_tme'; did you mean ring_all_reduce_",
        ),
        ("formulas zzz", "formulas: unknown formula 'zzz', expected one that `symperf formulas` shows"),
        ("formulas zzz --latex", "formulas: unknown formula 'zzz', expected one"),
        ("formulas zzz --md x.md", "formulas: unknown formula 'zzz', expected one"),
        ("formulas --pdf a --tex b", "formulas: argument --tex: not allowed with argument --pdf"),
        ("formulas --md", "formulas: argument --md: expected one argument"),
        ("formulas --md no/such/folder/x", "formulas: --md: cannot write 'no/such/folder/x': No such file"),
        ("formulas work_time work_time", "formulas: unknown argument 'work_time'"),
        ("formulas --htm x", "formulas: unknown argument '--htm'; did you mean --html"),
        ("cite work_tme", "cite: unknown formula 'work_tme'; did you mean work_time"),
        ("cite zzz", "cite: unknown formula 'zzz', expected a formula, a key of a source, train"),
        ("cite list models", "cite: found 'list', expected train"),
        ("cite train gpt2", "train: the following arguments are required: -s/--system, --batch"),
        ("cite work_time train gpt2", "cite: found 'work_time' beside a run"),
        ("cite --all work_time", "cite: found 'work_time' beside --all"),
        ("cite work_time " + " ".join(RUN), "cite: found 'work_time' beside a run"),
        ("cite --all " + " ".join(RUN), "cite: found --all beside a run"),
        ("cite train gpt-22b --foo", "train: unknown argument '--foo'"),
        ("cite " + " ".join([*RUN, "--tp", "7"]), ""),
    ],
)
def test_bad_input_is_one_line(call: Any, arguments: str, line: str) -> None:
    code, out, err = call(arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"symperf: {line}")
    assert err.count("\n") == 1


def test_without_pdflatex(call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = call(["formulas", "--pdf", str(tmp_path / "x.pdf")])
    assert (code, out) == (2, "")
    assert "texlive-latex-base" in err
    assert list(tmp_path.iterdir()) == []


def keys(bibtex: str) -> list[str]:
    return re.findall(r"^@\w+\{(.*),$", bibtex, re.MULTILINE)


def test_cite_alone_is_the_program_and_its_method(call: Any) -> None:
    assert keys(output(call, "cite")) == ["symperf", "kundu2024"]
    assert list(data(call, "cite")["sources"]) == ["symperf", "kundu2024"]


def test_cite_a_formula_or_a_source(call: Any) -> None:
    assert output(call, "cite", "work_time") == f"% work_time\n{SOURCES['williams2009']}\n"
    assert output(call, "cite", "kundu2024") == f"{SOURCES['kundu2024']}\n"
    assert data(call, "cite", "work_time")["formulas"] == [{"name": "work_time", "source": "williams2009"}]
    assert data(call, "cite", "kundu2024")["formulas"] == []


def test_cite_all(call: Any) -> None:
    assert keys(output(call, "cite", "--all")) == sorted({formula.source for formula in FORMULAS.values()})


def called(run: Run) -> set[str]:
    """Formulas that Python's profiler sees being called while a run is built, of any depth."""
    seen: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "formulas" in frame.f_code.co_filename and frame.f_code.co_name in FORMULAS:
            seen.add(frame.f_code.co_name)

    step_tree.cache_clear()
    sys.setprofile(note)
    try:
        contextvars.Context().run(build, run.structure)  # in which no formula is remembered
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("flags", some(["", "--attention flash", "--pp 2 --vpp 2 --dp 2 --zero 1", "--recompute full"]))
def test_cite_tells_exactly_the_formulas_of_a_run(call: Any, flags: str) -> None:
    fields = dict(zip(*[iter(flags.replace("--", "").split())] * 2, strict=True))
    plan = Plan(tp=8, **{name: int(value) if value.isdigit() else value for name, value in fields.items()})  # type: ignore[arg-type]
    run = Run(Model.load("gpt-22b"), System.load("a100-80gb-sxm"), plan, batch=8, sequence=2048)
    found = data(call, "cite", *RUN, *flags.split())
    names = {row["name"] for row in found["formulas"]}
    assert names == called(run)
    assert set(found["sources"]) == {FORMULAS[name].source for name in names}
    assert keys(output(call, "cite", *RUN, *flags.split())) == sorted(found["sources"])


def test_what_a_run_cites_depends_on_its_structure(call: Any) -> None:
    def names(*flags: str) -> set[str]:
        return {row["name"] for row in data(call, "cite", *RUN, *flags)["formulas"]}

    assert "flash_time" not in names("--attention", "eager")
    assert "flash_time" in names("--attention", "flash")
    other = ("-s", "h800-sxm")  # whose collectives were not measured
    assert "group_reduce_scatter_time" in names(*other, "--zero", "1") - names(*other)


def test_an_inference_is_cited(call: Any) -> None:
    run = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "200", "--generate", "200"]
    names = {row["name"] for row in data(call, "cite", *run)["formulas"]}
    assert "kv_cache_bytes" in names
    assert "adam_bytes" not in names
    assert data(call, "cite", *run) == data(call, "cite", *run)


def test_a_method_cites_the_formulas_of_all_that_it_runs(call: Any) -> None:
    """The passes of each of its models, and the generation."""

    def names(*flags: str) -> set[str]:
        return {row["name"] for row in data(call, "cite", *RUN, *flags)["formulas"]}

    assert "adam_bytes" in names("--method", "grpo", "--prompt", "1024")
    assert "kv_cache_bytes" in names("--method", "grpo", "--prompt", "1024") - names("--method", "dpo")


def test_flags_of_cite_stand_before_the_run_and_those_of_the_run_after(call: Any) -> None:
    assert json.loads(output(call, "cite", "--json", *RUN)) == data(call, "cite", *RUN)
    assert output(call, "cite", *RUN, "--set", "tp=8") == output(call, "cite", *RUN)


def test_a_recording_is_not_spoilt_by_what_was_built_before() -> None:
    run = Run(Model.load("gpt-22b"), System.load("a100-80gb-sxm"), Plan(tp=8), batch=8, sequence=2048)
    build(run.structure)
    assert {formula.name for formula in used_formulas(lambda: RUNS and build(run.structure))} < called(run)


WARM = """
import sys
from symperf.cli import main
code = main(sys.argv[1:])
print(sorted({"sympy", "numba", "numpy", "rich", "jinja2"} & sys.modules.keys()), file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["cite"], ["cite", *RUN]], ids=["help", "cite", "a run"])
def test_a_second_time_needs_no_sympy(call: Any, arguments: list[str]) -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-c", WARM, *arguments], capture_output=True, text=True, check=False, env={**os.environ}
        )
        for _ in range(2)
    )
    assert (second.returncode, second.stderr) == (0, "[]\n")
    assert first.stdout == second.stdout == output(call, *arguments)
