"""Rows of the copied measurements, and the one-dimensional statistics that the scripts share."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def read(name: str | Path) -> list[dict[str, str]]:
    """The rows of a CSV beside this file; every one is meant for calibration, none for scoring."""
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if any(row["use"] != "calibration" for row in rows):
        raise ValueError(f"{name} holds a row that is not for calibration")
    return rows


def measured(kind: str) -> list[dict[str, str]]:
    """The rows of one kind that `symperf measure` wrote on an H200: all of them calibrate, none is scored."""
    with (HERE / "h200.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == kind]


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    """One column of these rows as numbers."""
    return np.array([float(row[name]) for row in rows])


def number(row: dict[str, str]) -> int:
    """The number at the end of a row's id."""
    return int(row["id"].rsplit("-", 1)[1])


def family(row: dict[str, str]) -> str:
    """The source at the start of a row's id."""
    return row["id"].rsplit("-", 1)[0]
