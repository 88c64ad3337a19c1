"""Odd input to what came later: searches over technologies, names in place of models, clusters, studies, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed
import numpy as np
import pytest
from support.paths import ROOT
from support.study_pages import STUDIES, module

import symperf as sf
from symperf.analysis import Unreachable
from symperf.plan_search import failures
from symperf.plan_search.api import search
from symperf.plan_search.inference.search import search_inference
from symperf.plan_search.search import answer_search
from symperf.plan_search.technologies import drive as technologies_drive
from symperf.plan_search.technologies.best_over import best_over

if TYPE_CHECKING:
    from collections.abc import Callable

runner, studies = module("run"), module("study")
MENU: dict[str, Any] = {
    "schedule": ["1f1b"],
    "cp": [1],
    "zero": [0],
    "recompute": ["none"],
    "attention": ["flash"],
    "sequence_parallel": [False],
    "rank_order": ["tp-cp-dp-pp"],
    "dropout": [False],
}
WORK: dict[str, Any] = {"devices": 2, "batch": 2, "sequence": 128, "require": MENU, "threads": 1}
ONE = {"matrix_rate": [1e15]}


def over(columns: Any = ONE, model: Any = "gpt-1.3b", system: Any = "h100-sxm", **work: Any) -> Any:
    return best_over(model, system, columns, **{**WORK, **work})


def one_line(message: object) -> str:
    text = str(message)
    assert text
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"model": 3}, "model: found 3"),
        ({"model": "gpt-1.3bb"}, "did you mean gpt-1.3b"),
        ({"system": None}, "system: found None"),
        ({"system": "h100-smx"}, "did you mean h100-sxm"),
        ({"columns": None}, "found no columns"),
        ({"columns": [1]}, "technologies: found \\[1\\], expected values by name"),
        ({"columns": "abc"}, "technologies: found 'abc'"),
        ({"columns": {"matrix_rat": [1e15]}}, "did you mean matrix_rate"),
        ({"columns": {3: [1e15]}}, "unknown quantity 3"),
        ({"columns": {"matrix_rate": [10**400]}}, "expected numbers"),
        ({"columns": {"matrix_rate": {1e15}}}, "expected numbers"),
        ({"columns": {"matrix_rate": [float("nan")]}}, "value 0 is nan"),
        ({"columns": {"matrix_rate": np.ma.array([1e15], mask=[True])}}, "value 0 is nan"),
        ({"columns": {"matrix_rate": [[1e15]]}}, "found shape \\(1, 1\\)"),
        ({"columns": {"matrix_rate": [1e15, 2e15], "memory_bandwidth": [1e12]}}, "different lengths"),
        ({"columns": {"memory_capacity": [0.0]}}, "memory_capacity: value 0 is 0"),
        ({"columns": {"compute_units": [132.0, 100.5]}}, "compute_units: value 1 is 100.5, expected a whole number"),
        ({"columns": {"scale_up_size": [8.5]}}, "scale_up_size: value 0 is 8.5, expected a whole number"),
        ({"columns": {"ridge_efficiency": [0.5, 0.3]}}, "ridge_efficiency: value 1 is 0.3"),
        ({"columns": {"switch_efficiency": [0.5]}, "system": "l40s"}, "system l40s has none"),
        ({"devices": 0}, "devices: found 0"),
        ({"devices": -1}, "devices: found -1"),
        ({"devices": 2.5}, "devices: found 2.5"),
        ({"devices": [2]}, "devices: found \\[2\\]"),
        ({"devices": 10**30}, "devices: found 10+, expected a whole number"),
        ({"batch": "x"}, "batch: found 'x'"),
        ({"sequence": None}, "sequence: found None"),
        ({"threads": 0}, "threads: found 0"),
        ({"threads": 1.5}, "threads: found 1.5"),
        ({"require": [1]}, "require: found \\[1\\], expected values by name"),
        ({"require": "zero=1"}, "require: found 'zero=1'"),
        ({"limits": [1]}, "limits: found \\[1\\]"),
        ({"values": [1]}, "values: found \\[1\\]"),
        ({"values": {3: 1}}, "values: found 3, expected the name of a symbol"),
        ({"values": {"matrix_rate": 1e15}}, "found a value and a column"),
    ],
)
def test_a_search_over_technologies_refuses(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(sf.InputError, match=told) as error:
        over(**asked)
    one_line(error.value)


def test_names_and_single_values_are_as_objects_and_lists() -> None:
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    assert over().time.tolist() == over(model=model, system=system, columns={"matrix_rate": 1e15}).time.tolist()


def test_technologies_of_which_none_holds_a_plan() -> None:
    """The places of technologies are checked, negative ones as well."""
    found = over({"memory_capacity": [1e8, 80e9]})
    assert found.plan.tolist() == [-1, 0]
    assert np.isinf(found.time[0])
    assert found.run(np.int64(1)).value("time") == pytest.approx(found.time[1])
    with pytest.raises(sf.InputError, match="technology 0: no plan fits"):
        found.run(0)
    for place in (2, -1, "x", None, 1.0, True):
        with pytest.raises(sf.InputError, match="expected a number from 0 to 1"):
            found.run(place)
    with pytest.raises(sf.InputError, match="no field 'foo'"):
        found.run_of(1, {"foo": 3})
    with pytest.raises(sf.InputError, match="plan: found None"):
        found.run_of(1, None)
    assert found.run_of(1, sf.Plan(tp=2)).plan.tp == 2
    assert over({"memory_capacity": [1e8]}).plans == []
    assert over(devices=11, require={**MENU, "tp": [11]}).legal.tolist() == [0]


@pytest.mark.parametrize("place", ["step", "wait", "start"])
def test_an_interrupt_ends_all_threads(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes: in a step of the search, while a thread waits for work, or before the first block."""
    main = threading.main_thread()
    true_step, true_tried, true_work = (
        technologies_drive.Drive._step,
        technologies_drive.try_plans,
        technologies_drive.Drive._work,
    )

    def step(self: Any, level: Any) -> Any:
        if place == "step" and threading.current_thread() is main:
            signal.raise_signal(signal.SIGINT)
        return true_step(self, level)

    def tried(*given: Any) -> Any:
        if place == "start":
            raise KeyboardInterrupt
        return true_tried(*given)

    def work(self: Any) -> None:
        if place == "wait" and threading.current_thread() is main:
            with self.result.lock:
                self._busy += 1  # as when the signal comes after a block was taken and before it is looked at
            signal.raise_signal(signal.SIGINT)
        true_work(self)

    monkeypatch.setattr(technologies_drive.Drive, "_step", step)
    monkeypatch.setattr(technologies_drive.Drive, "_work", work)
    monkeypatch.setattr(technologies_drive, "try_plans", tried)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        over({"matrix_rate": [1e14, 1e15, 2e15]}, threads=1 if place == "step" else 3)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "ask",
    [
        lambda plan: sf.training("gpt2", "h100-sxm", plan, batch=1, sequence=64),
        lambda plan: sf.inference("gpt2", "h100-sxm", plan, batch=1, prompt=8, generate=2),
        lambda plan: sf.serving("gpt2", "h100-sxm", plan, prompt=8, generate=2, ttft=1.0),
    ],
)
@pytest.mark.parametrize("plan", ["tp=2", {"tp": 2}, 2, 0, "", []])
def test_a_plan_is_a_plan(ask: Callable[[Any], Any], plan: Any) -> None:
    with pytest.raises(sf.InputError, match=r"plan: found .*, expected a Plan"):
        ask(plan)


