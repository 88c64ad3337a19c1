"""How fast searches are: the whole space of large clusters, and the rate on a space like Calculon's.

Calculon's exhaustive search (github.com/calculon-ai/calculon, `llm-optimal-execution`) has 3,232,128 candidates for
GPT-3 175B on 64 GPUs, and evaluates 62 to 83 of them a second as shipped, 405 to 465 with its logger silenced (measured
on a two-core host). The space here has as many plans that can run: layouts, micro-batches, virtual stages,
recomputation, sequence parallelism, ZeRO, schedules, attention, context parallelism, and three overlaps in steps.

Run `python benchmarks/bench_search.py`; the first run compiles families and is slow, the second is what is reported.
`--smoke` searches a small space with and without bounds, and compares the plans with single runs.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import symperf as sf
from symperf.plan_search.search import answer

CALCULON = 465.0
"""Candidates a second, the fastest measured."""
OVERLAPS = {"overlap_tp": [0.0, 0.5, 1.0], "overlap_dp": [0.0, 1.0], "overlap_gather": [0.0, 1.0]}
LARGE = {
    "GPT-3 175B on 4096": ("gpt3-175b", "h100-sxm", 4096, 1536, 2048),
    "Kimi K2 (1T, experts) on 16384": ("kimi-k2", "h100-sxm", 16384, 4096, 4096),
}


def large(name: str) -> None:
    model, system, devices, batch, sequence = LARGE[name]
    asked = {"devices": devices, "batch": batch, "sequence": sequence}
    for label in ("first", "again"):
        started = time.perf_counter()
        found = answer(sf.Model.load(model), sf.System.load(system), **asked)
        took = time.perf_counter() - started
        print(
            f"{name}, {label} in this process: {found.considered:,} considered, {found.legal:,} can run, "
            f"{found.feasible:,} fit, {found.pruned:,} pruned, in {took:.2f} s "
            f"({found.considered / took / 1e6:.1f} M considered/s, {found.legal / took / 1e6:.2f} M legal/s)"
        )
    started = time.perf_counter()
    command = [sys.executable, "-m", "symperf", "search", model, "-s", system]
    command += [part for key, value in asked.items() for part in (f"--{key}", str(value))]
    subprocess.run([*command, "--json"], check=True, stdout=subprocess.DEVNULL)
    print(f"{name}: the whole command takes {time.perf_counter() - started:.2f} s")


def like_calculon() -> None:
    for label in ("first", "again", "once more"):
        started = time.perf_counter()
        found = answer(
            sf.Model.load("gpt3-175b"),
            sf.System.load("h100-sxm"),
            devices=64,
            batch=1536,
            sequence=2048,
            require=OVERLAPS,
        )
        took = time.perf_counter() - started
        rate = found.legal / took
        print(
            f"GPT-3 175B on 64, {label}: {found.considered:,} considered, {found.legal:,} can run, in {took:.2f} s: "
            f"{rate / 1e6:.2f} M plans that can run a second, {rate / CALCULON:,.0f} times Calculon"
        )


def smoke() -> None:
    """A small search finds the same with and without bounds, and what single runs of its plans say.

    Raises:
        AssertionError: it does not.
    """
    model, system = sf.Model.load("gpt-22b"), sf.System.load("a100-80gb-sxm")
    held = {"recompute": "selective", "attention": "flash", "schedule": "1f1b", "zero": 1, "sequence_parallel": True}
    work = {"batch": 64, "sequence": 2048}
    bounded, whole = (answer(model, system, devices=16, **work, require=held, prune=prune) for prune in (True, False))
    best, again = (found.found[0].tally.best for found in (bounded, whole))
    if not np.array_equal(best.score[:3], again.score[:3]):
        raise AssertionError(f"with bounds {best.score[:3]}, without {again.score[:3]}")
    alone = sf.training(model, system, sf.Plan(**bounded.found[0].space.fields(best.place[0])), **work)
    if not np.isclose(alone.value("time"), best.score[0], rtol=1e-12, atol=0.0):
        raise AssertionError(f"the search finds {best.score[0]}, a single run {alone.value('time')}")
    print(f"{whole.legal:,} plans: the same best with and without bounds, and in a single run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["large", "calculon"])
    parser.add_argument("--smoke", action="store_true", help="compare results alone")
    options = parser.parse_args()
    if options.smoke:
        smoke()
        return
    only = options.only
    if only != "calculon":
        for name in LARGE:
            large(name)
    if only != "large":
        like_calculon()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")


if __name__ == "__main__":
    main()
