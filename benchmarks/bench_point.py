"""One point: lowering a training step, and evaluating it and its derivatives.

Run: python benchmarks/bench_point.py [--json FILE] [--smoke]

CPU times in this process, the least of several runs; ratios are to the interpreter on Python floats. `--smoke` compares
the interpreter with NumPy, and derivatives with differences.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symperf import Model, Plan, Run, System
from symperf.codegen.evaluate import evaluate
from symperf.codegen.interpret import adjoints, floats, run
from symperf.codegen.passes import prune
from symperf.train.build import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.codegen.program import Program


def best(action: Callable[[], Any], runs: int) -> float:
    """The least CPU seconds of one call."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        action()
        found.append(time.process_time() - start)
    return min(found)


def smoke(program: Program, inputs: dict[str, float]) -> None:
    """The interpreter, NumPy and derivatives agree.

    Raises:
        AssertionError: they do not.
    """
    values, at = run(program, inputs, floats()), program.outputs["time"]
    in_numpy = evaluate(program, inputs, {at})[at]
    if not np.isclose(values[at], in_numpy, rtol=1e-12, atol=0.0):
        raise AssertionError(f"the interpreter finds {values[at]}, NumPy {in_numpy}")
    slopes = adjoints(program, values, at, floats())
    for name in ("memory_bandwidth", "matrix_rate", "scale_up_bandwidth", "launch_latency"):
        step = 1e-6 * inputs[name]
        low, high = (run(program, {**inputs, name: inputs[name] + s}, floats())[at] for s in (-step, step))
        slope = slopes[program.inputs[name]]
        if not np.isclose(slope, (high - low) / (2 * step), rtol=1e-4, atol=1e-9 * values[at] / inputs[name]):
            raise AssertionError(f"{name}: the derivative is {slope}, the difference {(high - low) / (2 * step)}")
    print("a step: the interpreter agrees with NumPy, derivatives with differences")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--smoke", action="store_true", help="compare values alone")
    options = parser.parse_args()
    plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    answer = Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)
    inputs = {name: value for name, (value, _) in answer.bound.items()}
    program = prune(answer.compiled.program, ["time", "memory"])
    if options.smoke:
        smoke(program, inputs)
        return
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
