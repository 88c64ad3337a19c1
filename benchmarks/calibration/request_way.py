"""What a request takes outside the engine, fitted to the calibration rows of serving.csv.

The mean time to the first token, less all that is predicted of it, is taken as lambda_r + lambda_t s_p + lambda_if N
(`request_way_time`); the three are those of the least mean of |ln(predicted / measured)| over the rows of a software.
Run as `python benchmarks/calibration/request_way.py`; it prints the constants for each profile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from symperf.common.errors import InputError
from symperf.validation import serving
from symperf.validation.rows import PACKAGED, read

HALVINGS = 24


@dataclass(frozen=True)
class Row:
    """A measured time to the first token beside what is predicted of it without the way of the request."""

    measured: float
    inside: float
    prompt: int
    concurrency: int


def rows_of(stack: str) -> list[Row]:
    """The calibration rows of a software whose requests all fit."""
    found = []
    for row in read(PACKAGED / "serving.csv", serving.COLUMNS):
        if row.text("use") != "calibration":
            continue
        try:
            asked = serving.asked_of(row)
            if asked.stack != stack:
                continue
            run = serving.loop_of(asked)
            first, _ = serving.times_of(asked)
        except InputError:
            continue
        if run.state.cache < 1e-3:
            measured = (row.number("silicon_ttft_ms") or 0.0) / 1e3
            found.append(Row(measured, first - run.state.request, asked.prompt, asked.concurrency))
    return found


def error(rows: list[Row], way: tuple[float, float, float]) -> float:
    """The mean of |ln(predicted / measured)|."""
    fixed, token, crowd = way
    return sum(
        abs(math.log((row.inside + fixed + token * row.prompt + crowd * row.concurrency) / row.measured))
        for row in rows
    ) / len(rows)


def fit(rows: list[Row]) -> tuple[float, float, float]:
    """The way of the least error, by coordinate search in steps that shrink."""
    best, step = [10e-3, 10e-6, 0.5e-3], [10e-3, 10e-6, 0.5e-3]
    for _ in range(HALVINGS):
        for place in range(3):
            tried = [best[:], best[:]]
            tried[0][place] += step[place]
            tried[1][place] = max(0.0, tried[1][place] - step[place])
            chosen = min([best, *tried], key=lambda each: error(rows, (each[0], each[1], each[2])))
            step[place] *= 1.2 if chosen is not best else 0.6
            best = chosen
    return best[0], best[1], best[2]


def main() -> None:
    """Print the constants of each software."""
    for stack in serving.known.STACKS.values():
        rows = rows_of(stack)
        way = fit(rows)
        told = f"{way[0] * 1e3:.1f} ms, {way[1] * 1e6:.1f} us a token, {way[2] * 1e3:.2f} ms a request in flight"
        print(f"{stack}: {len(rows)} rows, {told}; mean |ln| {error(rows, way):.3f}")


if __name__ == "__main__":
    main()
