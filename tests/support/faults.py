"""Commands run while the file system fails: killed, torn, full or short at the nth call that changes a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.paths import ROOT
from support.tools import tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KILL, TEAR, FULL, SHORT = 1, 2, 3, 4
KILLED = -9
LEFT = (".part", ".partial", ".gone")
DRIVER = """
import ctypes, hashlib, json, os, shutil, sys
from importlib import import_module
from pathlib import Path
job = json.loads(sys.stdin.read())
from symperf.cli import main
from symperf.sweep import stream
stream.POINTS = 4
for name in job["modules"]:
    import_module(name)
faults, folder = ctypes.CDLL(None), Path(job["folder"])
with open(os.devnull, "w") as nothing:
    out, sys.stdout = sys.stdout, nothing
    for arguments in job["warm"]:
        main(arguments)
    sys.stdout = out

def child(arguments, kind=0, at=0, jump=0):
    told = os.pipe()
    process = os.fork()
    if not process:
        os.dup2(told[1], 1), os.dup2(told[1], 2)
        faults.faults_jump(ctypes.c_long(jump))
        faults.faults_arm(kind, ctypes.c_long(at), job["under"].encode())
        code = main(arguments)
        sys.stdout.flush(), sys.stderr.flush()
        seen = faults.faults_seen()
        os.write(told[1], b"\\n%d" % seen)
        os._exit(code)
    os.close(told[1])
    with open(told[0], "rb") as file:
        text = file.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    text, _, seen = text.rpartition("\\n") if code != -9 else (text, "", "-1")
    return code, text, int(seen)

def digest():
    whole = hashlib.sha256()
    for each in sorted(folder.rglob("*")):
        if each.is_file() and each.suffix != ".part":  # what a killed process was writing
            whole.update(each.relative_to(folder).as_posix().encode() + each.read_bytes())
    return whole.hexdigest(), [each.name for each in folder.iterdir()]

def resumed(arguments):
    out = job["out"]
    there = out and (os.path.exists(out) or os.path.exists(out + ".partial"))
    return [*arguments, "--resume"] if there else arguments

def empty():
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in job["files"].items():
        (folder / name).write_text(text)

for kind, start, stop, step, fresh, jump in job["series"]:
    empty()
    for at in range(start, stop, step):
        code, text, seen = child(resumed(job["arguments"]), kind, at, jump)
        found = {"at": at, "code": code, "text": text, "found": digest()}
        if fresh:
            found["after"], found["mended"] = child(resumed(job["arguments"]))[:2], digest()
            empty()
        print(json.dumps(found))
        if 0 <= seen <= at:
            break
    if not fresh:
        code, text, _ = child(resumed(job["arguments"]))
        print(json.dumps({"at": -1, "code": code, "text": text, "found": digest()}))
    print(flush=True)
"""


class Series(NamedTuple):
    """Faults of one kind.

    Attributes:
        kind: of the fault.
        start: the first call that fails, and those after it.
        stop: where the last one is before; the series ends where there are no more calls.
        step: from one fault to the next.
        fresh: whether the folder is empty before each, and the command runs again after each; or only after the last.
        jump: seconds by which the clock jumps to and fro.
    """

    kind: int
    start: int = 0
    stop: int = 10_000
    step: int = 1
    fresh: bool = True
    jump: int = 0


@dataclass(frozen=True)
class Faulted:
    """What became of a command in which a fault was made.

    Attributes:
        at: the call that failed, and those after it.
        code: the exit status, negative for a signal.
        text: what was printed.
        digest: of the folder, without files that were being written.
        names: in it.
        after: exit status and text of the same command afterwards, without a fault.
        mended: the digest and the names then.
    """

    at: int
    code: int
    text: str
    digest: str
    names: tuple[str, ...]
    after: tuple[int, str] | None
    mended: str | None
    left: tuple[str, ...]


def build(folder: Path) -> Path:
    """Compile what is preloaded; a system without LD_PRELOAD skips the test."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs LD_PRELOAD")
    target = folder / "faults.so"
    source = ROOT / "tests" / "support" / "faults.c"
    command = [tool("gcc", "cc", "clang"), "-shared", "-fPIC", "-O1", str(source), "-o", str(target), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return target


def run_faulted(
    library: Path, folder: Path, arguments: Sequence[str], series: Sequence[Series], **more: Any
) -> list[list[Faulted]]:
    """A command at one fault after another: by series.

    Args:
        library: what `build` made.
        folder: what the command writes to.
        arguments: of the command line.
        series: of faults.
        more: `out` of a sweep, which is resumed where something of it is there; `files` of the folder, by name; `warm`
            commands and `modules` before the first fault; `under`, the folder whose calls count.
    """
    job = {
        "out": None,
        "files": {},
        "warm": [],
        "modules": [],
        "under": str(folder),
        **more,
        "folder": str(folder),
        "arguments": list(arguments),
        "series": series,
    }
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(job),
        env={**os.environ, "LD_PRELOAD": str(library)},
        text=True,
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.removesuffix("\n\n").split("\n\n")
    return [[_faulted(json.loads(line)) for line in lines.splitlines()] for lines in found]


def _faulted(found: dict[str, Any]) -> Faulted:
    after = found.get("after")
    digest, names = found["found"]
    mended, left = found.get("mended", (None, names))
    return Faulted(
        at=found["at"],
        code=found["code"],
        text=found["text"],
        digest=digest,
        names=tuple(names),
        after=None if after is None else (after[0], after[1]),
        mended=mended,
        left=tuple(name for name in left if name.endswith(LEFT)),
    )
