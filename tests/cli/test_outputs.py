"""What the command line writes, wherever it is told to: whole, under names of its own, and refused in one line."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT

from symperf.cli import main
from symperf.common.artefacts import cache_fault, cache_folder
from symperf.common.outputs import write_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRAIN = ["train", "llama-2-7b", "-s", "h100-sxm", "--batch", "8", "--sequence", "128"]
WRITERS = {
    "derive": ["derive", *TRAIN, "--latex", "--output"],
    "plot": ["regimes", *TRAIN, "--over", "memory_bandwidth", "--from", "1e12", "--to", "2e12", "--plot"],
    "timeline": [*TRAIN, "--timeline"],
    "tex": ["formulas", "ring_all_reduce_time", "--tex"],
    "technology": ["technology", "-o"],
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["n" * 300 + ".svg", "a\0b.svg", "none/x.svg", "x/" * 3000 + "x.svg"])
def test_names_that_no_file_can_have(
    writer: str, name: str, tmp_path: Path, refused: Callable[[list[str]], str]
) -> None:
    assert len(refused([*WRITERS[writer], str(tmp_path / name)])) < 1000
    assert list(tmp_path.iterdir()) == []


def test_what_another_process_left_is_in_no_ones_way(tmp_path: Path) -> None:
    """Containers repeat the numbers of processes: no name is made of one."""
    (tmp_path / f".symperf-{os.getpid()}.part").write_text("left")
    (tmp_path / "x").write_text("old")
    (tmp_path / "x").chmod(0o604)
    write_file(tmp_path / "x", "new", "{}")
    write_file(tmp_path / "y", "new", "{}")
    assert (tmp_path / "x").read_text() == (tmp_path / "y").read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o604
    assert stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o666 & ~mask
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_that_no_one_reads_is_not_waited_for(
    writer: str, tmp_path: Path, refused: Callable[[list[str]], str]
) -> None:
    os.mkfifo(tmp_path / "x.svg")
    assert "a pipe that no one reads" in refused([*WRITERS[writer], str(tmp_path / "x.svg")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_is_read_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "x"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "new", "{}")
    assert os.read(reader, 10) == b"new"
    os.close(reader)


@pytest.mark.parametrize("base", ["a\\u0000b.toml", "n" * 300 + ".toml", "x/" * 3000 + "x.toml", "n" * 5000])
def test_bases_that_no_file_can_be(base: str, tmp_path: Path, refused: Callable[[list[str]], str]) -> None:
    (tmp_path / "s.toml").write_text(f'base = "{base}"\n')
    assert len(refused([*TRAIN[:3], str(tmp_path / "s.toml"), *TRAIN[4:]])) < 1500


def test_an_error_that_no_verb_expects_is_one_line(monkeypatch, refused: Callable[[list[str]], str]) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error", "/some/file")

    monkeypatch.setattr("symperf.cli.train.run", broken)
    assert refused(TRAIN) == "symperf: '/some/file': Input/output error\n"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("after", [0.1, 0.35])
def test_an_interrupt_while_modules_are_imported(after: float) -> None:
    code = "import sys; from symperf.cli import main; print('.', flush=True); sys.exit(main())"
    command = [sys.executable, "-c", code, *TRAIN]
    whole = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    if first + output == whole and not errors:  # it came as the interpreter ended, which obeys it without a word
        assert process.returncode in (0, -signal.SIGINT)
    else:
        assert (process.returncode, errors) == (130, "symperf: interrupted\n")


def test_a_user_without_a_home_has_a_cache(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYMPERF_CACHE", "~/x")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "x"
    monkeypatch.delenv("SYMPERF_CACHE")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # what Python does where no one is known
    assert cache_folder().is_absolute()


@pytest.mark.skipif(os.name != "posix", reason="needs owners of files")
def test_a_refused_cache_is_told(monkeypatch, tmp_path: Path, capsys) -> None:
    """The answer is the same, and a line says why it takes so long."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SYMPERF_CACHE", str(folder))
    assert cache_fault() is None
    folder.mkdir(mode=0o700)
    assert cache_fault() is None
    folder.chmod(0o777)
    assert main(["cache"]) == 0
    out, err = capsys.readouterr()
    assert "0 artefacts" in out
    assert err.startswith("symperf: note: the cache")
    assert "chmod 700" in err
    assert err.count("\n") == 1
