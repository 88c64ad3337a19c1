"""A process killed at any write: whatever it was doing, the resumed result is the uninterrupted one bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.effort import NIGHTLY
from support.paths import ROOT
from support.study_cases import FORMATS, SMALL, bytes_of, partial, study_file, write_study

if TYPE_CHECKING:
    from pathlib import Path

TWO_AXES = SMALL + 'memory_bandwidth = { from = "1 TB/s", to = "4 TB/s", count = 3 }\n'
CODE = """
import os, signal, sys
from pathlib import Path
from symperf.sweep.stream import write
from symperf.sweep.study import load

study, out = load(sys.argv[1]).sweep, Path(sys.argv[2])
for at in map(int, sys.argv[3:]):
    child = os.fork()
    if not child:  # writes: everything that the audit hooks of Python see done to files below the result's folder
        left = [at]

        def count(event, args):
            if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"):
                named = args[0] if isinstance(args[0], str) else ""
                if named.startswith(str(out.parent)) and (event != "open" or args[1] not in ("r", "rb")):
                    left[0] -= 1
                    if left[0] < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        write(study, out, chunk_points=4, resume=out.exists() or out.with_name(out.name + ".partial").exists())
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
AT = tuple(range(60)) if NIGHTLY else (0, 1, 3, 6, 9, 13, 18, 24)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("suffix", FORMATS if NIGHTLY else (".csv",))
def test_a_kill_at_any_write_loses_nothing(tmp_path: Path, suffix: str) -> None:
    """Killed at one write after another, each time in what the last one left."""
    path, out = study_file(tmp_path, TWO_AXES), tmp_path / "work" / f"out{suffix}"
    whole = tmp_path / f"out{suffix}"
    out.parent.mkdir()
    write_study(path, whole, chunk_points=4)
    command = [sys.executable, "-c", CODE, str(path), str(out), *map(str, AT)]
    done = subprocess.run(command, text=True, cwd=ROOT, capture_output=True, check=True)
    codes = set(map(int, done.stdout.split()))
    assert codes <= {0, -signal.SIGKILL}, done.stderr
    assert -signal.SIGKILL in codes
    assert "Traceback" not in done.stderr
    write_study(path, out, chunk_points=4, resume=True)
    assert [data for _, data in sorted(bytes_of(out).items())] == [data for _, data in sorted(bytes_of(whole).items())]
    assert not partial(out).exists()
    assert [each.name for each in out.parent.iterdir() if each.name.endswith((".gone", ".part", ".partial"))] == []
