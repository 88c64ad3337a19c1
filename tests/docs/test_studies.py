"""The studies of the documentation are current, and what writes and checks them finds what is stale."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.effort import NIGHTLY
from support.study_pages import STUDIES, module

from symperf import InputError

studies, runner = module("study"), module("run")
LONG = ("factorial", "speedup")
"""Studies whose coarse rows take half a minute or more."""
MODULES = sorted(path.stem for path in STUDIES.glob("*.py"))

TOY = """
from study import Study, markdown
TITLE = "a toy"
def rows(numbers):
    return [{"name": f"n{n}", "whole": n, "third": n / 3, "none": None, "even": n % 2 == 0} for n in numbers]
def study(coarse):
    tables = {"toy": rows([2] if coarse else [1, 2, 3]), "more": rows([5])}
    return Study(tables, blocks(tables), {} if coarse else {"toy": lambda figure: figure.subplots().plot([1, 2])})
def blocks(tables):
    return {"all": markdown(["name", "third"], [[row["name"], f"{row['third']:.3f}"] for row in tables["toy"]])}
"""
PAGE = "# Toy\n\n<!-- begin all -->\n<!-- end all -->\n\n![figure](toy.svg)\n"


@pytest.fixture(name="toy")
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small study, not yet written."""
    (tmp_path / "toy.py").write_text(TOY, encoding="utf-8")
    (tmp_path / "toy.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(studies, "HERE", tmp_path)
    monkeypatch.setattr(studies, "names", lambda: ["toy"])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "toy", raising=False)
    return tmp_path


# --- the studies themselves


@pytest.mark.parametrize("name", [name for name in studies.names() if NIGHTLY or name not in LONG])
def test_the_study_is_current(name: str) -> None:
    """Its coarse rows are in its files, and its page says what they say."""
    assert runner.check(name, STUDIES) == []


@pytest.mark.parametrize("name", LONG)
def test_the_page_of_a_long_study_says_what_its_files_say(name: str) -> None:
    """Whether the files are current is asked under `nightly`: their coarse rows take minutes."""
    files = [path for path in STUDIES.glob(f"{name}*.csv") if re.fullmatch(f"{name}(_[a-z]+)?", path.stem)]
    kept = {
        path.stem.removeprefix(name).removeprefix("_") or name: studies.rows_of(studies.text_of(path), path.name)
        for path in files
    }
    assert all(studies.file_name(name, part, ".csv") in {path.name for path in files} for part in kept)
    page = studies.text_of(STUDIES / f"{name}.md")
    assert studies.filled(page, studies.load(name).blocks(kept), f"{name}.md") == page


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_modules_run(name: str) -> None:
    assert doctest.testmod(module(name)).failed == 0


def test_every_page_has_its_module_and_every_figure_its_page() -> None:
    pages = [path for path in STUDIES.glob("*.md") if path.name != "README.md"]
    assert sorted(page.stem for page in pages) == studies.names()
    for figure in STUDIES.glob("*.svg"):
        assert any(f"({figure.name})" in page.read_text(encoding="utf-8") for page in pages), figure.name
        assert "<dc:date>" not in figure.read_text(encoding="utf-8")


