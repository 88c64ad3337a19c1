"""What `performance.py` measures in this process, each part a function of a size: small for a smoke test.

Processor seconds are the least of several rounds. Where there is another route to the same numbers it is compared.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_kernels import MIXES, in_turn, kernel, points, same, step, store
from bench_search import OVERLAPS

import symperf as sf
from symperf.codegen.bytecode import Bytecode, bytecode_machine
from symperf.codegen.evaluate import outputs_at
from symperf.codegen.kernel import GridKernel
from symperf.codegen.passes import prune
from symperf.codegen.reduce import TopK
from symperf.codegen.workers import default_threads
from symperf.plan_search.search import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAN = sf.Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
CHUNK = 256
"""Scattered points that the interpreter of compiled code takes at once."""
MESHED = 1 << 13
"""Those that NumPy takes."""


def scattered(small: bool) -> list[dict[str, Any]]:
    """Points that share nothing, on one core: the time of a training step at random places of the first mix.

    To a kernel they are one axis along which several inputs vary; smoke tests have NumPy run its program.
    """
    whole, values = step()
    table = GridKernel(whole, [MIXES[0]], ["time"], store=store())
    program = prune(whole, ["time"])
    count, repeat = (1 << 10, 1) if small else (1 << 16, 5)
    draw = np.random.default_rng(0)
    columns = {name: draw.choice(points(name, 100, values), count) for name in MIXES[0]}
    code, machine = Bytecode(program, [program.outputs["time"]]), bytecode_machine(store())

    def cut(size: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for start in range(0, count, size):
            here = slice(start, start + size)
            yield min(size, count - start), {**values, **{name: column[here] for name, column in columns.items()}}

    def compiled() -> Any:
        return np.concatenate([code.run(machine, (size,), inputs)[0] for size, inputs in cut(CHUNK)])

    def in_numpy() -> Any:
        return np.concatenate([outputs_at(program, inputs, size)["time"] for size, inputs in cut(MESHED)])

    def by_kernel() -> Any:
        return table.run({MIXES[0]: [*columns.values()]}, values, tier="numpy" if small else "numba", threads=1)["time"]

    for found, other, expected in zip(compiled(), by_kernel(), in_numpy(), strict=True):
        same("a scattered point", found, expected)
        same("a scattered point of a kernel", other, expected)
    routes = {"kernel": by_kernel, "compiled interpreter": compiled, "NumPy": in_numpy}
    taken = in_turn(repeat, routes)
    return [{"route": name, "points": count, "cpu_ns_per_point": cpu / count * 1e9} for name, (_, cpu) in taken.items()]


def processors(small: bool) -> list[dict[str, Any]]:
    """The grid of the first mix by one thread, and by as many as there are processors."""
    mix, count, repeat = (MIXES[0], 8, 1) if small else (MIXES[0], 100, 3)
    _, values = step()
    axes = {name: points(name, count, values) for name in mix}
    best = kernel(mix, TopK("time", 1))
    nest = best.choose_nest(dict.fromkeys(mix, count))
    tier = "numpy" if small else "numba"
    threads = sorted({1, default_threads()})
    found = {n: best.run(axes, values, tier=tier, nest=nest, threads=n).values["time"][0] for n in threads}
    for time_of in found.values():
        same("a grid by other threads", time_of, found[1])
    works: dict[str, Callable[[], Any]] = {
        str(n): partial(best.run, axes, values, tier=tier, nest=nest, threads=n) for n in threads
    }
    taken = in_turn(repeat, works)
    return [{"threads": n, "points": count**4, "wall_s": taken[str(n)][0], "cpu_s": taken[str(n)][1]} for n in threads]


def predictions(small: bool) -> list[dict[str, Any]]:
    """One prediction of a training step, of more layers and on more devices; each has numbers of its own."""
    repeat = 2 if small else 30
    config = json.loads((Path(sf.__file__).parent / "catalogue/models/gpt3-175b.json").read_text(encoding="utf-8"))
    folder = Path(os.environ["SYMPERF_CACHE"])
    system = sf.System.load("a100-80gb-sxm")
    rows = []

    def add(layers: int, model: sf.Model, replicas: int) -> None:
        plan = dataclasses.replace(PLAN, dp=replicas)

        def ask(k: int) -> float:
            sequence = 2048 - 64 * (k % 16)
            return sf.training(model, system, plan, batch=64 * replicas, sequence=sequence).value("time")

        taken, time_of = _distinct(repeat, ask)
        rows.append({"layers": layers, "devices": 64 * replicas, "cpu_s": taken, "step_s": time_of})

    for layers in (24, 96, 384, 1536):
        path = folder / f"gpt-{layers}-layers.json"
        path.write_text(json.dumps({**config, "n_layer": layers}), encoding="utf-8")
        add(layers, sf.Model.load(path), 1)
    model = sf.Model.load("gpt3-175b")
    for replicas in (16, 256):
        add(96, model, replicas)
    of_catalogue = sf.training(model, system, PLAN, batch=64, sequence=2048).value("time")
    same("96 layers of the catalogue and of a file", rows[1]["step_s"], of_catalogue)
    return rows


def _distinct(repeat: int, ask: Callable[[int], float]) -> tuple[float, float]:
    """The least processor seconds of a prediction, the first aside, and what the first found."""
    first = ask(0)
    least = float("inf")
    for k in range(1, repeat + 1):
        begin = time.process_time()
        ask(k)
        least = min(least, time.process_time() - begin)
    return least, first


def spaces(small: bool) -> list[dict[str, Any]]:
    """Searches of growing spaces, of programs that are loaded: what a plan that is considered costs."""
    asked: list[tuple[str, int, dict[str, Any]]] = [
        ("64 devices", 64, {}),
        ("512 devices", 512, {}),
        ("4,096 devices", 4096, {}),
        ("32,768 devices", 32768, {}),
        ("64 devices, overlaps in steps", 64, OVERLAPS),
    ]
    model, system = "gpt3-175b", "h100-sxm"
    if small:
        held = {"recompute": "full", "attention": "flash", "schedule": "1f1b", "zero": 1, "sequence_parallel": True}
        model, asked = "gpt-22b", [(f"{n} devices", n, held) for n in (8, 16)]
    rows = []
    for what, devices, require in asked:
        work = {"devices": devices, "batch": max(1536, devices), "sequence": 2048, "require": require}
        taken = []
        for _ in range(2 if small else 3):
            begin, cpu = time.perf_counter(), time.process_time()
            found = answer(sf.Model.load(model), sf.System.load(system), **work)
            taken.append((time.process_time() - cpu, time.perf_counter() - begin))
        cpu, wall = min(taken[1:])
        row = {"what": what, "considered": found.considered, "legal": found.legal, "feasible": found.feasible}
        rows.append({**row, "cpu_s": cpu, "wall_s": wall})
    return rows
