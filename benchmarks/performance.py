"""What `docs/performance.md` says: speed and memory of grids, searches, predictions and whole commands, side by side.

    python benchmarks/performance.py --write                                 measures all, and writes the page
    python benchmarks/performance.py --write --opponents FOLDER/bin/python   and other tools, in that interpreter
    python benchmarks/performance.py --write --only grids,spaces             measures these anew, the rest is as kept
    python benchmarks/performance.py --write --only none                     measures nothing: the page as kept
    python benchmarks/performance.py --smoke                                 compares results; small, and keeps nothing

What is measured is kept in `docs/performance/results.json`, of one machine: measure on a quiet one. With caches of its
own, so that every first time is one.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_startup import ROOT, TRAIN, Measured, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

sys.path.insert(0, str(ROOT / "docs"))
HERE = Path(__file__).resolve().parent
RESULTS = ROOT / "docs" / "performance" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
SYMPERF = [sys.executable, "-m", "symperf"]
IMPORT = ["-c", "import sympy"]
COMMANDS = {
    "symperf --help": "--help",
    "inspect": "inspect deepseek-v3 --json",
    "train": shlex.join([*TRAIN, "--json"]),
    "infer": "infer llama-3.1-70b -s h100-sxm --tp 8 --batch 1 --prompt 1024 --generate 256 --json",
    "serve": "serve llama-3.1-70b -s h100-sxm --tp 8 --prompt 1024 --generate 256 --ttft 1 --tpot 0.05 --json",
    "derive, text": shlex.join(["derive", *TRAIN]),
}
SEARCHES = {
    f"search, {what}": f"search {words} --json"
    for what, words in {
        "GPT-3 175B on 4,096 H100": "gpt3-175b -s h100-sxm --devices 4096 --batch 1536 --sequence 2048",
        "Kimi K2 (1 T) on 16,384 H100": "kimi-k2 -s h100-sxm --devices 16384 --batch 4096 --sequence 4096",
        "DeepSeek-V3 on 2,048 H100": "deepseek-v3 -s h100-sxm --devices 2048 --batch 15360 --sequence 4096",
    }.items()
}
SMALL = ("inspect", "train")
"""Commands of a smoke test."""


def grids(small: bool) -> dict[str, Any]:
    """Kernels beside C and NumPy: the worst mix of axes, the first and one with two cheap axes; a formula by hand."""
    asked = "--only hand --points 6 --repeat 1" if small else "--only grid,hand --mix 2,0,5 --repeat 3"
    return _child("bench_kernels.py", asked)


def points(small: bool) -> dict[str, Any]:
    """A hundred best of 10^6 to 10^9 points, and the most memory of it."""
    return {"top": []} if small else _child("bench_kernels.py", "--only top")


def _child(script: str, words: str) -> dict[str, Any]:
    """What a benchmark writes with `--json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, str(HERE / script), *shlex.split(words), "--json", str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _cold_and_warm(command: Sequence[str], warm: int) -> tuple[Measured, Measured]:
    """A run with an empty cache, and the least of those after it.

    Raises:
        AssertionError: they print different things.
    """
    with tempfile.TemporaryDirectory() as cache:
        cold = measure([*SYMPERF, *command], cache)
        after = [measure([*SYMPERF, *command], cache) for _ in range(warm)]
    if any(each.output != cold.output for each in after):
        raise AssertionError(f"symperf {shlex.join(command)}: a warm run prints other things than the first")
    cpu, wall = min(each.cpu for each in after), min(each.wall for each in after)
    return cold, Measured(cpu, wall, cold.output, max(each.peak_bytes for each in after))


def commands(small: bool) -> dict[str, Any]:
    """Whole commands, the first time and again, beside `import sympy`."""
    warm = 1 if small else 3
    asked = {name: COMMANDS[name] for name in SMALL} if small else {**COMMANDS, **SEARCHES}
    with tempfile.TemporaryDirectory() as cache:
        base = min(measure([sys.executable, *IMPORT], cache).cpu for _ in range(2 if small else 5))
    rows = []
    for name, words in asked.items():
        cold, again = _cold_and_warm(shlex.split(words), warm)
        row = {"what": name, "command": f"symperf {words}", "cold_cpu_s": cold.cpu, "cold_wall_s": cold.wall}
        row |= {"warm_cpu_s": again.cpu, "warm_wall_s": again.wall, "to_sympy": again.cpu / base}
        rows.append({**row, "cold_peak_bytes": cold.peak_bytes, "warm_peak_bytes": again.peak_bytes})
    return {"import_sympy_cpu_s": base, "rows": rows}


def parts(python: Path | None) -> dict[str, Callable[[bool], Any]]:
    """What there is to measure, by name; the argument says whether small.

    Those that start commands come first: a process counts as its own memory that of the one that starts it, which here
    is some 20 MB until a part imports what it measures.
    """

    def in_process(name: str) -> Callable[[bool], Any]:
        def measure_part(small: bool) -> Any:
            import performance_parts

            return getattr(performance_parts, name)(small)

        return measure_part

    def of_others(small: bool) -> Any:
        from performance_opponents import opponents

        return opponents(python, os.environ["SYMPERF_CACHE"], small)

    return {
        "commands": commands,
        "grids": grids,
        "points": points,
        "opponents": of_others,
        **{name: in_process(name) for name in ("processors", "scattered", "predictions", "spaces")},
    }


def machine() -> dict[str, Any]:
    """What is measured on, without its name."""
    known = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    flags: list[str] = []
    if info.exists():
        lines = dict(line.split(":", 1) for line in info.read_text().partition("\n\n")[0].splitlines() if ":" in line)
        fields = {key.strip(): value.strip() for key, value in lines.items()}
        known, flags = fields.get("model name", known), fields.get("flags", "").split()
    widest = next((name for flag, name in VECTORS.items() if flag in flags), "no AVX2")
    compiler = "no GCC"
    if shutil.which("gcc"):
        compiler = "GCC " + subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    found: dict[str, Any] = {"processor": known, "processors": len(os.sched_getaffinity(0)), "vectors": widest}
    found["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    software = {name: importlib.metadata.version(name) for name in ("sympy", "numpy", "numba")}
    return {**found, "python": platform.python_version(), **software, "compiler": compiler}


VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def measured(name: str, measure_part: Callable[[bool], Any], small: bool) -> dict[str, Any]:
    """The figures of a part, with when it was measured and how busy the machine was as it began."""
    from symperf.common.version import VERSION

    load, begin = os.getloadavg()[0], time.perf_counter()
    try:
        figures = measure_part(small)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        sys.exit(f"{name}: {shlex.join(error.cmd)[:100]} ... ends with {error.returncode}: {' '.join(last)}")
    now = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    took = time.perf_counter() - begin
    print(f"{name}: {took:.1f} s", flush=True)
    return {"date": now, "version": VERSION, "load": load, "took_s": took, "figures": figures}


def kept() -> dict[str, Any]:
    """What was measured before."""
    if not RESULTS.exists():
        return {"machine": None, "parts": {}}
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Measure what is asked for, keep it, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=None, help="parts to measure: " + ", ".join(parts(None)) + "; or none")
    parser.add_argument("--opponents", type=Path, metavar="PYTHON", help="an interpreter that has other tools")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--smoke", action="store_true", help="small; compare results alone")
    asked = parser.parse_args()
    from performance_page import missing, page

    names = [] if asked.only == "none" else list(parts(None)) if asked.only is None else asked.only.split(",")
    unknown = [name for name in names if name not in parts(None)]
    if unknown:
        parser.error(f"--only: found {', '.join(unknown)}, expected some of {', '.join(parts(None))}, or none")
    if asked.opponents and not asked.opponents.exists():
        parser.error(f"--opponents: no file {asked.opponents}, expected an interpreter")
    here = machine()
    results = {"machine": here, "parts": {}} if asked.smoke else kept()
    if names and results["machine"] != here:
        if results["machine"] is not None and len(names) < len(parts(None)):
            parser.error(f"{RESULTS.relative_to(ROOT)} is of another machine: measure all anew, without --only")
        results = {"machine": here, "parts": {}}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SYMPERF_CACHE"] = cache
        for name, measure_part in parts(asked.opponents).items():
            if name in names:
                results["parts"][name] = measured(name, measure_part, asked.smoke)
                if not asked.smoke:
                    RESULTS.parent.mkdir(exist_ok=True)
                    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if asked.smoke:
        page(results)
        print("the page is written of what was measured")
        return
    if asked.write:
        if lacking := missing(results):
            parser.error(f"not measured yet: {', '.join(lacking)}")
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
