"""Several processes and one result, and stops at the worst moments: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.effort import NIGHTLY
from support.paths import ROOT
from support.study_cases import FORMATS, SMALL, Stop, bytes_of, partial, study_file, sweep_command, write_study

from symperf.common.errors import InputError
from symperf.sweep import sinks
from symperf.sweep.work_folder import WorkFolder

if TYPE_CHECKING:
    from pathlib import Path

KINDS = FORMATS if NIGHTLY else (".zarr", ".csv")


@pytest.mark.parametrize("suffix", KINDS)
def test_overwrite_leaves_a_running_sweep_alone(tmp_path: Path, suffix: str) -> None:
    """It is refused before anything is removed; what was there of the other is there, and goes on to the same file."""
    path, out = study_file(tmp_path), tmp_path / f"out{suffix}"
    write_study(path, out, progress=Stop(4))
    with WorkFolder(partial(out)):
        before = bytes_of(partial(out)), bytes_of(out)
        for flags in ({"overwrite": True}, {"resume": True}):
            with pytest.raises(InputError, match="another process is working on it"):
                write_study(path, out, **flags)
        code, printed, errors = sweep_command(str(path), "-o", str(out), "--overwrite")
        assert (code, printed, errors.count("\n")) == (2, "", 1)
        assert (bytes_of(partial(out)), bytes_of(out)) == before
    outcome = write_study(path, out, resume=True)
    assert (outcome.whole, outcome.computed) == (True, outcome.chunks - 4)


@pytest.mark.parametrize("suffix", KINDS)
def test_a_result_that_another_process_made_meanwhile_is_kept(tmp_path: Path, suffix: str) -> None:
    """The second met an empty folder when the first was done with it: it asks again what it asked before the lock."""
    path, out = study_file(tmp_path), tmp_path / f"out{suffix}"
    write_study(path, out)
    before = bytes_of(out)
    partial(out).mkdir()
    assert write_study(path, out, resume=True).before
    assert not partial(out).exists()
    partial(out).mkdir()
    with pytest.raises(InputError, match="holds an unfinished sweep"):
        write_study(path, out)
    assert bytes_of(out) == before


@pytest.mark.parametrize("suffix", KINDS)
def test_a_kill_just_after_the_file_is_in_place_loses_nothing(tmp_path: Path, suffix: str, monkeypatch) -> None:
    """The folder of the work goes at once or not at all; its remains go with the next process."""
    path, out = study_file(tmp_path), tmp_path / f"out{suffix}"

    class Killed(BaseException):
        pass

    plain = shutil.rmtree

    def killed(path: Path, **more: bool) -> None:
        if str(path).endswith(".gone"):
            raise Killed
        plain(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            write_study(path, out)
    assert not partial(out).exists()
    before = bytes_of(out)
    outcome = write_study(path, out, resume=True)
    assert (outcome.before, outcome.computed) == (True, 0)
    write_study(path, out, overwrite=True, progress=Stop(2))
    assert write_study(path, out, resume=True).whole
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".gone")] == []
    assert bytes_of(out) == before


def test_ctrl_c_while_the_file_is_made_says_how_to_go_on(tmp_path: Path, monkeypatch) -> None:
    """Nothing is computed again."""
    path, out = study_file(tmp_path, SMALL), tmp_path / "out.csv"

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sinks, "replace", stopped)
        code, printed, errors = sweep_command(str(path), "-o", str(out))
    assert (code, printed) == (130, "")
    assert "4 of 4 points are computed" in errors
    assert "--resume goes on" in errors
    assert not out.exists()
    outcome = write_study(path, out, resume=True)
    assert (outcome.whole, outcome.computed) == (True, 0)


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_eight_processes_at_once_on_one_result(tmp_path: Path) -> None:
    """One makes it, each other is told in one line; whatever the order, the result is whole and no work is left."""
    path, out = study_file(tmp_path, SMALL), tmp_path / "out.csv"
    code = """
import os, sys
from symperf.cli import main
from symperf.sweep.study import load
load(sys.argv[2])  # what is compiled is compiled once
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        os._exit(main(sys.argv[1:]))
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
    command = [sys.executable, "-c", code, "sweep", str(path), "-o", str(out), "--overwrite", "--json"]
    done = subprocess.run(command, text=True, cwd=ROOT, capture_output=True, check=True)
    assert all("another process is working on it" in line for line in done.stderr.splitlines()), done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    assert set(codes) <= {0, 2}
    assert codes.count(0) == 8 - done.stderr.count("\n") >= 1
    assert out.read_text().count("\n") == 5
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith((".partial", ".gone", ".part"))] == []


