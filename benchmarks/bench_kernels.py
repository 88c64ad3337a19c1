"""Kernels over a training step with the outputs time and memory, side by side: what `README.md` here explains.

python benchmarks/bench_kernels.py [--json FILE] [--repeat 5] [--only grid,top,start] [--mix 0,3]

Throughputs are the best of several runs, in million points a second on all processors unless it says a core. The
points are those of GPT-3 175B on A100s; each mix of axes has 100 points an axis, so 10^8 in all.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf import Model, Plan, System
from symperf.codegen.evaluate import evaluate
from symperf.codegen.kernel import GridKernel
from symperf.codegen.passes import choose_order, prune
from symperf.codegen.program import Program
from symperf.codegen.reduce import TopK
from symperf.codegen.store import Store
from symperf.codegen.workers import default_threads
from symperf.runs.training_run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIXES = (
    ("tp", "micro_batch", "hidden_size", "memory_bandwidth"),
    ("tp", "pp", "dp", "micro_batch"),
    ("sequence", "micro_batch", "tp", "hidden_size"),
    ("matrix_rate", "memory_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth"),
    ("sequence", "memory_bandwidth", "matrix_rate", "l2_bandwidth"),
    ("sequence", "batch", "matrix_rate", "scale_up_bandwidth"),  # from here on two axes are cheap
    ("tp", "dp", "sequence", "matrix_efficiency"),
    ("sequence", "micro_batch", "scale_up_bandwidth", "memory_capacity"),
)
MESHED = 1 << 18
"""Points of the same axes as dense arrays."""
COUNTED = ("tp", "pp", "dp", "vpp", "micro_batch")
GCC = ["gcc", "-O3", "-march=native", "-ffast-math", "-fno-reciprocal-math", "-fopenmp", "-shared", "-fPIC"]
SOURCE = Path(__file__).with_name("step_grid.c")
STARTED = """
import time; begin = time.time()
import numpy as np
from bench_kernels import kernel, points, step, store
from symperf.codegen.reduce import TopK
mix = ("tp", "micro_batch", "hidden_size", "memory_bandwidth")
_, values = step()
found = kernel(mix, TopK("time", 1)).run({name: points(name, 20, values) for name in mix}, values, tier=TIER)
assert len(found) == 1
print(time.time() - begin)
"""
TOPPED = """
import json, time
from pathlib import Path
from bench_kernels import kernel, points, step
from symperf.codegen.reduce import TopK
mix = ("tp", "micro_batch", "hidden_size", "memory_bandwidth")
_, values = step()
best = kernel(mix, TopK("time", 100))
axes = {name: points(name, SIZE, values) for name in mix}
short = {name: axis[:2] for name, axis in axes.items()}
best.run(short, values, tier="numba", nest=best.choose_nest(dict.fromkeys(mix, SIZE)))
times = []
for _ in range(REPEAT):
    begin = time.perf_counter()
    found = best.run(axes, values, tier="numba")
    times.append(time.perf_counter() - begin)
peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
print(json.dumps({"points": SIZE**4, "seconds": min(times), "peak_bytes": peak, "found": len(found)}))
"""


def step() -> tuple[Program, dict[str, float]]:
    """The program of a training step with the output "slack", capacity less memory, and the values of its inputs."""
    plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    run = Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)
    program = run.compiled.program
    instructions = [*program.instructions, ("input", "memory_capacity")]
    instructions.append(("subtract", len(instructions) - 1, program.outputs["memory"]))
    inputs = {**program.inputs, "memory_capacity": len(instructions) - 2}
    outputs = {**program.outputs, "slack": len(instructions) - 1}
    values = {name: float(value) for name, (value, _) in run.bound.items()}
    return Program(instructions, inputs, dict(program.lets), outputs), values


def store() -> Store:
    """Where generated modules are kept: SYMPERF_CACHE, which `main` sets to a new folder."""
    return Store(Path(os.environ["SYMPERF_CACHE"]) / "kernels")


def kernel(mix: Sequence[str], reduce: Any) -> GridKernel:
    """A kernel of the step over a mix of axes."""
    return GridKernel(step()[0], mix, ["time", "memory"], constraints=["slack"], reduce=reduce, store=store())


def points(name: str, count: int, values: dict[str, float]) -> Any:
    """Values of an axis."""
    if name in COUNTED:
        return np.arange(1.0, count + 1)
    if name in ("hidden_size", "sequence", "batch"):
        return np.arange(1.0, count + 1) * (8 if name == "batch" else 64)
    return values[name] * np.linspace(0.5, 2.0, count)


def best_of(repeat: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Least seconds, and the last result."""
    least, result = float("inf"), None
    for _ in range(repeat):
        begin = time.perf_counter()
        result = work()
        least = min(least, time.perf_counter() - begin)
    return least, result


