"""Studies: the file is checked, the result is whole or resumed bit for bit, and a stop never costs a finished chunk."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symperf import stream
from symperf.cli import main
from symperf.dataset import dataset
from symperf.errors import InputError
from symperf.journal import Journal
from symperf.stream import write
from symperf.study import load

xarray = pytest.importorskip("xarray")
pandas = pytest.importorskip("pandas")
pytest.importorskip("zarr")
pytest.importorskip("h5netcdf")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parent.parent
FORMATS = (".zarr", ".nc", ".parquet", ".csv")
TEXT = """
model = "gpt3-175b"
system = "a100-80gb-sxm"
batch = 64
sequence = 2048
outputs = ["time", "memory/weights/layers"]
where = ["fits"]

[plan]
recompute = "selective"

[set]
memory_efficiency = "80 %"

[axes]
tp = [2, 4, 8]
pp = { from = 1, to = 8, powers_of = 2 }
sequence_parallel = [true, false]
shape = { zip = { micro_batch = [1, 2], precision = ["bf16", "fp16"] } }
memory_bandwidth = { from = "1 TB/s", to = "4 TB/s", count = 30, scale = "log" }

[derived]
dp = "64 / (tp * pp)"
"""
POINTS = 3 * 4 * 2 * 2 * 30
CHUNK = 100


def _study(folder: Path, text: str = TEXT) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _write(path: Path, out: Path, **options: Any) -> stream.Outcome:
    study = load(path)
    return write(study.sweep, study.text, out, chunk_points=CHUNK, **options)


def _bytes(out: Path) -> dict[str, bytes]:
    """The content of every file of a result."""
    files = [out] if out.is_file() else [p for p in out.rglob("*") if p.is_file()]
    return {str(p.relative_to(out.parent)): p.read_bytes() for p in files}


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


class Stop:
    """Interrupts a job after some chunks, as Ctrl-C does."""

    def __init__(self, after: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.after, self.error, self.calls = after, error, 0

    def __call__(self, done: int, total: int) -> None:
        assert 0 < done <= total
        self.calls += 1
        if self.calls == self.after:
            raise self.error


# --- what is written


def test_every_format_holds_the_sweep(tmp_path: Path) -> None:
    """Coordinates, numbers, reasons and attributes are those of the sweep in memory."""
    path = _study(tmp_path)
    sweep = load(path).sweep
    data = dataset(sweep)
    meanings = ["", *sweep.reasons]
    for suffix in FORMATS:
        outcome = _write(path, tmp_path / f"out{suffix}")
        assert (outcome.whole, outcome.points) == (True, POINTS)
        assert sum(outcome.counts.values()) == POINTS
        assert outcome.counts[""] == int((data.reason == 0).sum())
        assert not _partial(tmp_path / f"out{suffix}").exists()
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
    path = _study(tmp_path, f"{head}[axes]\ntp = [8]\n")
    for suffix in FORMATS:
        assert _write(path, tmp_path / f"out{suffix}").chunks == 1


# --- stops


@pytest.mark.parametrize("suffix", FORMATS)
def test_ctrl_c_leaves_a_valid_file_and_resumes(tmp_path: Path, suffix: str) -> None:
    """What is done is there, the rest is marked or absent; resumed, it is the uninterrupted file bit for bit."""
    path = _study(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    _write(path, whole)
    outcome = _write(path, out, progress=Stop(5))
    assert (outcome.whole, outcome.computed) == (False, 5)
    rows = _rows(out)
    assert 0 < rows < POINTS
    assert rows == sum(outcome.counts.values())
    second = _write(path, out, resume=True, progress=Stop(5 + 4))
    assert (second.whole, second.computed) == (False, 4)
    assert _rows(out) > rows
    last = _write(path, out, resume=True)
    assert last.whole
    assert last.computed == last.chunks - 9
    assert last.counts == _write(path, tmp_path / f"again{suffix}").counts
    assert _renamed(_bytes(out)) == _renamed(_bytes(whole))
    assert not _partial(out).exists()


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
    path = _study(tmp_path)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt
        yield

    for suffix in FORMATS:
        out = tmp_path / f"out{suffix}"
        assert not _write(path, out, compute=stopped).whole
        assert _rows(out) == 0
        assert _write(path, out, resume=True).whole
        assert _rows(out) == POINTS


@pytest.mark.parametrize("suffix", FORMATS)
def test_damage_is_computed_again(tmp_path: Path, suffix: str) -> None:
    """A chunk that does not match its checksum, a journal line cut short, a chunk that vanished: computed again."""
    path = _study(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    _write(path, whole)

    class Crash(BaseException):
        """Ends the process without a word."""

    with pytest.raises(Crash):
        _write(path, out, progress=Stop(8, Crash))
    assert not out.exists()
    chunks = sorted(p for p in _partial(out).rglob("*") if p.is_file() and ("chunks" in p.parts or "c" in p.parts))
    times = [p for p in chunks if suffix != ".zarr" or "time" in p.parts]
    times[1].write_bytes(times[1].read_bytes()[:-1])
    data = bytearray(times[2].read_bytes())
    data[len(data) // 2] ^= 1
    times[2].write_bytes(data)
    times[3].unlink()
    times[3].with_name("0.0123abcd.partial").write_bytes(b"half")
    journal = _partial(out) / "journal"
    journal.write_bytes(journal.read_bytes()[:-20])
    outcome = _write(path, out, resume=True)
    assert outcome.whole
    assert outcome.chunks - 7 + 3 <= outcome.computed <= outcome.chunks - 7 + 4
    assert _renamed(_bytes(out)) == _renamed(_bytes(whole))


def _command(path: Path, out: Path, *flags: str) -> subprocess.Popen[str]:
    code = f"import sys; from symperf import stream; {_SLOW}; from symperf.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "sweep", str(path), "-o", str(out), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


_SLOW = (
    "import time; stream.write.__kwdefaults__['chunk_points'] = 100; plain = stream.chunk; "
    "stream.chunk = lambda *a: (time.sleep(0.02), plain(*a))[1]"
)


def _wait_for(journal: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Until the journal of a running job has more than these lines."""
    for _ in range(6000):
        if journal.exists() and len(journal.read_bytes().splitlines()) > lines:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"no chunk was finished: {process.communicate()}")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("suffix", [".zarr", ".csv"])