# --- places where no result can be


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("suffix", KINDS)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path, out = study_file(tmp_path, SMALL), tmp_path / f"out{suffix}"
    os.mkfifo(out)
    for flag in ("--resume", "--overwrite"):
        code, _, errors = sweep_command(str(path), "-o", str(out), flag)
        assert (code, errors.count("\n")) == (2, 1)
        assert "is a device or a pipe" in errors
    code, _, errors = sweep_command(str(out), "-o", str(tmp_path / "other.csv"))
    assert (code, errors.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["n" * 300, "n" * 245, "é" * 124, "n" * 5000, "a\0b", "a\udcff"])
@pytest.mark.parametrize("suffix", KINDS)
def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path, suffix: str, name: str) -> None:
    """Before anything is computed, with nothing left behind."""
    path = study_file(tmp_path, SMALL)
    code, printed, errors = sweep_command(str(path), "-o", str(tmp_path / f"{name}{suffix}"))
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert len(errors) < 1000
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    path = study_file(tmp_path, SMALL)
    (tmp_path / "shut").mkdir(mode=0o500)
    code, _, errors = sweep_command(str(path), "-o", str(tmp_path / "shut" / "out.csv"))
    assert (code, errors.count("\n")) == (2, 1)
    assert "Permission denied, change its permissions" in errors


# --- numbers and lists


def test_whole_numbers_beyond_64_bits_are_floats(tmp_path: Path) -> None:
    """A budget in FLOPs may be any: it is never another number in silence."""
    text = SMALL.replace("[axes]", 'where = ["budget > 1e19"]\n[axes]\nbudget = [1000000000000000000, 100e18, 10.0e30]')
    outcome = write_study(study_file(tmp_path, text), tmp_path / "out.csv")
    assert outcome.counts[""] == 8
    rows = (tmp_path / "out.csv").read_text()
    assert "9223372036854775808" not in rows
    exact = study_file(tmp_path, text.replace("1000000000000000000, 100e18, 10.0e30", "9007199254740992, 3, -1"))
    write_study(exact, tmp_path / "exact.csv")
    assert {line.split(",")[0] for line in (tmp_path / "exact.csv").read_text().splitlines()[1:]} == {
        "9007199254740992",
        "3",
        "-1",
    }


@pytest.mark.parametrize(
    ("more", "axes", "message"),
    [
        ("where = [" + ", ".join(f'"tp <= {k + 1}"' for k in range(212)) + "]", "", "found 212 conditions"),
        ("outputs = [" + ", ".join(f'"o{k}"' for k in range(20000)) + "]", "", "found 20,000 names"),
        ("", "\n[derived]\n" + "\n".join(f'd{k} = "tp * {k}"' for k in range(5000)), "found 5,000 names"),
        ("", "z = { zip = { " + ", ".join(f"z{k} = [1]" for k in range(5000)) + " } }", "found 5,000 zipped symbols"),
        ("", "\n".join(f"a{k} = [1]" for k in range(5000)), "axes"),
        ("", "budget = [" + "9" * 400 + "]", "above 10^308"),
        ("", ".".join("a" * 3000) + " = 1", "a key of more than 50 parts"),
        ("[" + ".".join("a" * 400_000) + "]", "", "a key of more than 50 parts"),
        ("", "sequence_parallel = [" + "true, " * 20000 + "]", "comes twice"),
    ],
)
def test_lists_that_no_one_writes_are_refused_at_once(tmp_path: Path, more: str, axes: str, message: str) -> None:
    path = study_file(tmp_path, SMALL.replace("[axes]", f"{more}\n[axes]") + axes)
    code, printed, errors = sweep_command(str(path), "-o", str(tmp_path / "out.csv"))
    assert (code, printed, errors.count("\n")) == (2, "", 1), errors
    assert message in errors
    assert len(errors) < 700


def test_a_hundred_conditions_have_codes(tmp_path: Path) -> None:
    text = SMALL.replace("[axes]", "where = [" + ", ".join(f'"tp <= {k + 1}"' for k in range(100)) + "]\n[axes]")
    outcome = write_study(study_file(tmp_path, text), tmp_path / "out.nc")
    assert outcome.counts == {"": 1, "not_tp_le_1": 3}
