"""How many drafted tokens are accepted where rows of serving.csv were measured with drafts, by its calibration rows.

The acceptance is the one of the least mean of |ln(predicted / measured)| of the time of each later token, over the
calibration rows whose script drafts (`symperf.validation.serving_definitions.SCRIPTS`). Run as
`python benchmarks/calibration/accepted_drafts.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from symperf.common.errors import InputError
from symperf.validation import serving
from symperf.validation.rows import PACKAGED, read
from symperf.validation.serving_definitions import DRAFT_ACCEPTANCE

TRIED = [hundredths / 100 for hundredths in range(50, 85, 5)]


@dataclass(frozen=True)
class Row:
    """A calibration row with drafts, and what was measured of it."""

    asked: serving.ServedRow
    measured: float


def rows_with_drafts() -> list[Row]:
    """The calibration rows whose script drafts."""
    found = []
    for row in read(PACKAGED / "serving.csv", serving.COLUMNS):
        try:
            asked = serving.asked_of(row)
        except InputError:
            continue
        if row.text("use") == "calibration" and asked.script.drafts:
            found.append(Row(asked, (row.number("silicon_tpot_ms") or 0.0) / 1e3))
    return found


def errors(rows: list[Row], acceptance: float) -> list[float]:
    """ln(predicted / measured) of the time of each later token."""
    return [math.log(serving.times_of(row.asked, acceptance)[1] / row.measured) for row in rows]


def main() -> None:
    """Print the errors by acceptance."""
    rows = rows_with_drafts()
    for acceptance in TRIED:
        found = errors(rows, acceptance)
        away, bias = sum(map(abs, found)) / len(found), sum(found) / len(found)
        told = " <- in use" if acceptance == DRAFT_ACCEPTANCE else ""
        print(f"{acceptance:.2f}: {len(rows)} rows, mean |ln| {away:.3f}, mean ln {bias:+.3f}{told}")


if __name__ == "__main__":
    main()