def test_sigkill_loses_no_finished_chunk(tmp_path: Path, suffix: str) -> None:
    """Killed twice and resumed, the file is the uninterrupted one, and no finished chunk is computed again."""
    path = _study(tmp_path)
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    _write(path, whole)
    journal = _partial(out) / "journal"
    finished = 0
    for _ in range(2):
        process = _command(path, out, "--resume")
        _wait_for(journal, finished + 2, process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert not out.exists()
        done = len(journal.read_bytes().splitlines()) - 1
        assert done > finished
        finished = done
    process = _command(path, out, "--resume", "--json")
    printed, errors = process.communicate(timeout=100)
    assert (process.returncode, errors) == (0, "")
    answer = json.loads(printed)
    assert answer["whole"] is True
    assert answer["computed_chunks"] in (
        answer["chunks"] - finished,
        answer["chunks"] - finished + 1,
    )  # a line cut short
    assert _renamed(_bytes(out)) == _renamed(_bytes(whole))


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sigint_on_the_command_line(tmp_path: Path) -> None:
    """Ctrl-C: exit status 130, one line on standard error, a file that can be read."""
    path, out = _study(tmp_path), tmp_path / "out.csv"
    process = _command(path, out)
    _wait_for(_partial(out) / "journal", 2, process)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert errors.count("\n") == 1
    assert "--resume goes on" in errors
    assert 0 < _rows(out) < POINTS


# --- paths and flags


def test_a_path_that_exists_is_refused(tmp_path: Path) -> None:
    """Nothing is lost without being asked: neither a result nor an unfinished one, nor a folder of something else."""
    path, out = _study(tmp_path), tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(InputError, match=r"out.csv: it exists; --overwrite replaces it"):
        _write(path, out)
    with pytest.raises(InputError, match=r"there is nothing to resume"):
        _write(path, out, resume=True)
    with pytest.raises(InputError, match=r"expected one of them"):
        _write(path, out, resume=True, overwrite=True)
    assert out.read_text() == "mine"
    assert _write(path, out, overwrite=True).whole
    other = tmp_path / "other.csv"
    _write(path, other, progress=Stop(3))
    with pytest.raises(InputError, match=r"holds an unfinished sweep; --resume goes on with it"):
        _write(path, other)
    _study(tmp_path, TEXT.replace("count = 30", "count = 31"))
    with pytest.raises(InputError, match=r"begun with another study.*--overwrite starts again"):
        _write(path, other, resume=True)
    assert _write(path, other, overwrite=True).whole
    for name in ("folder.zarr", "folder.csv"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
        with pytest.raises(InputError, match=r"is a folder, and no earlier result"):
            _write(path, tmp_path / name, overwrite=True)
    first = _write(path, tmp_path / "z.zarr")
    assert _write(path, tmp_path / "z.zarr", overwrite=True) == first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", "expected a name that ends in .zarr, .nc, .parquet, .csv"),
        ("out", "expected a name that ends in"),
        ("out.zar", "did you mean .zarr"),
        ("none/out.csv", "is no folder"),
    ],
)
def test_bad_output_paths(tmp_path: Path, name: str, message: str) -> None:
    """The line says what a path should be."""
    with pytest.raises(InputError) as caught:
        _write(_study(tmp_path), tmp_path / name)
    assert message in str(caught.value)


