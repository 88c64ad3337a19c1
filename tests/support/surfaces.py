"""The same run by every surface that gives its numbers: each returns the time and the memory of a step.

What runs outside this process, C and JavaScript, takes many runs at once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import symperf as sf
from support.tools import tool
from symperf.codegen.export import c_source, javascript_module
from symperf.codegen.passes import prune
from symperf.derive import derive
from symperf.derive.source import function_name
from symperf.explore.explorer import Explorer
from symperf.explore.page import STATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from symperf import Run

Pair = tuple[float, float]
OUTPUTS = ("time", "memory")
ASKED = ("tp", "pp", "dp", "vpp", "micro_batch", "recompute", "sequence_parallel", "zero", "schedule", "overlap_dp")
"""Fields of a plan that the runs here choose."""
VARIED = ("recompute", "sequence_parallel", "zero", "schedule", "attention")
MAIN = """
#include <stdio.h>
int main(void) {{
    double in[{count}], out[2];
    for (int k = 0; k < {count}; k++) if (scanf("%lf", &in[k]) != 1) return 1;
    unit(in, out);
    printf("%.17g %.17g\\n", out[0], out[1]);
    return 0;
}}
"""
SCRIPT = """
import { readFileSync } from "node:fs";
import { answer, readKinds, startOf } from "./model.js";
const found = [];
for (const [at, { point, page }] of JSON.parse(readFileSync("asked.json", "utf8")).entries()) {
  const { time, memory } = (await import(`./unit${at}.mjs`)).evaluate(point);
  const [kind] = Object.values(readKinds(page)), told = answer(kind, startOf(kind));
  found.push([[time, memory], [told.value("time"), told.value("memory")]]);
}
console.log(JSON.stringify(found));
"""


def of_run(run: Run) -> Pair:
    """What the run itself says."""
    return run.value("time"), run.value("memory")


def of_command(run: Run, call: Callable[[Sequence[str]], Any]) -> Pair:
    """`symperf train --json`."""
    flags = []
    for name in ASKED:
        value, flag = getattr(run.plan, name), f"--{name.replace('_', '-')}"
        if value not in (None, False):
            flags.append(flag if value is True else f"{flag}={value}")
    work = [f"--batch={run.question['batch']}", f"--sequence={run.question['sequence']}"]
    done = call(["train", run.base_model.name, "-s", run.base_system.name, *flags, *work, "--json"])
    assert done.code == 0, done.err
    found = json.loads(done.out)
    return found["time_s"], found["memory_bytes"]["total"]


def of_sweep(run: Run) -> Pair:
    """One point of a grid of two axes."""
    tp, dp = run.plan.tp, run.plan.dp
    point = run.sweep(tp=sorted({tp, 2 * tp}), dp=sorted({dp, 2 * dp})).sel(tp=tp, dp=dp)
    return point.time.item(), point.memory.item()


def of_best(run: Run) -> Pair:
    """The only point of a grid, as its best."""
    (found,) = run.best(minimize="time", tp=[run.plan.tp]).to_dict("records")
    return found["time"], found["memory"]


def of_search(run: Run) -> Pair:
    """A search that may choose nothing; it tells the bytes that a device must have, with what is reserved."""
    names = (*ASKED, "ep", "cp", "cp_kind", "expert_tp", "rank_order")
    require = {name: getattr(run.plan, name) for name in names if getattr(run.plan, name) is not None} | {
        "schedule": run.plan.effective_schedule,
        "attention": run.structure.attention,
        "uneven_stages": False,
    }
    model, system = run.base_model, run.base_system
    work = {"batch": run.question["batch"], "sequence": run.question["sequence"]}
    devices = run.plan.tp * run.plan.pp * run.plan.dp
    table = sf.search(model, system, devices=devices, **work, require=require, memory_capacity=1e14)
    (found,) = table.to_dict("records")
    assert found["memory_bytes"] == pytest.approx(run.needed_bytes, rel=1e-12)
    return found["time_s"], run.value("memory")


def of_bind(run: Run) -> Pair:
    """A run of other work, bound to this one."""
    other = run.bind(batch=2 * run.question["batch"], memory_bandwidth=1e12)
    kept = {name: value for name, (value, _) in run.bound.items() if name == "memory_bandwidth"}
    return of_run(other.bind(batch=run.question["batch"], **kept))


def of_derivation(run: Run) -> Pair:
    """The Python that `symperf derive` writes."""
    found = []
    for output in OUTPUTS:
        derivation = derive(run, of=output)
        space: dict[str, Any] = {}
        exec(compile(derivation.python(), "derived", "exec"), space)
        found.append(space[function_name(derivation)]())
    return found[0], found[1]


def of_c(runs: Sequence[Run], folder: Path) -> list[Pair]:
    """The whole program in C."""
    found = []
    for run in runs:
        names = prune(run.compiled.program, OUTPUTS).inputs
        header, source = c_source(run.compiled.program, OUTPUTS, "unit")
        (folder / "unit.h").write_text(header, encoding="utf-8")
        (folder / "unit.c").write_text(source + MAIN.format(count=len(names)), encoding="utf-8")
        command = [tool("gcc", "cc", "clang"), "-O0", "-ffp-contract=off", "unit.c", "-lm", "-o", "unit"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        values = " ".join(float(run.bound[name][0]).hex() for name in names)
        done = subprocess.run([str(folder / "unit")], input=values, capture_output=True, text=True, check=True)
        time, memory = map(float, done.stdout.split())
        found.append((time, memory))
    return found


def of_javascript(runs: Sequence[Run], folder: Path) -> list[tuple[Pair, Pair]]:
    """The whole program in JavaScript, and the page of the explorer at its start."""
    for path in STATIC.glob("*.js"):
        shutil.copy(path, folder)
    asked = []
    for at, run in enumerate(runs):
        program = run.compiled.program
        text = javascript_module(program, OUTPUTS, "unit")
        (folder / f"unit{at}.mjs").write_text(text, encoding="utf-8")
        point = {name: run.bound[name][0] for name in prune(program, OUTPUTS).inputs}
        asked.append({"point": point, "page": page_of(run).data()})
    texts = {"package.json": '{"type": "module"}', "main.js": SCRIPT, "asked.json": json.dumps(asked)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [tool("node", "nodejs"), "main.js"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(tuple(one), tuple(two)) for one, two in json.loads(done.stdout)]


def page_of(run: Run) -> Explorer:
    """An explorer that begins at a run, and offers nothing else."""
    varied = dict.fromkeys(VARIED, ())
    work = run.question["batch"], run.question["sequence"]
    return Explorer([run.base_model], [run.base_system], run.plan, kinds=("train",), train=work, varied=varied)
