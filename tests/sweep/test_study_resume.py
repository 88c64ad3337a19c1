"""Resuming: refused exactly where numbers could differ, and nothing to do where the result is finished."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas
import pytest
import xarray
from support.paths import ROOT
from support.study_cases import FORMATS, TEXT, Stop, bytes_of, partial, study_file, sweep_command, write_study

from symperf.common.errors import InputError
from symperf.models.model import Model
from symperf.plans.plan import Plan
from symperf.sweep import cell_kernel as engine
from symperf.sweep import identity
from symperf.systems.system import System
from symperf.train.compile import compile_step
from symperf.train.inputs import structure_of

if TYPE_CHECKING:
    from pathlib import Path


def _contents(out: Path) -> list[bytes]:
    return [data for _, data in sorted(bytes_of(out).items())]


# --- finished


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_finished_result_is_left_as_it_is(tmp_path: Path, suffix: str) -> None:
    """One line, exit status 0, the same counts and the same bytes; with `--json` the answer says so."""
    path, out = study_file(tmp_path), tmp_path / f"out{suffix}"
    assert sweep_command(str(path), "-o", str(out))[0] == 0
    before = _contents(out)
    counts = json.loads(sweep_command(str(path), "-o", str(out), "--overwrite", "--json")[1])
    assert counts["finished_before"] is False
    path.write_text("# a remark\n" + TEXT)  # the same study
    code, printed, errors = sweep_command(str(path), "-o", str(out), "--resume")
    assert (code, errors, printed.count("\n")) == (0, "", 1)
    assert "is finished" in printed
    assert "nothing was computed" in printed
    answer = json.loads(sweep_command(str(path), "-o", str(out), "--resume", "--json")[1])
    assert (answer["finished_before"], answer["whole"], answer["computed_chunks"]) == (True, True, 0)
    assert (answer["feasible"], answer["rejected"]) == (counts["feasible"], counts["rejected"])
    assert _contents(out) == before
    assert not partial(out).exists()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_finished_result_of_another_study_is_refused(tmp_path: Path, suffix: str) -> None:
    """Exit status 2, and nothing is touched; nor is a file that says nothing of itself."""
    path, out = study_file(tmp_path), tmp_path / f"out{suffix}"
    assert sweep_command(str(path), "-o", str(out))[0] == 0
    before = _contents(out)
    study_file(tmp_path, TEXT.replace("count = 30", "count = 31"))
    code, printed, errors = sweep_command(str(path), "-o", str(out), "--resume")
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert "is finished, with another study; --overwrite replaces it" in errors
    assert _contents(out) == before
    other = tmp_path / f"other{suffix}"
    if suffix == ".zarr":
        other.mkdir()
        (other / "zarr.json").write_text('{"attributes": {}}')
    else:
        other.write_bytes(b"mine")
    code, printed, errors = sweep_command(str(path), "-o", str(other), "--resume")
    assert (code, printed) == (2, "")
    assert "there is nothing to resume" in errors


def test_a_table_that_was_edited_is_not_finished(tmp_path: Path) -> None:
    """What lies beside a CSV counts only for a file of its size; a new result replaces it."""
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    write_study(path, out)
    with out.open("a", encoding="utf-8") as file:
        file.write("more\n")
    with pytest.raises(InputError, match="there is nothing to resume"):
        write_study(path, out, resume=True)
    write_study(path, out, overwrite=True, progress=Stop(2))
    shutil.rmtree(partial(out))
    with pytest.raises(InputError, match="there is nothing to resume"):
        write_study(path, out, resume=True)


# --- the same numbers or none


def test_a_reinstalled_package_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere, at another time, with other catalogues: the source counts by its content."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        for name in ("symperf", "formulas", "codegen"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in second.rglob("*.py"):
        os.utime(file, (1, 1))
    (second / "symperf/cli/more.py").write_text("1\n")

    def marks(folder: Path) -> str:
        code = "from symperf.sweep.identity import sources; print(sources())"
        called = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True, env=_elsewhere(folder)
        )
        return called.stdout

    assert marks(first) == marks(second)
    with (second / "formulas/parallel/pipeline.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    changed = marks(second)
    assert changed != marks(first)
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    write_study(path, out, progress=Stop(3))
    monkeypatch.setattr(identity, "sources", lambda: changed)
    with pytest.raises(InputError, match="was begun with another symperf; --overwrite"):
        write_study(path, out, resume=True)


def _elsewhere(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_another_package_to_compute_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy always matters; Numba only to what is compiled."""
    path, out = study_file(tmp_path), tmp_path / "out.nc"
    plain = identity.version
    write_study(path, out, progress=Stop(3))
    with monkeypatch.context() as patch:
        patch.setattr(identity, "version", lambda name: "0" if name == "numpy" else plain(name))
        with pytest.raises(InputError, match="begun with another NumPy;"):
            write_study(path, out, resume=True)
    monkeypatch.setattr(identity, "version", lambda name: "0" if name == "numba" else plain(name))
    assert write_study(path, out, resume=True).whole


