"""What each release cost, and whether the step has grown since: `history.csv`.

    python benchmarks/history.py                                     tells how the step's program has grown
    python benchmarks/history.py --add KERNELS.json STARTUP.json     a line of this release

The files are what `bench_kernels.py` (of mixes 0 and 2 at least) and `bench_startup.py` write with `--json`. Ratios are
of processor time, on one machine in one run: to `import sympy`, and of C to kernels (above 1 the kernel is faster). CI
runs the first and shows what it says; it fails nothing.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
from pathlib import Path
from typing import Any

HISTORY = Path(__file__).with_suffix(".csv")
GROWTH = 0.03
"""Of the step's program, above which it is told."""
MIXES = {"first": "tp, micro_batch, hidden_size, memory_bandwidth", "worst": "sequence, micro_batch, tp, hidden_size"}
"""Axes of the grids of `bench_kernels.py` that are kept."""
STARTS = {"help": "symperf --help", "train_warm": "symperf train, warm", "train_cold": "symperf train, cold"}
COLUMNS = (
    "release",
    "date",
    "step_instructions",
    *(f"{name}_to_sympy" for name in STARTS),
    *(f"c_to_grid_{name}" for name in MIXES),
    "c_to_formula",
)


def releases() -> list[dict[str, str]]:
    """The lines, the oldest first."""
    with HISTORY.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def growth(known: list[dict[str, str]], instructions: int) -> str | None:
    """What to say of a step of so many instructions, if it is much larger than that of the last release.

    >>> growth([{"release": "1.0", "step_instructions": "1000"}], 1030) is None
    True
    >>> print(growth([{"release": "1.0", "step_instructions": "1000"}], 1031))
    the program of the training step has 1,031 instructions, 3.1 % more than in release 1.0 (1,000)
    """
    last = known[-1]
    before = int(last["step_instructions"])
    more = instructions / before - 1
    if instructions <= before * (1 + GROWTH):
        return None
    return (
        f"the program of the training step has {instructions:,} instructions, {more:.1%} more than in release "
        f"{last['release']} ({before:,})"
    ).replace("%", " %")


def count_instructions() -> int:
    """Of the step of `bench_kernels.py`, time and memory alone."""
    from bench_kernels import step

    from symperf.codegen.passes import prune

    return len(prune(step()[0], ["time", "memory"]))


def line_of(kernels: dict[str, Any], startup: dict[str, Any]) -> dict[str, Any]:
    """The line of this release."""
    from symperf.common.version import VERSION

    of_mix = {", ".join(row["axes"]): row["to_c"] for row in kernels["grid"]}
    line: dict[str, Any] = {"release": VERSION, "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat()}
    line["step_instructions"] = count_instructions()
    line |= {f"{name}_to_sympy": round(startup[label]["ratio"], 2) for name, label in STARTS.items()}
    line |= {f"c_to_grid_{name}": round(of_mix[axes], 2) for name, axes in MIXES.items()}
    return line | {"c_to_formula": round(kernels["hand"]["to_c"], 2)}


def main() -> None:
    """Tell, or add a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", nargs=2, type=Path, metavar=("KERNELS", "STARTUP"), help="figures of this release")
    asked = parser.parse_args()
    if asked.add:
        line = line_of(*(json.loads(path.read_text(encoding="utf-8")) for path in asked.add))
        with HISTORY.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(line)
        return
    instructions = count_instructions()
    told = growth(releases(), instructions)
    print(
        f"NOTE: {told}" if told else f"the step has {instructions:,} instructions: grown by no more than {GROWTH:.0%}"
    )


if __name__ == "__main__":
    main()
