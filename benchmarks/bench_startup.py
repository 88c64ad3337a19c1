"""Start-up: CPU seconds of the command line and of building a step, beside `python -c "import sympy"`.

Run: python benchmarks/bench_startup.py [--json FILE] [--smoke]

Every command runs in a fresh interpreter; the least of several runs counts, since noise only adds. "warm" means that
the structure's program is in the cache folder, "cold" that the folder is empty. `--smoke` only sees that a warm start
answers what a cold one does.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TRAIN = shlex.split(
    "train gpt3-175b -s a100-80gb-sxm --tp 8 --pp 8 --vpp 3 --micro-batch 1 --recompute selective "
    "--sequence-parallel --batch 64 --sequence 2048"
)
BUILD = """
import time
from symperf import Model, Plan, System
from symperf.train.inputs import structure_of
plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
structure = structure_of(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan)
import sympy
start = time.process_time()
from symperf.operations.schedule import closed_form
from symperf.train.build import step_tree
closed_form(step_tree(structure))
print(time.process_time() - start)
"""


class Measured(NamedTuple):
    """What one run in a fresh process took, with all that it started, and what it printed."""

    cpu: float
    wall: float
    output: str
    peak_bytes: int


def measure(command: list[str], cache: str) -> Measured:
    """One run in a fresh process. Its peak is at least this process's memory.

    Raises:
        CalledProcessError: it failed.
    """
    environment = {**os.environ, "SYMPERF_CACHE": cache, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as told:
        start = time.perf_counter()
        child = subprocess.Popen(command, env=environment, stdout=printed, stderr=told)
        _, status, used = os.wait4(child.pid, 0)
        wall, child.returncode = time.perf_counter() - start, os.waitstatus_to_exitcode(status)
        for each in (printed, told):
            each.seek(0)
        output = printed.read().decode()
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command, output, told.read().decode())
    return Measured(used.ru_utime + used.ru_stime, wall, output, used.ru_maxrss * 1024)


def best(command: list[str], runs: int, cache: str | None = None) -> tuple[float, float]:
    """The least CPU and wall seconds of several runs; with no cache given every run starts from an empty one."""
    found = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as empty:
            found.append(measure(command, cache or empty)[:2])
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def smoke() -> None:
    """A warm start answers what a cold one does.

    Raises:
        AssertionError: it does not.
    """
    command = [sys.executable, "-m", "symperf", *TRAIN, "--json"]
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (measure(command, cache).output for _ in range(2))
    if cold != warm or json.loads(warm)["time_s"] <= 0:
        raise AssertionError("a warm start gives another answer than a cold one")
    print("symperf train: the same answer cold and warm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--smoke", action="store_true", help="compare answers alone")
    options = parser.parse_args()
    if options.smoke:
        smoke()
        return
    python = sys.executable
    symperf = [python, "-m", "symperf"]
    figures: dict[str, tuple[float, float]] = {}
    figures['python -c "import sympy"'] = best([python, "-c", "import sympy"], options.runs)
    figures["symperf --help"] = best([*symperf, "--help"], options.runs)
    with tempfile.TemporaryDirectory() as cache:
        measure([*symperf, *TRAIN], cache)
        figures["symperf train, warm"] = best([*symperf, *TRAIN], options.runs, cache)
        figures["symperf train --json, warm"] = best([*symperf, *TRAIN, "--json"], options.runs, cache)
    figures["symperf train, cold"] = best([*symperf, *TRAIN], max(1, options.runs // 2))
    with tempfile.TemporaryDirectory() as cache:
        build = min(float(measure([python, "-c", BUILD], cache).output) for _ in range(options.runs))
    figures["build the symbolic step (in process)"] = (build, build)
    base = figures['python -c "import sympy"'][0]
    print(f"{'command':40s} {'CPU s':>8s} {'wall s':>8s} {'CPU / import sympy':>20s}")
    for name, (cpu, wall) in figures.items():
        print(f"{name:40s} {cpu:8.3f} {wall:8.3f} {cpu / base:20.2f}")
    if options.json:
        rows = {name: {"cpu_s": cpu, "wall_s": wall, "ratio": cpu / base} for name, (cpu, wall) in figures.items()}
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