@pytest.mark.parametrize("change", ["system", "plan", "order", "remark"])
def test_a_study_is_what_it_asks(tmp_path: Path, change: str) -> None:
    """A file that it reads counts by what it says; remarks and the order of its tables do not count."""
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "a100-80gb-sxm"\nmemory_capacity = "40 GB"\n')
    text = TEXT.replace('system = "a100-80gb-sxm"', 'system = "./mine.toml"')
    path, out = study_file(tmp_path, text), tmp_path / "out.csv"
    write_study(path, out, progress=Stop(3))
    if change == "system":
        mine.write_text('base = "a100-80gb-sxm"\nmemory_capacity = "41 GB"\n')
    elif change == "plan":
        study_file(tmp_path, text.replace('"selective"', '"full"'))
    elif change == "order":
        head, axes = text.split("[axes]")
        axes, derived = axes.split("[derived]")
        study_file(tmp_path, f"{head}[derived]{derived}\n[axes]{axes}")
    else:
        mine.write_text('# mine\nbase = "a100-80gb-sxm"\nmemory_capacity = "40 GB"\n')
        study_file(tmp_path, f"# a remark\n{text}")
    if change in ("order", "remark"):
        assert write_study(path, out, resume=True).whole
    else:
        with pytest.raises(InputError, match="begun with another study;"):
            write_study(path, out, resume=True)


@pytest.mark.parametrize("suffix", [".zarr", ".csv"])
def test_compiled_resumes_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """The engine follows from the study and is noted; a stop and other threads change nothing."""
    text = TEXT.replace("[true, false]", "[true]").replace('precision = ["bf16", "fp16"]', "overlap_tp = [0.5, 0.7]")
    path = study_file(tmp_path, text)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    monkeypatch.setattr(engine, "LEAST", 100)
    monkeypatch.setattr(engine, "best_tier", lambda *_, **__: "numba")
    write_study(path, whole)
    write_study(path, out, progress=Stop(4))
    header = json.loads((partial(out) / "journal").read_text().splitlines()[0].partition(" ")[2])
    assert header["engine"] == "compiled"
    assert "Numba" in header
    with monkeypatch.context() as patch:
        patch.setattr(engine, "LEAST", 10**9)
        with pytest.raises(InputError, match="begun with another engine"):
            write_study(path, out, resume=True)
    monkeypatch.setattr("symperf.sweep.stream.default_threads", lambda: 5)
    assert write_study(path, out, resume=True).whole
    assert _contents(out) == _contents(whole)


# --- what a structure lacks


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_a_structure_lacks_is_undefined_in_files(tmp_path: Path, suffix: str) -> None:
    """As not a number, or as nothing in a text; the point counts as feasible."""
    text = TEXT.replace('recompute = "selective"\n', "").replace('where = ["fits"]', "")
    text = text.replace("[axes]", '[axes]\nrecompute = ["none", "full"]')
    name = _only_in_full()
    path = study_file(tmp_path, text.replace("memory/weights/layers", name))
    out = tmp_path / f"out{suffix}"
    outcome = write_study(path, out, chunk_points=10**6)
    half = outcome.points // 2
    if suffix in (".csv", ".parquet"):
        table = pandas.read_csv(out) if suffix == ".csv" else pandas.read_parquet(out)
        values, time = table[name].to_numpy(), table.time.to_numpy()
        feasible = (table.reason.isna() | (table.reason == "")).to_numpy()
    else:
        with xarray.open_dataset(out, engine="zarr" if suffix == ".zarr" else "h5netcdf") as found:
            values, time = found[name.replace("/", ".")].values.ravel(), found.time.values.ravel()
            feasible = found.reason.values.ravel() == 0
    assert np.isnan(values[:half]).all()
    assert feasible[:half].any()
    assert np.isfinite(time[:half][feasible[:half]]).all()
    assert np.isfinite(values[half:][feasible[half:]]).all()


def _only_in_full() -> str:
    none, full = (
        set(compile_step(structure_of(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan)).program.lets)
        for plan in (Plan(recompute="none"), Plan(recompute="full"))
    )
    return sorted(full - none)[0]
