"""The tables of measurements, and the module that expresses the rows of each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .case import CALIBRATION
from .documents import filled

if TYPE_CHECKING:
    from collections.abc import Callable

    from .case import Expressed
    from .rows import Columns, TableRow

TABLES = {
    "training.csv": "training",
    "steps.csv": "steps",
    "memory.csv": "memory",
    "adapters.csv": "memory",
    "inference.csv": "inference",
    "serving.csv": "serving",
    "reference_training.csv": "references",
    "reference_inference.csv": "inference_references",
}
"""Name of a file -> the module of this package for its rows."""

OWN = ("training.csv", "inference.csv", "memory.csv", "serving.csv")
"""Those that a user's folder may hold."""


def columns_of(table: str) -> Columns:
    """The columns of a table."""
    found: Columns = _module(table).COLUMNS
    return found


def expresser(table: str) -> Callable[[TableRow], list[Expressed]]:
    """The function that makes cases of a row of a table, with what its document says."""
    express: Callable[[TableRow], list[Expressed]] = _module(table).express
    return lambda row: express(filled(row))


def source_of(row: TableRow) -> str:
    """What the errors of a row are grouped by: its family, memory and what set constants apart; references by table."""
    if row.table.startswith("reference_"):
        return row.table.removesuffix(".csv")
    if row.table == "serving.csv":
        return "serving"
    family = f"{row.family} memory" if TABLES.get(row.table) == "memory" else row.family
    return f"{family}{CALIBRATION}" if row.text("use") == "calibration" else family


def _module(table: str) -> Any:
    return importlib.import_module(f".{TABLES[table]}", __package__)
