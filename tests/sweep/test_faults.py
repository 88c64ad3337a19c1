"""A sweep whose file system fails at any call: killed, torn, full, short, clocks that jump. Resumed, it is the
uninterrupted one bit for bit, and nothing is left beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import faults
from support.effort import NIGHTLY
from support.faults import FULL, KILL, KILLED, SHORT, TEAR, Faulted, Series, run_faulted
from support.paths import ROOT
from support.study_cases import FORMATS, SMALL, study_file

if TYPE_CHECKING:
    from pathlib import Path

TWO_AXES = SMALL + 'memory_bandwidth = { from = "1 TB/s", to = "4 TB/s", count = 3 }\n'
MODULES = {
    ".csv": ["pandas", "pyarrow.csv"],
    ".parquet": ["pandas", "pyarrow.parquet"],
    ".nc": ["xarray", "h5netcdf", "h5py"],
    ".zarr": ["xarray", "zarr"],
}
"""What a sweep imports while it runs: once for all of its faults."""
KINDS = FORMATS if NIGHTLY else (".csv",)
CALM = Series(0, stop=1, jump=10**9)
"""Nothing happens, but that clocks jump by thirty years."""
SERIES = (
    [Series(KILL), Series(TEAR), Series(FULL), Series(SHORT, stop=1), Series(KILL, fresh=False)]
    if NIGHTLY
    else [
        Series(KILL, start=2, step=17),
        Series(TEAR, start=5, step=21),
        Series(FULL, step=19),
        Series(SHORT, stop=1),
        Series(KILL, start=1, step=7, stop=20, fresh=False),
    ]
)
"""By `nightly` every call."""


def _check(each: Faulted, kind: int, digest: str) -> None:
    """The rules of one fault, in a folder that was empty."""
    assert each.after is not None
    assert (each.after[0], each.mended, each.left) == (0, digest, ()), each
    if each.code == 2:
        assert kind == FULL
        assert each.text.startswith("symperf: ")
        assert each.text.count("\n") == 1
        assert "No space left on device, free some" in each.text
    else:
        assert each.code in ((0, KILLED) if kind in (KILL, TEAR) else (0,))
    if each.code == 0 and kind != FULL:  # where nothing more can be written, remains stay until the next
        assert each.digest == digest


@pytest.mark.parametrize("suffix", KINDS)
def test_a_fault_at_any_call_loses_nothing(tmp_path: Path, suffix: str) -> None:
    """Also a kill after another, each in what the one before has left."""
    path, out = study_file(tmp_path, TWO_AXES), tmp_path / "work" / f"out{suffix}"
    warm = [["sweep", str(path), "-o", str(tmp_path / "warm.csv")]]  # of that format, since Zarr leaves threads behind
    ((calm,), *found) = run_faulted(
        faults.build(tmp_path),
        out.parent,
        ["sweep", str(path), "-o", str(out)],
        [CALM, *SERIES],
        out=str(out),
        modules=MODULES[suffix],
        warm=warm,
    )
    assert (calm.code, calm.digest) == (0, calm.mended)
    for series, each in zip(SERIES, found, strict=True):
        assert "Traceback" not in "".join(one.text + (one.after or (0, ""))[1] for one in each)
        assert {one.code for one in each} & {{FULL: 2, SHORT: 0}.get(series.kind, KILLED)}
        if series.fresh:
            for one in each:
                _check(one, series.kind, calm.digest)
        else:
            assert (each[-1].code, each[-1].digest, each[-1].left) == (0, calm.digest, ())


MOMENTS = """
import json, os, random, signal, sys, time
from importlib import import_module
from pathlib import Path
from symperf.cli import main
from symperf.sweep import stream
stream.POINTS = 4
modules, study, out, kills, rivals = json.loads(sys.argv[1])
for name in modules:
    import_module(name)
path, rng = Path(out), random.Random(out[-4:])
partial = path.with_name(path.name + ".partial")
sys.stdout = open(os.devnull, "w")
main(["sweep", study, "-o", study + ".csv"])  # what is compiled is compiled once

def begin(*flags):
    child = os.fork()
    if not child:
        os._exit(main(["sweep", study, "-o", out, *flags]))
    return child

def end(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def going_on():
    return ["--resume"] if path.exists() or partial.exists() else []

began = time.monotonic()
codes = [end(begin())]
took = time.monotonic() - began
whole = sorted(each.read_bytes() for each in ([path] if path.is_file() else path.rglob("*")) if each.is_file())
while codes.count(-9) < kills:
    child = begin("--overwrite") if not partial.exists() else begin("--resume")
    time.sleep(rng.uniform(0, took))
    os.kill(child, signal.SIGKILL)
    codes.append(end(child))
raced = []
for _ in range(rivals):
    first = begin("--overwrite")
    time.sleep(rng.uniform(0, took))
    raced.append((end(begin("--overwrite")), end(first)))
codes.append(end(begin(*going_on())))
same = whole == sorted(each.read_bytes() for each in ([path] if path.is_file() else path.rglob("*")) if each.is_file())
print(json.dumps([codes, raced, same, [each.name for each in path.parent.iterdir()]]), file=sys.__stdout__)
"""
"""What a sweep is after kills at random moments, each in what the last has left, and others that begin it anew."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.skipif(not NIGHTLY, reason="takes minutes")
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_hundred_kills_at_random_moments_and_twenty_rivals(tmp_path: Path, suffix: str) -> None:
    path, out = study_file(tmp_path, TWO_AXES), tmp_path / "work" / f"out{suffix}"
    out.parent.mkdir()
    given = json.dumps([MODULES[suffix], str(path), str(out), 100, 20])
    done = subprocess.run([sys.executable, "-c", MOMENTS, given], text=True, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    codes, raced, same, names = json.loads(done.stdout)
    assert set(codes) <= {0, KILLED}
    assert "Traceback" not in done.stderr
    assert set(done.stderr.splitlines()) <= {each for each in done.stderr.splitlines() if "another process" in each}
    assert {code for _, code in raced} == {0}  # the one that runs is never disturbed
    assert {code for code, _ in raced} <= {0, 2}
    assert same
    assert set(names) <= {out.name, f".{out.name}.sweep"}
