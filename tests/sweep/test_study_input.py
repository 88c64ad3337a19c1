"""Studies: the file, the output path and the disk are checked, and each fault is one line."""

from __future__ import annotations

import json
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from support.study_cases import (
    FORMATS,
    POINTS,
    TEXT,
    Stop,
    study_file,
    sweep_command,
    write_study,
)

from symperf.common.errors import InputError
from symperf.sweep import stream
from symperf.sweep.journal import Journal
from symperf.sweep.study import load

if TYPE_CHECKING:
    from pathlib import Path

# --- paths and flags


def test_a_path_that_exists_is_refused(tmp_path: Path) -> None:
    """Nothing is lost without being asked: neither a result nor an unfinished one, nor a folder of something else."""
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(InputError, match=r"out.csv: it exists; --overwrite replaces it"):
        write_study(path, out)
    with pytest.raises(InputError, match=r"there is nothing to resume"):
        write_study(path, out, resume=True)
    with pytest.raises(InputError, match=r"expected one of them"):
        write_study(path, out, resume=True, overwrite=True)
    assert out.read_text() == "mine"
    assert write_study(path, out, overwrite=True).whole
    other = tmp_path / "other.csv"
    write_study(path, other, progress=Stop(3))
    with pytest.raises(InputError, match=r"holds an unfinished sweep; --resume goes on with it"):
        write_study(path, other)
    study_file(tmp_path, TEXT.replace("count = 30", "count = 31"))
    with pytest.raises(InputError, match=r"begun with another study.*--overwrite starts again"):
        write_study(path, other, resume=True)
    assert write_study(path, other, overwrite=True).whole
    for name in ("folder.zarr", "folder.csv"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
        with pytest.raises(InputError, match=r"is a folder, and no earlier result"):
            write_study(path, tmp_path / name, overwrite=True)
    first = write_study(path, tmp_path / "z.zarr")
    assert write_study(path, tmp_path / "z.zarr", overwrite=True) == first


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
        write_study(study_file(tmp_path), tmp_path / name)
    assert message in str(caught.value)


def test_a_grid_that_does_not_fit_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed or written, with both figures."""
    huge = TEXT.replace("count = 30", "count = 1000000").replace(
        "[axes]", "[axes]\nvocab_size = " + str([*range(1, 9000)])
    )
    path = study_file(tmp_path, huge)
    for suffix in FORMATS:
        with pytest.raises(InputError, match=r"need about [\d,.]+ [GT]B, and the disk has [\d,.]+ [GT]B free"):
            write_study(path, tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == [path]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(stream.shutil, "disk_usage", lambda _: usage._replace(free=POINTS))
    with pytest.raises(InputError, match=r"need about .* .?B, and the disk has .* .?B free"):
        write_study(study_file(tmp_path), tmp_path / "out.zarr")


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work so far is kept."""
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    calls = []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("symperf.sweep.sinks.os.fsync", full)
        with pytest.raises(InputError, match=r"cannot be written: No space left on device, .*; --resume goes on"):
            write_study(path, out)
    outcome = write_study(path, out, resume=True)
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


def test_the_command(tmp_path: Path) -> None:
    """It says what it made, as text or as JSON, and nothing on standard error."""
    path, out = study_file(tmp_path), tmp_path / "out.csv"
    code, printed, errors = sweep_command(str(path), "-o", str(out))
    assert (code, errors) == (0, "")
    assert f"{POINTS:,} points" in printed
    code, printed, errors = sweep_command(str(path), "-o", str(out), "--overwrite", "--json")
    answer = json.loads(printed)
    assert (code, errors) == (0, "")
    assert answer["points"] == POINTS == answer["feasible"] + sum(answer["rejected"].values())
    assert answer["computed_chunks"] == answer["chunks"] == 1
    code, printed, errors = sweep_command(str(path), "-o", str(out))
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
    path = study_file(tmp_path, text)
    code, printed, errors = sweep_command(str(path), "-o", str(tmp_path / "out.csv"))
    assert (code, printed) == (2, "")
    assert errors.count("\n") == 1
    assert str(path) in errors
    assert message in errors
    assert list(tmp_path.iterdir()) == [path]


HOSTILE = [
    "__import__('os').system('touch owned')",
    "().__class__.__base__.__subclasses__()",
    "eval('1')",
    "lambda: 1",
    "tp if tp else pp",
    "[tp for tp in (1,)]",
    "tp := 2",
    "f'{tp}'",
    "tp; import os",
    "tp\nimport os",
    "tp and __builtins__",
    "globals",
    "{{tp}}",
    "${tp}",
    "tp # dp",
    "9**9**9**9",
    "(" * 5000 + "tp" + ")" * 5000,
    "-" * 100_000 + "tp",
    "tp" + " + tp" * 200_000,
    "1" * 5000,
    "1e999",
    "\u0000tp",
    "\uff54\uff50",
    "tp\u202e",
    "",
    " ",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text)[:30])
@pytest.mark.parametrize("place", ["derived", "where", "named where", "outputs", "axis", "model", "set"])
def test_hostile_text_is_refused_wherever_it_stands(tmp_path: Path, place: str, text: str) -> None:
    """One line, exit status 2, at once; nothing is run and nothing is written."""
    quoted = json.dumps(text)
    study = {
        "derived": TEXT.replace('"64 / (tp * pp)"', quoted),
        "where": TEXT.replace('["fits"]', f"[{quoted}]"),
        "named where": TEXT.replace('["fits"]', "{ mine = " + quoted + " }"),
        "outputs": TEXT.replace('"time",', f"{quoted},"),
        "axis": TEXT.replace("[axes]", f"[axes]\n{quoted} = [1, 2]"),
        "model": TEXT.replace('"gpt3-175b"', quoted),
        "set": TEXT.replace('"80 %"', quoted),
    }[place]
    path = study_file(tmp_path, study)
    code, printed, errors = sweep_command(str(path), "-o", str(tmp_path / "out.csv"))
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert errors.isprintable() or errors[:-1].isprintable()
    assert len(errors) < 2000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is a folder, expected a study"),
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
    study = load(study_file(tmp_path, text))
    assert [system.name for system in study.sweep.axes[0].members["system"]] == ["mine", "h100-sxm"]


def test_the_example_of_the_module_is_a_study(tmp_path: Path) -> None:
    """What the documentation shows is accepted."""
    from symperf.sweep import study as module

    lines = str(module.__doc__).splitlines()
    text = "\n".join(line[4:] for line in lines if line.startswith("    "))
    assert tomllib.loads(text)["batch"] == 64
    assert load(study_file(tmp_path, text)).sweep.points > 1000
