"""Studies: the result is whole or resumed bit for bit, and a stop never costs a finished chunk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import pytest
import xarray
from support.paths import ROOT
from support.study_cases import (
    FORMATS,
    POINTS,
    TEXT,
    Stop,
    bytes_of,
    partial,
    study_file,
    write_study,
)

from symperf.sweep.dataset import dataset
from symperf.sweep.study import load

if TYPE_CHECKING:
    from pathlib import Path

# --- what is written


def test_every_format_holds_the_sweep(tmp_path: Path) -> None:
    """Coordinates, numbers, reasons and attributes are those of the sweep in memory."""
    path = study_file(tmp_path)
    sweep = load(path).sweep
    data = dataset(sweep)
    meanings = ["", *sweep.reasons]
    for suffix in FORMATS:
        outcome = write_study(path, tmp_path / f"out{suffix}")
        assert (outcome.whole, outcome.points) == (True, POINTS)
        assert sum(outcome.counts.values()) == POINTS
        assert outcome.counts[""] == int((data.reason == 0).sum())
        assert not partial(tmp_path / f"out{suffix}").exists()
    for found in (
        xarray.open_zarr(tmp_path / "out.zarr", chunks=None),
        xarray.open_dataset(tmp_path / "out.nc", engine="h5netcdf"),
    ):
        for name in data.data_vars:
            written = found[str(name).replace("/", ".")]
            np.testing.assert_array_equal(written.values, data[name].values)
            assert written.dims == data[name].dims
            assert written.attrs["path"] == name
        for name, values in data.coords.items():
            np.testing.assert_array_equal(found[name].values, values.values)
            assert {k: found[name].attrs[k] for k in values.attrs} == values.attrs
        assert found.reason.dtype == np.uint8
        assert found.reason.attrs["flag_meanings"].split()[:-1] == data.reason.attrs["flag_meanings"].split()
        assert found.attrs["model"] == "gpt3-175b"
        found.close()
    for table in (pandas.read_parquet(tmp_path / "out.parquet"), pandas.read_csv(tmp_path / "out.csv")):
        assert len(table) == POINTS
        for name in sweep.outputs:
            np.testing.assert_array_equal(table[name].to_numpy(), data[name].values.ravel())
        assert table.reason.fillna("").tolist() == [meanings[code] for code in data.reason.values.ravel()]
        tp, bandwidth = np.meshgrid(data.tp, data.memory_bandwidth, indexing="ij")
        inner = POINTS // tp.size
        np.testing.assert_array_equal(table.tp.to_numpy(), np.repeat(data.tp.values, POINTS // 3))
        np.testing.assert_array_equal(table.memory_bandwidth.to_numpy(), np.tile(data.memory_bandwidth, inner * 3))
        assert set(table.precision) == {"bf16", "fp16"}
        assert set(table.sequence_parallel) == {True, False}
        assert bandwidth.size == 90


def test_one_point_and_one_chunk(tmp_path: Path) -> None:
    """The smallest sweeps have files too."""
    head = TEXT.split("[axes]")[0]
    path = study_file(tmp_path, f"{head}[axes]\ntp = [8]\n")
    for suffix in FORMATS:
        assert write_study(path, tmp_path / f"out{suffix}").chunks == 1


# --- stops


@pytest.mark.parametrize("suffix", FORMATS)
def test_ctrl_c_leaves_a_valid_file_and_resumes(tmp_path: Path, suffix: str) -> None:
    """What is done is there, the rest is marked or absent; resumed, it is the uninterrupted file bit for bit."""
    path = study_file(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    write_study(path, whole)
    outcome = write_study(path, out, progress=Stop(5))
    assert (outcome.whole, outcome.computed) == (False, 5)
    rows = _rows(out)
    assert 0 < rows < POINTS
    assert rows == sum(outcome.counts.values())
    second = write_study(path, out, resume=True, progress=Stop(5 + 4))
    assert (second.whole, second.computed) == (False, 4)
    assert _rows(out) > rows
    last = write_study(path, out, resume=True)
    assert last.whole
    assert last.computed == last.chunks - 9
    assert last.counts == write_study(path, tmp_path / f"again{suffix}").counts
    assert _renamed(bytes_of(out)) == _renamed(bytes_of(whole))
    assert not partial(out).exists()


def _renamed(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name.partition("/")[2]: data for name, data in files.items()}


def _rows(out: Path) -> int:
    """Points of a result that are there."""
    if out.suffix == ".csv":
        return len(pandas.read_csv(out))
    if out.suffix == ".parquet":
        return len(pandas.read_parquet(out))
    engine = {"engine": "h5netcdf"} if out.suffix == ".nc" else {"engine": "zarr"}
    with xarray.open_dataset(out, **engine) as found:
        there = found.reason.values != 255
        assert np.isnan(found.time.values[~there]).all()
        return int(there.sum())


def test_a_stop_before_the_first_chunk(tmp_path: Path) -> None:
    """A table without rows is a valid file."""
    path = study_file(tmp_path)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt
        yield

    for suffix in FORMATS:
        out = tmp_path / f"out{suffix}"
        assert not write_study(path, out, compute=stopped).whole
        assert _rows(out) == 0
        assert write_study(path, out, resume=True).whole
        assert _rows(out) == POINTS


@pytest.mark.parametrize("suffix", FORMATS)
def test_damage_is_computed_again(tmp_path: Path, suffix: str) -> None:
    """A chunk that does not match its checksum, a journal line cut short, a chunk that vanished: computed again."""
    path = study_file(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    write_study(path, whole)

    class Crash(BaseException):
        """Ends the process without a word."""

    with pytest.raises(Crash):
        write_study(path, out, progress=Stop(8, Crash))
    assert not out.exists()
    chunks = sorted(p for p in partial(out).rglob("*") if p.is_file() and ("chunks" in p.parts or "c" in p.parts))
    times = [p for p in chunks if suffix != ".zarr" or "time" in p.parts]
    times[1].write_bytes(times[1].read_bytes()[:-1])
    data = bytearray(times[2].read_bytes())
    data[len(data) // 2] ^= 1
    times[2].write_bytes(data)
    times[3].unlink()
    times[3].with_name("0.0123abcd.partial").write_bytes(b"half")
    journal = partial(out) / "journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    outcome = write_study(path, out, resume=True)
    assert outcome.whole
    assert outcome.chunks - 7 + 3 <= outcome.computed <= outcome.chunks - 7 + 4
    assert _renamed(bytes_of(out)) == _renamed(bytes_of(whole))


def _command(path: Path, out: Path, *flags: str, chunks: int = 4) -> subprocess.Popen[str]:
    """A job that computes some chunks and then waits for a signal, however fast the machine is."""
    code = (
        "import signal, sys, threading; from symperf.sweep import stream; from symperf.cli import main; "
        "heard = threading.Event(); listen = lambda *a: (heard.set(), signal.default_int_handler(*a)); "
        f"signal.signal(signal.SIGINT, listen); left = iter(range({chunks})); plain = stream.chunk; "
        "stream.write.__kwdefaults__['chunk_points'] = 100; "
        "stream.chunk = lambda *a: (next(left, None) is None and heard.wait(), plain(*a))[1]; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "sweep", str(path), "-o", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def _wait_for(journal: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Until the journal of a running job has more than these lines."""
    while not (journal.exists() and len(journal.read_bytes().splitlines()) > lines):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("suffix", [".zarr", ".csv"])
