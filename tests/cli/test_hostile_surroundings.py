"""Folders and ports of a hostile local user run nothing: what lies where one works is neither imported nor obeyed."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.schema_cases import TRAIN
from support.study_cases import study_file, sweep_command

from symperf.common import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = (
    "numpy", "sympy", "json", "yaml", "symperf", "sitecustomize", "usercustomize", "kernel", "matplotlib", "evil",
    "pandas", "pyarrow", "rich", "numba", "platformdirs",
)  # fmt: skip
COMMANDS = (
    (*TRAIN, "--json"),
    ("regimes", *TRAIN, "--over", "memory_bandwidth", "--from", "1e12", "--to", "2e12", "--plot", "x.svg"),
)
CODE = "import sys; from symperf.cli import main; sys.exit(max(main(each.split()) for each in sys.argv[1:]))"


class Attack:
    """What runs where its pickle is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.mark,)


def test_the_working_folder_runs_nothing(tmp_path: Path) -> None:
    """Modules of the names that are imported, and files that libraries look for where they are started.

    `-P` is what the program `symperf` does: the working folder is no place of modules.
    """
    mark = tmp_path / "ran"
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n", encoding="utf-8")
    (tmp_path / "matplotlibrc").write_text("backend: module://evil\ntext.usetex: True\n", encoding="utf-8")
    attack = f"- !!python/object/apply:os.system ['touch {mark}']\n"
    for name in (".numba_config.yaml", "dask.yaml", "distributed.yaml"):
        (tmp_path / name).write_text(attack, encoding="utf-8")
    command = [sys.executable, "-P", "-c", CODE, *map(" ".join, COMMANDS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not mark.exists()
    assert (tmp_path / "x.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A port that answers whoever comes with a pickle, in the frames that Dask has."""
    attack = pickle.dumps(Attack(tmp_path / "ran"))
    frames = (1).to_bytes(8, "little") + len(attack).to_bytes(8, "little") + attack
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    guest, _ = server.accept()
                except OSError:
                    return
                with guest:
                    guest.sendall(frames + attack)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.skipif(os.name != "posix", reason="closes a port that is waited on")
@pytest.mark.filterwarnings("ignore")
def test_a_port_that_is_no_scheduler_runs_nothing(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TIMEOUT_S", 0.5)
    code, printed, errors = sweep_command(
        str(study_file(tmp_path)), "-o", str(tmp_path / "x.csv"), "--dask", f"tcp://127.0.0.1:{port}"
    )
    assert (code, printed, errors.count("\n")) == (2, "", 1)
    assert "no scheduler at" in errors
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("rc", "backend"), [(b"font.family: \xff\n", ""), (b"", "nonsense")])
def test_settings_that_matplotlib_refuses_are_one_line(tmp_path: Path, rc: bytes, backend: str) -> None:
    (tmp_path / "matplotlibrc").write_bytes(rc)
    code = "import symperf.pictures.style as s\ntry:\n    with s.style(): pass\nexcept s.InputError as e: print(e)"
    environment = os.environ | ({"MPLBACKEND": backend} if backend else {})
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("plot: matplotlib refuses its own settings: ")
    assert "Traceback" not in done.stderr
