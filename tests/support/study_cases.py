"""A small study with every kind of axis, and ways to run, stop and compare it."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

from symperf.cli import main
from symperf.sweep.stream import write
from symperf.sweep.study import load

if TYPE_CHECKING:
    from pathlib import Path

    from symperf.sweep import stream

FORMATS = (".zarr", ".nc", ".parquet", ".csv")
SMALL = """
model = "llama-2-7b"
system = "h100-sxm"
batch = 64
sequence = 2048
[axes]
tp = [1, 2, 4, 8]
"""
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


def study_file(folder: Path, text: str = TEXT) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def write_study(path: Path, out: Path, **options: Any) -> stream.Outcome:
    return write(load(path).sweep, out, **{"chunk_points": CHUNK, **options})


def bytes_of(out: Path) -> dict[str, bytes]:
    """The content of every file of a result."""
    files = [out] if out.is_file() else [p for p in out.rglob("*") if p.is_file()]
    return {str(p.relative_to(out.parent)): p.read_bytes() for p in files}


def partial(out: Path) -> Path:
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


def sweep_command(*arguments: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(["sweep", *arguments])
    return code, out.getvalue(), errors.getvalue()
