"""`--plot` of the verbs: the numbers of the picture are those of `--json`, and the command stands below."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.picture_checks import tables

from symperf.cli.parser import build

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("matplotlib")
TRAIN = ["train", "gpt-22b", "-s", "a100-80gb-sxm", "--tp", "8", "--pp", "2", "--batch", "8", "--sequence", "2048"]
INFER = ["infer", "llama-2-7b", "-s", "h100-sxm", "--batch", "1", "--prompt", "100", "--generate", "20"]
SERVE = ["serve", "llama-2-7b", "-s", "h100-sxm", "--prompt", "512", "--generate", "64", "--tpot", "0.05"]
SEARCH = ["search", "gpt-6.7b", "-s", "h100-sxm", "--devices", "8", "--batch", "32", "--sequence", "1024"]
SEARCH += ["--require", "recompute=none", "--require", "zero=1", "--require", "schedule=1f1b", "--top", "4"]
DRAWING = {
    *("train", "infer", "serve", "search", "sweep", "validate", "derive", "formulas"),
    *("regimes", "phase", "cross", "solve", "gains", "limits"),
}
"""Verbs with `--plot`."""


@pytest.fixture
def drawn(call: Any, tmp_path: Path) -> Any:
    """The JSON of a command, and the tables of the page that it draws."""

    def run(arguments: list[str], *, told: bool = True) -> tuple[Any, dict[str, list[list[str]]]]:
        file = tmp_path / "it.html"
        code, out, err = call([*arguments, *(["--json"] if told else []), "--plot", str(file)])
        assert (code, err) == (0, "")
        page = file.read_text(encoding="utf-8")
        command = shlex.join(["symperf", *arguments, *(["--json"] if told else [])])
        assert command.replace("'", "&#x27;") in page
        assert file.name not in page
        return json.loads(out) if told else out, tables(page)

    return run


def test_which_verbs_draw() -> None:
    _, verbs = build()
    assert {name for name, verb in verbs.items() if "--plot" in verb.flags()} == DRAWING


def test_a_training_step(drawn: Any) -> None:
    told, found = drawn(TRAIN)
    (title, terms), (_, roofline), (_, stages) = found.items()
    assert title.startswith("step time by term: ")
    assert sum(float(row[1]) for row in terms) == pytest.approx(told["time_s"])
    for name, seconds, *_ in terms[:-1]:
        own = [row["time_s"] for row in told["breakdown"] if row["name"] == name or row["name"].startswith(f"{name}/")]
        assert any(float(seconds) == pytest.approx(part) for part in (sum(own), *own)) or sum(own) > float(seconds)
    rows = {row["name"].removeprefix("layer/"): row for row in told["breakdown"]}
    assert len(roofline) > 20
    for name, intensity, *_ in roofline:
        assert float(intensity) == rows[name]["flops"] / rows[name]["bytes"]
    assert len(stages) == 2
    for row, stage in zip(stages, told["stages"], strict=True):
        assert sum(map(float, row[1:])) == pytest.approx(stage["memory_bytes"]["reserved"])


def test_an_inference(drawn: Any) -> None:
    told, found = drawn(INFER)
    for phase in ("prefill", "decode"):
        terms = next(rows for title, rows in found.items() if title.startswith(f"{phase}: ") and title.endswith("s"))
        assert sum(float(row[1]) for row in terms) == pytest.approx(told[f"{phase}_s"])
        times = {each["name"]: each["time_s"] for each in told["operations"] if each["phase"] == phase}
        assert all(float(seconds) == times[name] for name, seconds, *_ in terms if name in times)
        assert sum(name in times for name, *_ in terms) >= 5


def test_a_serving_system(drawn: Any) -> None:
    told, (first, later) = (lambda pair: (pair[0], pair[1].values()))(drawn(SERVE))
    for key, rows in (("ttft_s", first), ("tpot_s", later)):
        curve = [(each["output_tokens_per_s_per_device"], each[key]) for each in told["curve"] if each[key] is not None]
        drawn_ = [(float(x), float(y)) for name, x, y in rows if name.startswith("loads")]
        assert drawn_ == curve
        assert len(curve) > 4
        assert [float(y) for name, _, y in rows if name.startswith("the answer")] == [told[key]]


def test_two_pools(drawn: Any) -> None:
    told, found = drawn([*SERVE, "--prefill", "plan: tp=2"])
    rows = next(iter(found.values()))
    curve = [(each["output_tokens_per_s_per_device"], each["ttft_s"]) for each in told["pools"]["curve"]]
    assert [(float(x), float(y)) for name, x, y in rows if name.startswith("loads")] == curve
    assert len(curve) > 4


def test_a_search(drawn: Any) -> None:
    told, found = drawn(SEARCH)
    assert places(found) == sorted((plan["time_s"], plan["memory_bytes"]) for plan in told["plans"])
    told, found = drawn([*SEARCH, "--pareto", "--axes", "memory,time"])
    assert places(found) == sorted((plan["memory_bytes"], plan["time_s"]) for plan in told["pareto"])


def places(found: dict[str, list[list[str]]]) -> list[tuple[float, float]]:
    return sorted((float(x), float(y)) for rows in found.values() for _, x, y in rows)


STUDY = """
model = "llama-2-7b"
batch = 64
sequence = 2048
where = ["fits"]
[plan]
dp = 8
zero = 1
[axes]
system = ["a100-80gb-sxm", "h100-sxm"]
micro_batch = [1, 2, 4]
recompute = ["none", "full"]
"""


def test_a_sweep(drawn: Any, tmp_path: Path, call: Any) -> None:
    """Along the longest axis, for each value of the next: the best of the others, of the points that are feasible."""
    study, out = tmp_path / "s.toml", tmp_path / "out.csv"
    study.write_text(STUDY, encoding="utf-8")
    _, found = drawn(["sweep", str(study), "-o", str(out)])
    with out.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["reason"]]
    assert rows
    for name, best in (("time", min), ("memory", min), ("mfu", max)):
        expected: dict[tuple[str, float], list[float]] = {}
        for row in rows:
            expected.setdefault((f"system = {row['system']}", float(row["micro_batch"])), []).append(float(row[name]))
        shown = {(title, float(x)): float(y) for title, x, y in found[name]}
        assert shown == {place: best(values) for place, values in expected.items()}
    study.write_text(STUDY.replace("[1, 2, 4]", "{ from = 1, to = 1000000, step = 1 }"), encoding="utf-8")
    code, _, err = call(["sweep", str(study), "-o", str(tmp_path / "large.csv"), "--plot", str(tmp_path / "large.svg")])
    assert (code, err.count("\n")) == (2, 1)
    assert "found 4,000,000 points, expected at most 1,000,000" in err


def test_measurements(drawn: Any) -> None:
    told, found = drawn(["validate", "--source", "KORTH"])
    rows = [(row[1], float(row[2]), float(row[3])) for table in found.values() for row in table]
    assert sorted(rows) == sorted((row["case"], row["measured"], row["predicted"]) for row in told["rows"])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*TRAIN, "--plot", "a.gif"], "expected a file that ends in .png, .pdf, .svg, .html"),
        ([*INFER, "--plot", "none/a.svg"], "plot: 'none/a.svg' cannot be written: No such file or directory"),
        ([*TRAIN, "--timeline", "a.svg", "--plot", "./a.svg"], "plot: './a.svg' is what --timeline writes"),
        (["derive", *TRAIN, "--latex", "-o", "a.svg", "--plot", "a.svg"], "plot: 'a.svg' is what --output writes"),
        (["formulas", "ring_all_reduce_time", "--plot", "a.svg"], "formulas: found --plot, expected --against NAME"),
    ],
)
def test_refusals_come_before_the_work(arguments: list[str], line: str, call: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("symperf.cli.train.ask", None)
    monkeypatch.setattr("symperf.cli.infer.build_run", None)
    code, out, err = call(arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_a_missing_matplotlib_is_told_before_the_work(call: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("symperf.cli.train.ask", None)
    code, _, err = call([*TRAIN, "--plot", str(tmp_path / "a.svg")])
    assert code == 2
    assert "plot: needs matplotlib, which is not installed: pip install 'symperf[plot]'" in err


def test_what_serves_nothing_has_no_curve(call: Any, tmp_path: Path) -> None:
    code, _, err = call(["serve", "llama-2-70b", "-s", "h100-sxm", *SERVE[4:], "--plot", str(tmp_path / "a.svg")])
    assert code == 1
    assert "plot: there is no steady state" in err