def test_a_grid_that_does_not_fit_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed or written, with both figures."""
    huge = TEXT.replace("count = 30", "count = 1000000").replace(
        "[axes]", "[axes]\nvocab_size = " + str([*range(1, 9000)])
    )
    path = _study(tmp_path, huge)
    for suffix in FORMATS:
        with pytest.raises(InputError, match=r"need about [\d,.]+ GB, and the disk has [\d,.]+ GB free"):
            _write(path, tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == [path]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(stream.shutil, "disk_usage", lambda _: usage._replace(free=POINTS))
    with pytest.raises(InputError, match="GB free"):
        _write(_study(tmp_path), tmp_path / "out.zarr")


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work so far is kept."""
    path, out = _study(tmp_path), tmp_path / "out.csv"
    calls = []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("symperf.sinks.os.fsync", full)
        with pytest.raises(InputError, match=r"cannot be written: No space left on device; --resume goes on"):
            _write(path, out)
    outcome = _write(path, out, resume=True)
    assert outcome.whole
    assert 0 < outcome.computed < outcome.chunks


def test_two_processes_on_one_result(tmp_path: Path) -> None:
    """The second is refused; the folder is free again when the first is done."""
    folder = tmp_path / "job"
    with Journal(folder, {"a": 1}) as journal:
        journal.add(3, "mark")
        with pytest.raises(InputError, match="another process is working on it"):
            Journal(folder, {"a": 1})
    with Journal(folder, {"a": 1}) as journal:
        assert journal.done == {3: "mark"}
    with pytest.raises(InputError, match="begun with another a"):
        Journal(folder, {"a": 2})


# --- the command


