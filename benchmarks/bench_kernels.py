"""Kernels over a training step with the outputs time and memory, side by side: what `README.md` here explains.

python benchmarks/bench_kernels.py [--json FILE] [--repeat 5] [--only grid,hand,top,start] [--mix 0,3] [--points 100]
python benchmarks/bench_kernels.py --smoke

Figures are the best of several runs: million points a second on all processors, and nanoseconds of processor time a
point, which what else runs here disturbs less. The points are those of GPT-3 175B on A100s; each mix of axes has 100
points an axis, so 10^8 in all. "grid" rules out blocks of points by a bound, where that pays; "every" computes the time
of each point, as C and NumPy do, and ratios are to it. C is written from the same formulas by `loops_in_c.py`, and by
hand of a small one.
`--smoke` compares results on small grids and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from loops_in_c import GCC, QUICK, Loops

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
BY_HAND = Path(__file__).with_name("tile_by_hand.c")
SMOKE = (8, 7, 6, 5)
"""Points of the axes of a smoke test."""
EXACT = 1e-12
"""Relative, of results by different orders of operations."""
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


def in_turn(repeat: int, works: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Least seconds and least processor seconds of each, one after the other again and again: noise slows all alike."""
    least = dict.fromkeys(works, (float("inf"), float("inf")))
    for _ in range(repeat):
        for name, work in works.items():
            begin = time.process_time()
            wall, _ = best_of(1, work)
            least[name] = min(least[name][0], wall), min(least[name][1], time.process_time() - begin)
    return least


def same(what: str, found: float, expected: float) -> None:
    """Compare two results.

    Raises:
        AssertionError: they differ.
    """
    if not (np.isfinite(expected) and np.isclose(found, expected, rtol=EXACT, atol=0.0)):
        raise AssertionError(f"{what}: found {found}, expected {expected}")


