"""What the columns of a file of one's own may be called: the table `own_columns.csv`, read.

A name is compared folded: small letters and digits, `_` between. A field with a unit has the unit behind its name, as
`step_time_ms`; a unit that is not said is asked for, never guessed.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE: Final = Path(__file__).parent / "own_columns.csv"
UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "s": {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0},
    "GB": {"gb": 1.0, "gib": 2.0**30 / 1e9, "mb": 1e-3, "mib": 2.0**20 / 1e9, "bytes": 1e-9},
    "pct": {"pct": 1.0, "percent": 1.0, "fraction": 100.0},
}
"""The unit of a field -> the units that a column may have instead, folded, each with its factor."""


@dataclass(frozen=True)
class OwnColumn:
    """A field that a column of one's own may be.

    Attributes:
        field: its name.
        role: "needed" (a row cannot be predicted without it), "measured" or "".
        unit: of its numbers; one of `UNITS` may be another in a column.
        metric: the cell of the column `metric` under which the documented table has it; "" for a column of its name.
        digits: how a cell that is one number is written in the documented table; "" as it is.
        says: what it holds.
        absent: what is taken where no column has it.
        names: other spellings, folded, without a unit.
    """

    field: str
    role: str
    unit: str
    metric: str
    digits: str
    says: str
    absent: str
    names: tuple[str, ...]

    @property
    def factors(self) -> Mapping[str, float]:
        """Units that a column may have, each with its factor to that of the field; none where there is no choice."""
        return UNITS.get(self.unit, {})

    @property
    def bases(self) -> tuple[str, ...]:
        """Its spellings, folded, behind which a unit stands."""
        ends = (f"_{unit.casefold()}" for unit in (*self.factors, self.unit) if unit)
        own = next((self.field.removesuffix(end) for end in ends if self.field.endswith(end)), self.field)
        return (own, *self.names) if self.factors else (self.field, *self.names)


@cache
def columns_of(kind: str) -> tuple[OwnColumn, ...]:
    """The fields of a kind of file."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] in (kind, "both") and kind != "serving"]
    return tuple(
        OwnColumn(
            row["field"],
            row["is"],
            row["unit"],
            row["metric"],
            row["digits"],
            row["says"],
            row["absent"],
            tuple(row["names"].split()),
        )
        for row in rows
    )


@cache
def spellings(kind: str) -> tuple[str, ...]:
    """Every name that a column of a kind of file may have, folded, without units."""
    return tuple(name for column in columns_of(kind) for name in (column.field, *column.bases))


def fold(name: str) -> str:
    """A name of a column as it is compared.

    >>> fold("Step time (ms)"), fold("MFU (%)"), fold("tokens/s/GPU")
    ('step_time_ms', 'mfu_pct', 'tokens_s_gpu')
    """
    return re.sub(r"[^a-z0-9]+", "_", name.casefold().replace("%", " pct ")).strip("_")


def recognise(name: str, kind: str) -> tuple[OwnColumn, str] | None:
    """The field that a column's name means, and its unit; None where it means none.

    The unit is "" where the field has one and the name does not say which.

    >>> [(field.field, unit) for field, unit in [recognise("Iteration time (ms)", "training")]]
    [('step_time_s', 'ms')]
    """
    folded = fold(name)
    for column in columns_of(kind):
        if not column.factors:
            if folded in column.bases:
                return column, column.unit
            continue
        for base in column.bases:
            if folded == base:
                return column, ""
            if folded.startswith(f"{base}_") and folded[len(base) + 1 :] in column.factors:
                return column, folded[len(base) + 1 :]
    return None