def _main(*arguments: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(["sweep", *arguments])
    return code, out.getvalue(), errors.getvalue()


def test_the_command(tmp_path: Path) -> None:
    """It says what it made, as text or as JSON, and nothing on standard error."""
    path, out = _study(tmp_path), tmp_path / "out.csv"
    code, printed, errors = _main(str(path), "-o", str(out))
    assert (code, errors) == (0, "")
    assert f"{POINTS:,} points" in printed
    code, printed, errors = _main(str(path), "-o", str(out), "--overwrite", "--json")
    answer = json.loads(printed)
    assert (code, errors) == (0, "")
    assert answer["points"] == POINTS == answer["feasible"] + sum(answer["rejected"].values())
    assert answer["computed_chunks"] == answer["chunks"] == 1
    code, printed, errors = _main(str(path), "-o", str(out))
    assert (code, printed) == (2, "")
    assert errors.startswith("symperf: -o: ")


# --- bad studies

BAD = [
    ("", "axes: there are none"),
    ("model = ", "not valid TOML"),
    ("\xff", "not valid TOML"),
    (TEXT.replace("[axes]", "[axis]"), "unknown key 'axis'; did you mean axes"),
    (TEXT.replace("[axes]", "[axes]\ntpp = [1]"), "axis tpp: no such symbol; did you mean tp"),
    (TEXT.replace("recompute =", "recompte ="), "plan: unknown field 'recompte'; did you mean recompute"),
    (TEXT.replace("memory_efficiency =", "memory_eficiency ="), "did you mean memory_efficiency"),
    (TEXT.replace("[set]", "[set]\ntp = 8"), "it belongs under [plan]"),
    (TEXT.replace('"80 %"', '"80 GB"'), "set: memory_efficiency: found '80 GB'"),
    (TEXT.replace('"selective"', '"some"'), "plan: recompute: found 'some'"),
    (TEXT.replace("batch = 64", "batch = 64.5"), "batch: found 64.5, expected a whole number"),
    (TEXT.replace("batch = 64", 'batch = "64"'), "batch: found '64'"),
    (TEXT.replace("batch = 64\n", ""), "batch: is missing"),
    (TEXT.replace('model = "gpt3-175b"', 'model = "gpt3-175c"'), "did you mean"),
    (TEXT.replace('model = "gpt3-175b"', "model = 3"), "model: the model is 3"),
    (TEXT.replace('model = "gpt3-175b"\n', ""), "model: is missing"),
    (TEXT.replace("tp = [2, 4, 8]", "tp = []"), "axis tp: is empty"),
    (TEXT.replace("tp = [2, 4, 8]", "tp = 4"), "axis tp: found 4, expected a list or a range"),
    (TEXT.replace("tp = [2, 4, 8]", 'tp = ["2"]'), "axis tp: found '2', expected a whole number"),
    (TEXT.replace("tp = [2, 4, 8]", "tp = [2, nan]"), "axis tp: found nan"),
    (TEXT.replace("tp = [2, 4, 8]", "tp = [1979-05-27]"), "axis tp: found datetime.date"),
    (TEXT.replace("from = 1, to = 8", "from = 8, to = 1"), "axis pp: is reversed or empty"),
    (TEXT.replace("powers_of", "power_of"), "axis pp: unknown key 'power_of'; did you mean powers_of"),
    (TEXT.replace("[true, false]", '["yes"]'), "axis sequence_parallel: "),
    (TEXT.replace("micro_batch = [1, 2],", "micro_batch = [1],"), "micro_batch has 1 values, precision has 2"),
    (TEXT.replace("[plan]", "[plan]\ntp = 2"), "axes: tp is fixed in [plan] too"),
    (TEXT.replace("[plan]", "[plan]\nmicro_batch = 2"), "axes: micro_batch is fixed in [plan] too"),
    (TEXT.replace("[axes]", "[axes]\nbatch = [1]"), "axes: batch is fixed in the top too"),
    (TEXT.replace('"time",', '"tme",'), "unknown quantity 'tme'"),
    (TEXT.replace('["time", "memory/weights/layers"]', '"time"'), "outputs: found 'time', expected a list"),
    (TEXT.replace('["fits"]', '"fits"'), "where: found 'fits', expected a list"),
    (TEXT.replace('["fits"]', '["__import__(1)"]'), "where"),
    (TEXT.replace('"64 / (tp * pp)"', "64"), "derived dp: found 64, expected an expression as text"),
    (TEXT.replace('"64 / (tp * pp)"', '"64 / tp.real"'), "derived dp: found '.' at column 8"),
    (TEXT.replace('"64 / (tp * pp)"', "\"open('/etc/passwd')\""), "derived dp: found"),
    (TEXT.replace('"64 / (tp * pp)"', '"9**9**9"'), "an exponent"),
    (TEXT.replace("dp =", "dq ="), "derived dq: no such symbol"),
    (TEXT.replace("[derived]", "[derived]\ntp = '3'"), "tp"),
    ("axes = 3", "axes: found 3, expected a table"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=lambda value: repr(value)[-40:])
def test_bad_studies_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    """Exit status 2; the line names the file, the key, what was found and what was expected. Nothing is written."""
    path = _study(tmp_path, text)
    code, printed, errors = _main(str(path), "-o", str(tmp_path / "out.csv"))
    assert (code, printed) == (2, "")
    assert errors.count("\n") == 1
    assert str(path) in errors
    assert message in errors
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "no such file"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "byte 0 is not UTF-8"),
        (lambda path: path.write_bytes(b"#" * 11_000_000), "is larger than"),
        (lambda _: None, "no such file"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, make: Any, message: str) -> None:
    """What is no text file is told."""
    path = tmp_path / "study.toml"
    make(path)
    with pytest.raises(InputError, match=message):
        load(path)


def test_a_model_and_a_system_beside_the_study(tmp_path: Path) -> None:
    """Relative paths count from the study's folder."""
    (tmp_path / "mine.toml").write_text('base = "a100-80gb-sxm"\nmemory_capacity = "40 GB"\n')
    text = TEXT.replace('system = "a100-80gb-sxm"\n', "").replace(
        "[axes]", '[axes]\nsystem = ["mine.toml", "h100-sxm"]'
    )
    study = load(_study(tmp_path, text))
    assert [system.name for system in study.sweep.axes[0].members["system"]] == ["mine", "h100-sxm"]


def test_the_example_of_the_module_is_a_study(tmp_path: Path) -> None:
    """What the documentation shows is accepted."""
    from symperf import study as module

    lines = str(module.__doc__).splitlines()
    text = "\n".join(line[4:] for line in lines if line.startswith("    "))
    assert tomllib.loads(text)["batch"] == 64
    assert load(_study(tmp_path, text)).sweep.points > 1000
