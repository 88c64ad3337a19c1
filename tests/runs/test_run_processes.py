"""`Run` in other processes: a start that needs no SymPy, a damaged or missing cache, any hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT
from support.run_cases import make

if TYPE_CHECKING:
    from pathlib import Path


def _python(code: str, folder: Path, **environment: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(ROOT), "SYMPERF_CACHE": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty private cache folder."""
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


PREDICTION = """
import json, sys
import symperf as sf
run = sf.training(sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm"), sf.Plan(tp=8, micro_batch=4), batch=4,
                  sequence=2048)
run.table(), run.shares(), run.sensitivity(), run.memory_terms(), run.fits
print(json.dumps([run.value("time"), run.value("memory"), sorted({"sympy", "numpy", "numba"} & sys.modules.keys())]))
"""


def test_a_warm_prediction_imports_nothing_heavy(folder: Path) -> None:
    """The first process builds with SymPy; the second reads what it kept, without SymPy, NumPy or Numba."""
    cold, warm = json.loads(_python(PREDICTION, folder)), json.loads(_python(PREDICTION, folder))
    assert cold[:2] == warm[:2]
    assert "sympy" in cold[2], "or the test shows nothing"
    assert warm[2] == []


def test_a_damaged_cache_is_built_again(folder: Path) -> None:
    """A file that is cut short changes no answer, and is whole again afterwards."""
    cold = json.loads(_python(PREDICTION, folder))
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert json.loads(_python(PREDICTION, folder)) == cold
    assert path.read_bytes() == whole


HELP = """
import sys
from symperf.cli import main
try:
    main(sys.argv[1:] or ["--help"])
except SystemExit as done:
    assert not done.code, done.code
heavy = {"sympy", "numpy", "numba"} & sys.modules.keys()
assert not heavy, heavy
"""


def test_help_imports_nothing_heavy(folder: Path) -> None:
    """`symperf --help` is quick to start."""
    assert "train" in _python(HELP, folder)


PROGRAM = """
import hashlib, json
import symperf as sf
run = sf.training(sf.Model.load("llama-2-7b"), sf.System.load("h100-sxm"), sf.Plan(tp=2, pp=2, dp=2, zero=1), batch=8,
                  sequence=2048)
print(run.structure.key())
print(run.compiled.program.text())
print(json.dumps(run.compiled.resources), run.latex())
"""


def test_programs_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Two processes with unlike hash seeds and no common cache build the same program and the same LaTeX."""
    texts = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir(mode=0o700)
        texts.append(_python(PROGRAM, tmp_path / seed, PYTHONHASHSEED=seed))
    assert texts[0] == texts[1]


def test_a_run_without_a_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be kept, answers are the same."""
    from symperf.train.compile import compile_step

    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SYMPERF_CACHE", str(tmp_path / "file"))
    expected = make("gpt-22b", batch=4, tp=8, micro_batch=4).value("time")
    compile_step.cache_clear()
    assert make("gpt-22b", batch=4, tp=8, micro_batch=4).value("time") == expected