def test_sigkill_loses_no_finished_chunk(tmp_path: Path, suffix: str) -> None:
    """Killed twice and resumed, the file is the uninterrupted one, and no finished chunk is computed again."""
    path = study_file(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    write_study(path, whole)
    journal = partial(out) / "journal"
    finished = 0
    for _ in range(2):
        process = _command(path, out, "--resume")
        _wait_for(journal, finished + 2, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not out.exists()
        done = len(journal.read_bytes().splitlines()) - 1
        assert done > finished
        finished = done
    process = _command(path, out, "--resume", "--json", chunks=POINTS)
    printed, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    answer = json.loads(printed)
    assert answer["whole"] is True
    assert answer["computed_chunks"] in (
        answer["chunks"] - finished,
        answer["chunks"] - finished + 1,
    )  # a line cut short
    assert _renamed(bytes_of(out)) == _renamed(bytes_of(whole))


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sigint_on_the_command_line(tmp_path: Path) -> None:
    """Ctrl-C: exit status 130, one line on standard error, a file that can be read."""
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    process = _command(path, out)
    _wait_for(partial(out) / "journal", 2, process)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate()
    assert process.returncode == 130
    assert printed == ""
    assert errors.count("\n") == 1
    assert "--resume goes on" in errors
    assert 0 < _rows(out) < POINTS