@pytest.mark.parametrize("name", ["tp", "rank_order", "zero"])
def test_fields_of_a_plan_are_not_what_they_are_taken_for(name: str) -> None:
    """No line asks whether `tp` was meant where `tp` was given."""
    for ask in (
        lambda: sf.training("gpt2", "h100-sxm", batch=1, sequence=64, **{name: 2}),
        lambda: sf.inference("gpt2", "h100-sxm", batch=1, prompt=8, generate=2, **{name: 2}),
        lambda: sf.serving("gpt2", "h100-sxm", prompt=8, generate=2, ttft=1.0, **{name: 2}),
    ):
        with pytest.raises(sf.InputError, match=f"set: {name} is a field of the plan") as error:
            ask()
        assert "did you mean" not in one_line(error.value)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"require": [1]}, "require: found \\[1\\]"),
        ({"by": ["time"]}, "by: found \\['time'\\]"),
        ({"by": None}, "by: found None"),
        ({"devices": None}, "devices: found None"),
        ({"devices": b"2"}, "devices: found b'2'"),
        ({"dask": 3}, "--dask: found 3"),
        ({"dask": b"tcp://1"}, "--dask: found b'tcp://1'"),
        ({"dask": True}, "--dask: found True"),
        ({"dask": "tls://127.0.0.1:1"}, "no scheduler at 'tls://127.0.0.1:1'"),
        ({"dask": ""}, "no scheduler at ''"),
        ({"dask": "ünï"}, "no scheduler at 'ünï'"),
    ],
)
def test_a_search_refuses(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(sf.InputError, match=told) as error:
        search("gpt2", "h100-sxm", **{"devices": 2, "batch": 2, "sequence": 64, **asked})
    one_line(error.value)


@pytest.mark.parametrize("kind", [TypeError, AssertionError, ImportError, RuntimeError, OSError])
def test_whatever_dask_raises_is_one_line(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise kind("no")

    monkeypatch.setattr(distributed.Client, "__init__", refuse)
    with pytest.raises(sf.InputError, match=f"no scheduler at 'x://y'.*{kind.__name__}"):
        search("gpt2", "h100-sxm", devices=2, batch=2, sequence=64, dask="x://y")


def test_an_interrupt_does_not_wait_for_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def connect(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(60)

    monkeypatch.setattr(distributed.Client, "__init__", connect)
    with pytest.raises(KeyboardInterrupt):
        search("gpt2", "h100-sxm", devices=2, batch=2, sequence=64, dask="tcp://127.0.0.1:1")
    assert not released.is_set()
    released.set()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"require": [1]}, "require: found \\[1\\]"),
        ({"kv_precision": [[1]]}, "kv_precision: found \\[1\\]"),
        ({"ttft": "x"}, "ttft: found 'x', expected seconds above 0"),
        ({"tpot": float("nan")}, "tpot: found nan, expected seconds above 0"),
        ({"ttft": -1}, "ttft: found -1, expected seconds above 0"),
    ],
)
def test_a_search_for_inference_refuses(asked: dict[str, Any], told: str) -> None:
    """Limits of latency are checked with a batch as well as without."""
    with pytest.raises(sf.InputError, match=told) as error:
        search_inference("gpt2", "h100-sxm", **{"devices": 2, "prompt": 16, "generate": 4, "batch": 2, **asked})
    one_line(error.value)


