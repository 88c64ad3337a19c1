"""What a host takes for the operations of a training step and for its collectives, fitted to measured steps.

`steps.csv` has steps of GPT models on one node of 8 A100 80 GB under Megatron-DeepSpeed: the rows with use=calibration
of data/ground_truth_single.csv of https://github.com/VIA-Research/vTrain at f8dda847 (arXiv 2312.12391), where the row
of VTRAINS-n is n + 2: 1024 tokens, 16 heads, a vocabulary of 51,200, FP16, eager attention with dropout, 1F1B, full
recomputation. `host_latency` and `host_collective_latency` of the profile megatron-deepspeed have the least mean
of |ln(predicted / measured)|. Run as `python benchmarks/calibration/host.py`.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from rows import column, read

from symperf.codegen.interpret import arrays
from symperf.codegen.interpret import run as interpret
from symperf.validation.documents import filled
from symperf.validation.rows import PACKAGED, TableRow
from symperf.validation.runs import run_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symperf.runs.training_run import Run

STEPS = PACKAGED / "steps.csv"
NAMES = ("host_latency", "host_collective_latency")
ROUNDS = 18
"""Of the search, in each of which a step grows by a fifth or shrinks by two fifths."""
Row = dict[str, str]
Constants = tuple[float, float]


class Steps:
    """Measured steps, and their runs under any two constants.

    Args:
        rows: of `steps.csv`.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.measured = column(rows, "step_time_s")
        runs = [step_of(row) for row in rows]
        self.program = runs[0].compiled.program
        if any(run.structure != runs[0].structure for run in runs):
            raise ValueError("steps of several forms")
        self.inputs = {name: np.array([run.bound[name][0] for run in runs]) for name in self.program.inputs}

    def predicted(self, constants: Constants) -> np.ndarray:
        """The seconds of each step."""
        inputs = {**self.inputs, **dict(zip(NAMES, constants, strict=True))}
        return np.asarray(interpret(self.program, inputs, arrays())[self.program.outputs["time"]])

    def loss(self, constants: Constants) -> float:
        """The mean of |ln(predicted / measured)|."""
        return float(np.abs(np.log(self.predicted(constants) / self.measured)).mean())

    def fit(self, *, calls: bool = True) -> Constants:
        """The constants of the least loss, by coordinate search; without `calls` the second stays 0."""
        best, step = [50e-6, 0.0], [20e-6, 40e-6]
        for _ in range(ROUNDS):
            for place in range(2 if calls else 1):
                tried = [best[:], best[:]]
                tried[0][place] += step[place]
                tried[1][place] = max(0.0, tried[1][place] - step[place])
                chosen = min([best, *tried], key=lambda each: self.loss((each[0], each[1])))
                step[place] *= 1.2 if chosen is not best else 0.6
                best = chosen
        return best[0], best[1]

    def told(self, constants: Constants) -> str:
        """How well constants predict them."""
        errors = self.predicted(constants) / self.measured - 1
        mean, most = np.abs(errors).mean(), np.abs(errors).max()
        return f"{len(errors)} rows, mean error {mean:.1%}, bias {errors.mean():+.1%}, largest {most:.0%}"


def step_of(row: Row) -> Run:
    """The run of a row, with the host's terms."""
    return run_of(filled(TableRow("steps.csv", 0, row)))


def kept_back(row: Row) -> bool:
    """Whether a row is in the half that is kept back: whole shapes by their hash, so that none is on both sides."""
    shape = "-".join(row[name] for name in ("layers", "hidden", "tp", "micro_batch_seqs"))
    return hashlib.sha256(shape.encode()).digest()[0] % 2 == 1


def where(rows: list[Row], test: Callable[[Row], bool]) -> Steps:
    """The steps of some rows."""
    return Steps([row for row in rows if test(row)])


def main() -> None:
    """Print the constants, what single groups of rows ask for, and the error on shapes that did not fit them."""
    rows = read(STEPS)
    steps = Steps(rows)
    best = steps.fit()
    print("no host:", steps.told((0.0, 0.0)))
    print(f"all: {best[0] * 1e6:.1f} us, {best[1] * 1e6:.1f} us a call; {steps.told(best)}")
    half = where(rows, lambda row: not kept_back(row)).fit()
    kept = where(rows, kept_back)
    print(f"half of the shapes: {half[0] * 1e6:.1f} us, {half[1] * 1e6:.1f} us; the other half: {kept.told(half)}")
    for name in ("tp", "hidden", "micro_batch_seqs"):
        for value in sorted({row[name] for row in rows}, key=int):
            some = where(rows, lambda row, name=name, value=value: row[name] == value)  # type: ignore[misc]
            own = some.fit(calls=name != "tp" or value != "1")
            print(f"{name} {value}: {some.told(best)}; asks for {own[0] * 1e6:.1f} us, {own[1] * 1e6:.1f} us")


if __name__ == "__main__":
    main()