def figures(points: dict[str, int], seconds: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Million points a second, and nanoseconds of processor time a point."""
    rates: dict[str, Any] = {name: points[name] / 1e6 / wall for name, (wall, _) in seconds.items()}
    return rates | {f"{name}_cpu_ns": cpu / points[name] * 1e9 for name, (_, cpu) in seconds.items()}


def bench_grid(mix: Sequence[str], repeat: int, folder: Path, count: int) -> dict[str, Any]:
    """One mix on every back end."""
    program, values = step()
    axes = {name: points(name, count, values) for name in mix}
    sizes = dict.fromkeys(mix, count)
    best = kernel(mix, TopK("time", 1))
    nest = best.choose_nest(sizes)
    short = {name: axis[:2] for name, axis in axes.items()}
    compiling, _ = best_of(1, lambda: best.run(short, values, tier="numba", nest=nest))
    found = best.run(axes, values, tier="numba")
    plain = best.run(axes, values, tier="numba", bound=False)
    counted = (plain.feasible, plain.rejected) == (found.feasible, found.rejected)
    if not (counted and np.array_equal(plain.flat, found.flat)):
        raise AssertionError(f"with a bound: found {found}, expected {plain}")

    small = prune(program, ["time", "slack"])
    rng = np.random.default_rng(0)
    few = {name: axis[::4] for name, axis in axes.items()}
    dense = {**values, **{name: rng.choice(axis, MESHED) for name, axis in axes.items()}}
    wanted = set(small.outputs.values())
    works: dict[str, Callable[[], Any]] = {
        "grid": lambda: best.run(axes, values, tier="numba"),
        "every": lambda: best.run(axes, values, tier="numba", bound=False),
        "numpy_open": lambda: best.run(few, values, tier="numpy"),
        "numpy_mesh": lambda: evaluate(small, dense, wanted),
    }
    counts = {"grid": count**4, "every": count**4, "numpy_open": len(few[mix[0]]) ** 4, "numpy_mesh": MESHED}
    if shutil.which("gcc"):
        for k, order in enumerate({choose_order(small, sizes), (*nest.outer, *nest.vector)}):
            in_c = Loops.of(program, order, folder)
            same(f"loops over {order}", in_c.best(axes, values)[0], found.values["time"][0])
            works[f"c{k}"], counts[f"c{k}"] = partial(in_c.best, axes, values), count**4
    times = in_turn(repeat, works)
    written = [times.pop(name) for name in list(times) if name.startswith("c")]
    if written:
        times["c"], counts["c"] = min(written, key=lambda each: each[1]), count**4
    row: dict[str, Any] = {"axes": list(mix), "loops": [*nest.outer, *nest.vector], "vector": list(nest.vector)}
    row |= {"compile_s": compiling, **figures(counts, times)}
    return row | {
        f"to_{name}": row[f"{name}_cpu_ns"] / row["every_cpu_ns"] for name in ("numpy_mesh", "c") if name in row
    }


def tile() -> tuple[Program, dict[str, float]]:
    """The program of `whole_tile_time`, with how far its panels outgrow L2 as "slack", and the values of its inputs."""
    from symperf.codegen.lower import lower
    from symperf.formulas.kernels.tiles import matmul_l2_bytes, whole_tile_time
    from symperf.formulas.language.symbols import SYMBOLS, UNITS

    parts = [SYMBOLS[name].symbol for name in TILE]
    panels = matmul_l2_bytes(*parts) - SYMBOLS["l2_capacity"].symbol
    program = lower([], {"time": whole_tile_time(*parts), "slack": panels}, stand_for=UNITS)
    system = {name: step()[1][name] for name in program.inputs if name not in TILE}
    return program, {**system, "left_bytes": 2.0, "right_bytes": 2.0, "tile_rows": 128.0, "tile_columns": 256.0}


TILE = ("rows", "columns", "inner", "groups", "left_bytes", "right_bytes", "tile_rows", "tile_columns")
TILED = ("groups", "rows", "inner", "columns")
"""The axes of the loops by hand."""


def by_hand(folder: Path, command: Sequence[str]) -> Loops:
    """The loops of `tile_by_hand.c`."""
    text = BY_HAND.read_text(encoding="utf-8")
    names = text.partition("/* inputs: ")[2].partition("*/")[0].replace(" * ", " ").split()
    return Loops(text, names, TILED, folder, command)


def tiled_axes(counts: Sequence[int]) -> dict[str, Any]:
    """Points of the axes of `whole_tile_time`."""
    steps = dict(zip(TILED, (1.0, 960.0, 640.0, 1600.0), strict=True))
    return {name: np.arange(1.0, count + 1) * steps[name] for name, count in zip(TILED, counts, strict=True)}


def bench_hand(repeat: int, folder: Path, count: int) -> dict[str, Any]:
    """A small formula, by hand and generated."""
    program, values = tile()
    axes = tiled_axes([count] * 4)
    best = GridKernel(program, TILED, ["time"], constraints=["slack"], reduce=TopK("time", 1), store=store())
    in_c = by_hand(folder, GCC)
    found = best.run(axes, values, tier="numba")
    same("by hand", in_c.best(axes, values)[0], found.values["time"][0])
    works: dict[str, Callable[[], Any]] = {
        "grid": lambda: best.run(axes, values, tier="numba"),
        "every": lambda: best.run(axes, values, tier="numba", bound=False),
        "c": lambda: in_c.best(axes, values),
    }
    row = figures(dict.fromkeys(works, count**4), in_turn(repeat, works))
    return row | {"to_c": row["c_cpu_ns"] / row["every_cpu_ns"]}


def smoke(folder: Path) -> None:
    """Kernels, C and NumPy find the same points in small grids."""
    program, values = step()
    cases: list[tuple[Program, dict[str, float], dict[str, Any], Loops]] = []
    for mix in MIXES[::2]:
        order = choose_order(prune(program, ["time", "slack"]), dict(zip(mix, SMOKE, strict=True)))
        axes = {name: points(name, count, values) for name, count in zip(mix, SMOKE, strict=True)}
        cases.append((program, values, axes, Loops.of(program, order, folder, QUICK)))
    cases.append((*tile(), tiled_axes(SMOKE[::-1]), by_hand(folder, QUICK)))
    for number, (each, known, axes, in_c) in enumerate(cases):
        best = GridKernel(each, tuple(axes), ["time"], constraints=["slack"], reduce=TopK("time", 1), store=store())
        small = prune(each, ["time", "slack"])
        dense = dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij"), strict=True))
        at = evaluate(small, {**known, **dense}, set(small.outputs.values()))
        time_of, slack = (at[small.outputs[name]] for name in ("time", "slack"))
        least = float(np.where(slack >= 0, time_of, np.inf).min())
        where = ", ".join(axes)
        same(f"{where}, C beside NumPy", in_c.best(axes, known)[0], least)
        for tier in ("numpy", "numba") if number in (1, len(cases) - 1) else ("numpy",):
            found = best.run(axes, known, tier=tier)
            same(f"{where}, {tier}", found.values["time"][0], least)
            if found.feasible != int(np.count_nonzero(slack >= 0)):
                raise AssertionError(f"{where}, {tier}: {found.feasible} points fit")
        print(f"{where}: the same in C, NumPy and kernels", flush=True)


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
    found: dict[str, float] = {}
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
    parser.add_argument("--only", default="grid,hand,top,start")
    parser.add_argument("--mix", default=",".join(map(str, range(len(MIXES)))))
    parser.add_argument("--points", type=int, default=100, help="of an axis")
    parser.add_argument("--smoke", action="store_true", help="small grids; compare results alone")
    args = parser.parse_args()
    parts = args.only.split(",")
    found: dict[str, Any] = {"processors": default_threads(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SYMPERF_CACHE"] = folder
        if args.smoke:
            smoke(Path(folder))
            parts = []
        if "grid" in parts:
            found["grid"] = []
            for k in map(int, args.mix.split(",")):
                found["grid"].append(bench_grid(MIXES[k], args.repeat, Path(folder), args.points))
                show("million points a second", found["grid"][-1:])
        if "hand" in parts:
            found["hand"] = bench_hand(args.repeat, Path(folder), args.points)
            show("a small formula, by hand in C and generated", [found["hand"]])
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