SMALL: dict[str, Any] = {"devices": 4, "batch": 4, "sequence": 64}


def interrupted(monkeypatch: pytest.MonkeyPatch, of: Any, name: str) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(of, name, stop)


def test_a_table_is_never_of_a_part_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that goes on after Ctrl-C would take the best of what was seen for the best of all."""
    from symperf.plan_search import tasks
    from symperf.plan_search.inference import search as inference

    interrupted(monkeypatch, tasks.SearchWork, "run")
    with pytest.raises(KeyboardInterrupt):
        search("gpt2", "h100-sxm", **SMALL, **MENU)
    interrupted(monkeypatch, inference, "_look")
    with pytest.raises(KeyboardInterrupt):
        search_inference("gpt2", "h100-sxm", devices=2, prompt=16, generate=4, batch=2)


def test_reasons_are_not_of_a_part_of_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while it is sought what would fit ends the search."""
    model, system = sf.Model.load("gpt-1.3b"), sf.System.load("h100-sxm")
    found = answer_search(model, system, **SMALL, require=MENU, max_memory="200 MB")
    monkeypatch.setattr(failures, "evaluate", lambda *_, **__: False)
    with pytest.raises(KeyboardInterrupt):
        failures.fail(found.found)
    monkeypatch.undo()
    with pytest.raises(Unreachable, match="it fits without max_memory"):
        failures.fail(found.found)


# --- studies


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str], int], str]:
    """The last line on standard error of `run.py`, after checking its exit status."""

    def ask(arguments: list[str], status: int) -> str:
        assert runner.main(arguments) == status
        return capsys.readouterr().err.splitlines()[-1]

    return ask


def test_runner_refuses_what_contradicts_itself(told: Callable[[list[str], int], str], tmp_path: Path) -> None:
    assert "found --check and --coarse" in told(["--check", "--coarse", str(tmp_path), "memory"], 2)
    assert "expected a folder" in told(["--coarse", "x" * 300, "memory"], 2)
    assert "did you mean memory" in told(["memmory"], 2)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a,b\n1\n", "line 2: found 1 cells, expected the first line's 2"),
        (b"a,b\n1,2,3\n", "line 2: found 3 cells"),
        (b'a,b\n"1\n', "not valid CSV"),
        (b"\xff\xfe", "byte 0 is no UTF-8"),
    ],
)
def test_a_damaged_table_is_one_line(data: bytes, line: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    with pytest.raises(sf.InputError, match=line) as error:
        studies.rows_of(studies.text_of(path), path.name)
    assert "table.csv" in one_line(error.value)
    with pytest.raises(sf.InputError, match="cannot be read"):
        studies.text_of(tmp_path)


def test_files_of_a_study_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written, or an interrupt, leaves the others as they were, and nothing beside them."""
    (tmp_path / "a.csv").write_text("old", encoding="utf-8")
    (tmp_path / "b.csv").write_bytes(b"\xff")
    fresh = {"a.csv": "new", "b.csv": "new", "c.csv": "new"}
    write_text = Path.write_text

    def stop(self: Path, *given: Any, **named: Any) -> int:
        if self.name.startswith(".c.csv"):
            raise KeyboardInterrupt
        return write_text(self, *given, **named)

    monkeypatch.setattr(Path, "write_text", stop)
    with pytest.raises(KeyboardInterrupt):
        runner._put(tmp_path, fresh)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]
    monkeypatch.undo()
    with pytest.raises(sf.InputError, match="cannot be written"):
        runner._put(tmp_path / "none", fresh)
    assert runner._put(tmp_path, fresh) == ["a.csv", "b.csv", "c.csv"]
    assert runner._put(tmp_path, fresh) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "c.csv"]


def test_a_signal_ends_a_run_of_studies(tmp_path: Path) -> None:
    """The search inside the study says so too: no study is made of a part of its searches."""
    command = [sys.executable, str(STUDIES / "run.py"), "speedup", "--no-figures", "--coarse", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def listen() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=listen) as child:
        assert child.stderr is not None
        assert child.stderr.readline().startswith("[1/1] speedup")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        err = child.stderr.read()
        child.wait(120)
    assert child.returncode == 130, err
    assert err == "run.py: interrupted; the studies before this one are written\n"
    assert list(tmp_path.iterdir()) == []
