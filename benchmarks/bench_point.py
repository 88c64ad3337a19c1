"""One point: lowering a training step, and evaluating it and its derivatives.

Run: python benchmarks/bench_point.py [--json FILE]

CPU times in this process, the least of several runs; ratios are to the interpreter on Python floats.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symperf import Model, Plan, Run, System
from symperf.codegen.interpret import adjoints, floats, run
from symperf.codegen.passes import prune
from symperf.train.build import build

if TYPE_CHECKING:
    from collections.abc import Callable


def best(action: Callable[[], Any], runs: int) -> float:
    """The least CPU seconds of one call."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        action()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    answer = Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)
    inputs = {name: value for name, (value, _) in answer.bound.items()}
    program = prune(answer.compiled.program, ["time", "memory"])
    values = run(program, inputs, floats())
    figures = {
        "build, share and lower the step": best(lambda: build(answer.structure), 3),
        "interpreter, time and memory": best(lambda: run(program, inputs, floats()), 50),
        "interpreter, all elasticities": best(lambda: adjoints(program, values, program.outputs["time"], floats()), 50),
    }
    base = figures["interpreter, time and memory"]
    print(f"{len(program)} instructions")
    print(f"{'what':40s} {'ms':>10s} {'ratio':>8s}")
    for name, seconds in figures.items():
        print(f"{name:40s} {seconds * 1e3:10.4f} {seconds / base:8.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
