"""How long the best of all plans takes at a million points of technology, and what it takes.

The points are those of the study `docs/studies/factorial.py`: GPT-3 175B on 1,024 devices, all plans that can run.
Run `python benchmarks/bench_factorial.py`; the families of plans are compiled first where the cache does not hold them,
and both times are told. `--share 0.5` takes every second power budget; `--threads` as for `best_over`. `--smoke` finds
the best of few plans at a few points, and compares it with every one of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "studies"))


def smoke() -> None:
    """The best of few plans at a few points is the best of a search at each of them.

    Raises:
        AssertionError: it is not.
    """
    import numpy as np
    from factorial import BUDGETS, COARSE, Asked, Factorial, found_at

    from symperf import Model, System
    from symperf.plan_search.search import answer

    held = {"recompute": "full", "attention": "flash", "schedule": "1f1b", "zero": 1, "sequence_parallel": True}
    asked = Asked("gpt-22b", "a100-80gb-sxm", 16, 64, 2048, held)
    points = Factorial(*COARSE, budgets={name: values[:1] for name, values in BUDGETS.items()})
    found = found_at(points, asked)
    work = {"devices": asked.devices, "batch": asked.batch, "sequence": asked.sequence, "require": held}
    for k, time_of in enumerate(found.time):
        values = {name: float(column[k]) for name, column in found.columns.items()}
        best = answer(Model.load(asked.model), System.load(asked.system), **work, values=values).found[0].tally.best
        if not np.isclose(time_of, best.score[0], rtol=1e-9, atol=0.0):
            raise AssertionError(f"point {k}: {time_of}, a search finds {best.score[0]}")
    print(f"{len(found)} points of technology: the best plan is that of a search at each")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the power budgets, above 0 to 1")
    parser.add_argument("--threads", type=int, default=None, help="by default one for each processor")
    parser.add_argument("--smoke", action="store_true", help="compare results alone")
    options = parser.parse_args()
    if options.smoke:
        smoke()
        return
    from factorial import COARSE, Asked, Factorial, found_at

    start = time.perf_counter()
    found_at(Factorial(*COARSE), Asked(), threads=options.threads)
    print(f"one cell, with what was not compiled yet: {time.perf_counter() - start:.1f} s")
    points = Factorial()
    if options.share < 1:
        step = max(1, round(1 / options.share))
        points = Factorial(budgets=points.budgets | {"power": points.budgets["power"][::step]})
    before, start = os.times(), time.perf_counter()
    found = found_at(points, Asked(), threads=options.threads)
    wall, after = time.perf_counter() - start, os.times()
    processor = after.user + after.system - before.user - before.system
    print(f"{len(found):,} points, {int(found.legal.min()):,} plans that can run at each: {wall:.1f} s")
    print(f"processor time {processor:.1f} s; {found.evaluated / len(found):.1f} rows of plans evaluated a point")
    print(f"{len(found.plans)} plans are the best somewhere")
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
