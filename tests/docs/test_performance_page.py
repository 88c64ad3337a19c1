"""The page of speeds is written of what was measured, and says what was not; parts of it can be measured anew."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = ("performance_page", "performance", "performance_opponents", "bench_startup")
SOFTWARE = {"python": "3.11.7", "sympy": "1.14", "numpy": "2.4", "numba": "0.62", "compiler": "GCC 12.2.0"}
MACHINE = {"processor": "Some Processor", "processors": 2, "vectors": "AVX2", "memory_bytes": 8 * 2**30, **SOFTWARE}
RATES = {"grid": 200.0, "every": 150.0, "c": 100.0, "numpy_open": 1.5}
GRID = {**RATES, "grid_cpu_ns": 10.0, "every_cpu_ns": 13.0, "c_cpu_ns": 20.0, "numpy_open_cpu_ns": 700.0}
ROW = {"what": "train", "command": "symperf train", "warm_cpu_s": 0.5, "to_sympy": 1.5, "warm_wall_s": 0.6}
SPACE = {"what": "64 devices", "considered": 60_000_000, "legal": 4_500_000, "feasible": 1_000}
FIGURES: dict[str, Any] = {
    "commands": {
        "import_sympy_cpu_s": 0.34,
        "rows": [{**ROW, "cold_cpu_s": 1.6, "cold_wall_s": 1.7, "cold_peak_bytes": 2.5e8, "warm_peak_bytes": 1e8}],
    },
    "grids": {
        "grid": [{"axes": ["tp", "sequence"], **GRID, "to_c": 1.54}],
        "hand": {"grid": 5.0, "c": 4.0, "grid_cpu_ns": 0.5, "c_cpu_ns": 0.7, "to_c": 1.4},
    },
    "points": {"top": [{"points": 10**9, "seconds": 4.0, "peak_bytes": 158_000_000}]},
    "processors": [
        {"threads": 1, "points": 10**8, "wall_s": 2.0, "cpu_s": 2.0},
        {"threads": 2, "points": 10**8, "wall_s": 1.1, "cpu_s": 2.2},
    ],
    "scattered": [{"route": "NumPy", "points": 65_536, "cpu_ns_per_point": 2_000.0}],
    "spaces": [{**SPACE, "cpu_s": 1.5, "wall_s": 0.8}],
    "predictions": [{"layers": 1536, "devices": 64, "cpu_s": 0.0013, "step_s": 213.4}],
    "opponents": {"versions": {"llm-analysis": None, "aiconfigurator": None}, "rows": []},
}
MEASURED = {"date": "2026-11-30", "version": "0.2.0", "load": 0.25, "took_s": 12.0}


@pytest.fixture(name="module")
def _module() -> Iterator[Any]:
    folders = [str(ROOT / "docs"), str(ROOT / "benchmarks")]
    sys.path[:0] = folders
    try:
        yield importlib.import_module
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for name in MODULES:
            sys.modules.pop(name, None)


def _results(**changed: Any) -> dict[str, Any]:
    figures = {**FIGURES, **changed}
    return {"machine": MACHINE, "parts": {name: {**MEASURED, "figures": each} for name, each in figures.items()}}


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_the_page_has_each_part_and_the_machine_and_what_each_number_is(module: Any) -> None:
    text = module("performance_page").page(_results())
    assert "Measured on 2 cores of what the system calls Some Processor (AVX2), 8 GiB; Python 3.11.7" in _flat(text)
    assert text.count("\n## ") == len(FIGURES)
    for line in (
        "| train | 0.500 | 1.50 | 0.600 | 1.60 | 1.70 | 250 |",
        "| tp, sequence | 200 | 150 | 100 | 1.50 | 10.0 | 13.0 | 20.0 | 700 | 1.54 |",
        "| a tile of a product: groups, rows, inner, columns | 5.00 | – | 4.00 | – | 0.500 | – | 0.700 | – | 1.40 |",
        "| 1,000,000,000 | 4.00 | 250 | 4.00 | 158 |",
        "| 2 | 1.10 | 1.82 | 2.20 | 90.9 |",
        "| NumPy | 2,000 | 0.500 |",
        "| 64 devices | 60,000,000 | 4,500,000 | 1,000 | 1.50 | 0.800 | 40.0 | 3.00 |",
        "| 1,536 | 64 | 1.30 | 213 |",
    ):
        assert f"{line}\n" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(("|", "symperf "))) <= 120


def test_tools_that_were_not_there_are_named_and_those_that_were_stand_beside_symperf(module: Any) -> None:
    page = module("performance_page").page
    assert "Not installed in this run, so not measured: llm-analysis, aiconfigurator." in _flat(page(_results()))
    both = [
        {"question": "a search", "tool": "symperf", "cpu_s": 2.0, "wall_s": 1.5, "peak_bytes": 2e8},
        {"question": "a search", "tool": "aiconfigurator", "cpu_s": 5.0, "wall_s": 6.0, "peak_bytes": 4e8},
    ]
    versions = {"llm-analysis": None, "aiconfigurator": "0.12.0"}
    text = page(_results(opponents={"versions": versions, "rows": both}))
    assert "Versions: aiconfigurator 0.12.0. Not installed in this run, so not measured: llm-analysis." in _flat(text)
    assert "| a search | aiconfigurator | 5,000 | 6,000 | 400 | 2.50 |" in text


def test_a_part_that_was_not_measured_is_missing(module: Any) -> None:
    results = _results()
    del results["parts"]["grids"]
    assert module("performance_page").missing(results) == ["grids"]
    assert module("performance_page").missing(_results()) == []


def test_what_is_measured_is_what_the_page_tells(module: Any) -> None:
    told = set(module("performance_page").TOLD)
    assert told == set(FIGURES) == set(module("performance").parts(None)) == set(module("performance_page").TABLES)
    assert told == set(module("performance_page").SAID)


def test_what_starts_commands_is_measured_before_this_process_grows(module: Any) -> None:
    """A process counts the memory of the one that starts it as its own."""
    names = list(module("performance").parts(None))
    assert names[:4] == ["commands", "grids", "points", "opponents"]
    loaded = "import sys; import performance, performance_opponents; print({'numpy', 'sympy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT / "benchmarks", capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_the_page_that_is_there_is_that_of_what_was_kept(module: Any) -> None:
    results, page = ROOT / "docs" / "performance" / "results.json", ROOT / "docs" / "performance.md"
    assert results.exists() == page.exists()
    if results.exists():
        kept = json.loads(results.read_text(encoding="utf-8"))
        assert module("performance_page").missing(kept) == []
        assert page.read_text(encoding="utf-8") == module("performance_page").page(kept)


def test_a_command_is_measured_with_what_it_prints_and_a_failure_is_one(module: Any, tmp_path: Any) -> None:
    measure = module("bench_startup").measure
    found = measure([sys.executable, "-c", "print(sum(range(10**6)))"], str(tmp_path))
    assert found.output == "499999500000\n"
    assert 0 < found.cpu < 60
    assert found.peak_bytes > 10**6  # at least what this process has had, which Linux counts as its child's
    with pytest.raises(subprocess.CalledProcessError) as caught:
        measure([sys.executable, "-c", "raise SystemExit('of no use')"], str(tmp_path))
    assert caught.value.stderr == "of no use\n"


def test_a_part_measured_anew_leaves_the_others_and_those_of_another_machine_do_not_mix(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    script = module("performance")
    now = {**MACHINE}
    file = tmp_path / "performance" / "results.json"
    figures = {**FIGURES}
    for name, value in (("RESULTS", file), ("PAGE", tmp_path / "page.md"), ("ROOT", tmp_path)):
        monkeypatch.setattr(script, name, value)
    monkeypatch.setattr(script, "parts", lambda _: {name: lambda _, each=each: each for name, each in figures.items()})
    monkeypatch.setattr(script, "machine", lambda: dict(now))
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path))

    def measure(*words: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["performance.py", *words])
        script.main()
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["parts"]
        return found

    assert list(measure("--only", "points")) == ["points"]
    with pytest.raises(SystemExit):
        measure("--write", "--only", "none")
    assert "not measured yet: commands, grids" in capsys.readouterr().err
    before = measure("--write")
    assert (tmp_path / "page.md").read_text(encoding="utf-8").count("## ") == len(FIGURES)
    figures["points"] = {"top": []}
    after = measure("--write", "--only", "points")
    assert {name for name in after if after[name]["figures"] != before[name]["figures"]} == {"points"}
    now["processors"] = 3
    with pytest.raises(SystemExit):
        measure("--only", "points")
    assert "is of another machine: measure all anew" in capsys.readouterr().err
    assert set(measure()) == set(FIGURES)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--only", "gird"], "--only: found gird, expected some of commands, grids"),
        (["--opponents", "nowhere/python"], "--opponents: no file nowhere/python, expected an interpreter"),
    ],
)
def test_bad_words_are_told_in_a_line(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["performance.py", *words])
    with pytest.raises(SystemExit) as caught:
        module("performance").main()
    assert caught.value.code == 2
    assert told in capsys.readouterr().err