def test_the_index_names_every_study() -> None:
    linked = re.findall(r"\]\((\w+)\.md\)", (STUDIES / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == studies.names()


def test_a_wrong_name_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["memroy"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean memory" in error


def test_the_command_runs_from_the_root() -> None:
    command = [sys.executable, "docs/studies/run.py", "--check", "memory", "memroy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=STUDIES.parent.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("run.py: study: found 'memroy'")


# --- writing and checking


def test_what_is_written_is_current(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert runner.main(["toy"]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written == [f"{file}: written" for file in ("toy.csv", "toy_more.csv", "toy.md", "toy.svg")]
    assert (toy / "toy.csv").read_text(encoding="utf-8").splitlines()[2] == "n2,2,0.6666666667,,True"
    assert "| n3 | 1.000 |" in (toy / "toy.md").read_text(encoding="utf-8")
    before = {path.name: path.read_bytes() for path in toy.iterdir() if path.is_file()}
    assert runner.main(["--check"]) == 0
    assert runner.main([]) == 0
    assert capsys.readouterr().out == ""
    assert {path.name: path.read_bytes() for path in toy.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("toy.csv", "0.6666666667", "0.6666676", "toy.csv: stale, 1 of 1 coarse rows"),
        ("toy.csv", "n2,2", "n2,3", "toy.csv: stale"),
        ("toy.csv", "True", "False", "toy.csv: stale"),
        ("toy.csv", "third", "thrid", "toy.csv: stale"),
        ("toy.csv", "n3,3,1.0", "n3,3,1.1", "toy.md: stale"),
        ("toy.md", "0.333", "0.334", "toy.md: stale"),
    ],
)
def test_what_is_stale_is_told(
    toy: Path, file: str, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.main(["--no-figures"])
    text = (toy / file).read_text(encoding="utf-8")
    assert old in text
    (toy / file).write_text(text.replace(old, new), encoding="utf-8")
    capsys.readouterr()
    assert runner.main(["--check"]) == 1
    assert message in capsys.readouterr().out


def test_rounding_of_the_last_digits_is_not_stale(toy: Path) -> None:
    runner.main(["--no-figures"])
    text = (toy / "toy.csv").read_text(encoding="utf-8")
    (toy / "toy.csv").write_text(text.replace("0.6666666667", "0.66666667"), encoding="utf-8")
    assert runner.main(["--check"]) == 0


def test_files_too_few_or_too_many_are_told(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runner.main(["--no-figures"])
    (toy / "toy_more.csv").rename(toy / "toy_old.csv")
    capsys.readouterr()
    assert runner.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines() == ["toy_more.csv: missing", "toy_old.csv: no table"]


def test_a_coarse_study_is_written_elsewhere(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (toy / "out").mkdir()
    assert runner.main(["--coarse", str(toy / "out"), "--no-figures"]) == 0
    assert sorted(path.name for path in (toy / "out").iterdir()) == ["toy.csv", "toy_more.csv"]
    assert not (toy / "toy.csv").exists()
    assert runner.main(["--coarse", str(toy / "nowhere")]) == 2
    assert "expected a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("# Toy\n\n![figure](toy.svg)\n", "found no <!-- begin all -->"),
        (PAGE + "<!-- begin al -->\n<!-- end al -->\n", "found a place for 'al', expected one of all"),
        (PAGE.replace("toy.svg", "toys.svg"), "found no ![...](toy.svg)"),
    ],
)
def test_a_page_without_the_places_is_one_line(
    toy: Path, page: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (toy / "toy.md").write_text(page, encoding="utf-8")
    assert runner.main(["--no-figures"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("run.py: toy.md: ")
    assert message in error
    assert not (toy / "toy.csv").exists()


def test_a_module_that_lacks_a_part_is_one_line(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (toy / "toy.py").write_text("TITLE = 'x'\n", encoding="utf-8")
    assert runner.main([]) == 2
    assert capsys.readouterr().err.strip().endswith("expected TITLE, study(coarse) and blocks(tables)")


def test_an_interrupt_leaves_no_part_of_a_file(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.main(["--no-figures"])
    before = {path.name: path.read_bytes() for path in toy.iterdir() if path.is_file()}
    found = studies.load("toy")
    monkeypatch.setattr(found, "rows", lambda numbers: [{"name": n} for n in numbers])
    monkeypatch.setattr(found, "blocks", lambda tables: {"all": str(len(tables))})

    def stopped(*_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stopped)
    assert runner.main(["--no-figures"]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in toy.iterdir() if path.is_file()} == before


@pytest.mark.usefixtures("toy")
def test_figures_without_matplotlib_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda _: None)
    assert runner.main([]) == 2
    assert "pip install 'symperf[plot]'" in capsys.readouterr().err
    assert runner.main(["--no-figures"]) == 0


# --- rows


def test_rows_are_read_as_they_were_written() -> None:
    rows = [{"a": "x", "b": 3, "c": 3.0, "d": 1e-30, "e": None, "f": True, "g": float("inf"), "h": -2.5, "i": "1.2.3"}]
    read = studies.rows_of(studies.as_csv(rows))
    assert read == rows
    assert [type(value) for value in read[0].values()] == [type(value) for value in rows[0].values()]
    assert studies.rows_of(studies.as_csv([])) == []


def test_rows_are_found_whatever_their_order() -> None:
    rows: list[dict[str, Any]] = [{"a": "x", "b": float(n)} for n in range(5)]
    assert studies.missing([{"a": "x", "b": 3.0 * (1 + 1e-8)}], rows) == []
    lost = [{"a": "x", "b": 3.0 * (1 + 1e-5)}, {"a": "y", "b": 3.0}, {"a": "x", "b": None}, {"c": "x", "b": 3.0}]
    assert studies.missing(lost, rows) == lost


def test_an_unknown_study_is_refused() -> None:
    with pytest.raises(InputError, match=r"study: found 'nothing', expected one of "):
        studies.load("nothing")