def compiled_c(order: Sequence[str], folder: Path) -> Any:
    """The library of the hand-written kernels with these axes, outermost first."""
    library = folder / f"{'_'.join(order)}.so"
    axes = [f"-DAXIS{k}={axis}" for k, axis in enumerate(order)]
    subprocess.run([*GCC, *axes, str(SOURCE), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def inputs_of_c() -> list[str]:
    """The inputs of the hand-written kernels, in their order."""
    text = SOURCE.read_text(encoding="utf-8").split("#define FUNCTION")[0]
    return re.findall(r"X\((\w+)\)", text.split("INPUTS(X)", 1)[1])


def call_c(best: Any, axes: Sequence[Any], values: dict[str, float]) -> tuple[float, int]:
    """Least time and its index in loop order."""
    double = ctypes.POINTER(ctypes.c_double)
    scalars = np.array([values[name] for name in inputs_of_c()])
    arrays = [np.ascontiguousarray(axis) for axis in axes]
    seconds, where = ctypes.c_double(), ctypes.c_long()
    pointers = [array.ctypes.data_as(double) for array in (scalars, *arrays)]
    best(*pointers, *[ctypes.c_long(len(a)) for a in arrays], ctypes.byref(seconds), ctypes.byref(where))
    return seconds.value, where.value


def in_turn(repeat: int, works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Least seconds of each, one after the other again and again, so that what else runs here slows all alike."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(repeat):
        for name, work in works.items():
            least[name] = min(least[name], best_of(1, work)[0])
    return least


def bench_grid(mix: Sequence[str], repeat: int, folder: Path) -> dict[str, Any]:
    """One mix on every back end."""
    program, values = step()
    axes = {name: points(name, 100, values) for name in mix}
    sizes = dict.fromkeys(mix, 100)
    best = kernel(mix, TopK("time", 1))
    nest = best.choose_nest(sizes)
    short = {name: axis[:2] for name, axis in axes.items()}
    compiling, _ = best_of(1, lambda: best.run(short, values, tier="numba", nest=nest))
    found = best.run(axes, values, tier="numba")

    small = prune(program, ["time", "slack"])
    rng = np.random.default_rng(0)
    few = {name: axis[::4] for name, axis in axes.items()}
    dense = {**values, **{name: rng.choice(axis, MESHED) for name, axis in axes.items()}}
    wanted = set(small.outputs.values())
    works: dict[str, Callable[[], Any]] = {
        "grid": lambda: best.run(axes, values, tier="numba"),
        "numpy_open": lambda: best.run(few, values, tier="numpy"),
        "numpy_mesh": lambda: evaluate(small, dense, wanted),
    }
    counts = {"numpy_open": 25**4, "numpy_mesh": MESHED}
    if shutil.which("gcc"):
        for order in {(*nest.outer, *nest.vector), choose_order(small, sizes)}:
            by_hand = partial(call_c, compiled_c(order, folder).best, [axes[a] for a in order], values)
            least, _ = by_hand()
            if not np.isclose(least, found.values["time"][0], rtol=1e-12):
                raise AssertionError(f"C finds {least}, the kernel {found.values['time'][0]}")
            works[f"c {', '.join(order)}"] = by_hand
    rates = {name: counts.get(name, 10**8) / 1e6 / s for name, s in in_turn(repeat, works).items()}
    in_c = max((rates.pop(name) for name in list(rates) if name.startswith("c ")), default=float("nan"))
    row: dict[str, Any] = {"axes": list(mix), "loops": [*nest.outer, *nest.vector], "vector": list(nest.vector)}
    row |= {"compile_s": compiling, **rates, "c": in_c}
    return row | {f"to_{name}": rates["grid"] / row[name] for name in ("numpy_mesh", "c")}


def child(text: str, **names: Any) -> str:
    """What a new process prints."""
    for name, value in names.items():
        text = text.replace(name, repr(value))
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    return done.stdout


def bench_start() -> dict[str, float]:
    """Seconds from the start of the interpreter to the first result, without and with a cache."""
    found = {}
    kept = os.environ["SYMPERF_CACHE"]
    for tier in ("numba", "numpy"):
        with tempfile.TemporaryDirectory() as empty:
            os.environ["SYMPERF_CACHE"] = empty
            for label in ("cold", "warm", "warm"):
                begin = time.perf_counter()
                child(STARTED, TIER=tier)
                seconds = time.perf_counter() - begin
                found[f"{label}_{tier}"] = min(seconds, found.get(f"{label}_{tier}", seconds))
    os.environ["SYMPERF_CACHE"] = kept
    return found


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """A table of rows, one line each."""
    print(f"\n{title}")
    for row in rows:
        parts = [
            f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if not isinstance(v, list)
        ]
        print("  ", ", ".join(row.get("loops", [])), "|", "  ".join(parts), flush=True)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="grid,top,start")
    parser.add_argument("--mix", default=",".join(map(str, range(len(MIXES)))))
    args = parser.parse_args()
    parts = args.only.split(",")
    found: dict[str, Any] = {"processors": default_threads(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SYMPERF_CACHE"] = folder
        if "grid" in parts:
            found["grid"] = []
            for k in map(int, args.mix.split(",")):
                found["grid"].append(bench_grid(MIXES[k], args.repeat, Path(folder)))
                show("million points a second", found["grid"][-1:])
        if "top" in parts:
            child(TOPPED, SIZE=4, REPEAT=1)
            found["top"] = [
                json.loads(child(TOPPED, SIZE=n, REPEAT=30 if n < 64 else 3 if n < 150 else 2))
                for n in (32, 56, 100, 178)
            ]
            for row in found["top"]:
                row["ns_per_point"] = row["seconds"] / row["points"] * 1e9
                row["peak_rss_mb"] = row["peak_bytes"] / 1e6
            show("top 100", found["top"])
        if "start" in parts:
            found["start"] = bench_start()
            show("seconds to the first result", [found["start"]])
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
