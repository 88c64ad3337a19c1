"""What a calibration found, as a table, as JSON and as the TOML file of a new system."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..systems.system import catalogue_names

if TYPE_CHECKING:
    from ..systems.system import System


@dataclass(frozen=True)
class Symbol:
    """One symbol: the system's value, the new one, and how well the rows know it.

    Attributes:
        before: the system's value.
        value: the new one; as before, if it was not fitted.
        error: its relative standard error; None if it was not fitted.
        low: what a tenth of the rows that depend on it would ask for at most; None if too few do.
        high: the same from above.
        width: standard deviation of the prior of ln(value).
        rows: rows whose time depends on it.
        why_held: why it keeps its value; empty if it was fitted.
    """

    name: str
    before: float
    value: float
    error: float | None
    low: float | None
    high: float | None
    width: float
    rows: int
    why_held: str = ""


@dataclass(frozen=True)
class Residuals:
    """ln(predicted / measured) of the rows of one kind, after the fit and before it."""

    kind: str
    rows: int
    mean: float
    mean_absolute: float
    median_absolute: float
    worst: float
    worst_line: int
    worst_file: str
    before: float
    """Mean absolute residual with the system's own values."""


@dataclass(frozen=True)
class Calibration:
    """The outcome.

    Attributes:
        files: of the measurements, each with its SHA-256.
        base: name or path of the system that was fitted.
        system: the same with the fitted values.
        date: in ISO form.
        symbols: every symbol that was to be fitted.
        residuals: by kind of row, with "all" last.
        correlations: of the fitted symbols' logarithms, the closest first, (one, other, correlation).
        inseparable: directions that the rows do not tell: {symbol: part}, and who was held at the system's value.
        left_out: why rows were not used, and how many.
        warnings: what else the user should know.
    """

    files: tuple[tuple[str, str], ...]
    base: str
    system: System
    date: str
    used: int
    symbols: tuple[Symbol, ...]
    residuals: tuple[Residuals, ...]
    correlations: tuple[tuple[str, str, float], ...]
    inseparable: tuple[tuple[dict[str, float], str], ...]
    left_out: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """The fitted values, by symbol."""
        return {symbol.name: symbol.value for symbol in self.symbols if not symbol.why_held}

    @property
    def file(self) -> str:
        """The names of the files."""
        return ", ".join(name for name, _ in self.files)

    def source(self, symbol: Symbol) -> str:
        """Where a fitted value comes from, as its file says it."""
        files = ", ".join(f"{Path(name).name} (sha256 {sha256[:16]})" for name, sha256 in self.files)
        spread = "; low and high: 10th and 90th percentile of what rows ask for" if symbol.low is not None else ""
        return (
            f"calibrated from {files}, {symbol.rows} rows, {self.date}, "
            f"standard error {symbol.error or 0.0:.2%}{spread}"
        )

    def toml(self, folder: str | os.PathLike[str] = ".", name: str = "") -> str:
        """The file of the new system: its base, and the fitted values.

        Args:
            folder: where the file will lie; a base that is a file is named from there.
            name: of the new system; without one it is the file's.

        Raises:
            InputError: the system was given as an object that is not of the catalogue: its file is not known.
        """
        base = self.base
        if base not in catalogue_names():
            if not Path(base).exists():
                raise InputError(f"system {quote(base)}: is not of the catalogue; give calibrate the path of its file")
            base = os.path.relpath(base, folder)
        lines = [*([f"name = {_quote(name)}"] if name else []), f"base = {_quote(base)}"]
        for symbol in self.symbols:
            if symbol.why_held:
                continue
            lines += ["", f"[{symbol.name}]", f"value = {symbol.value!r}", f"source = {_quote(self.source(symbol))}"]
            if symbol.low is not None and symbol.high is not None:
                lines += [f"low = {symbol.low!r}", f"high = {symbol.high!r}"]
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain dictionaries and lists."""
        return {
            "files": [{"file": name, "sha256": sha256} for name, sha256 in self.files],
            **({"file": self.files[0][0], "sha256": self.files[0][1]} if len(self.files) == 1 else {}),
            "base": self.base,
            "date": self.date,
            "rows_used": self.used,
            "rows_left_out": dict(self.left_out),
            "symbols": [
                {
                    "name": symbol.name,
                    "before": symbol.before,
                    "value": symbol.value,
                    "relative_error": symbol.error,
                    "low": symbol.low,
                    "high": symbol.high,
                    "prior_width": symbol.width if math.isfinite(symbol.width) else None,
                    "rows": symbol.rows,
                    "fitted": not symbol.why_held,
                    "why_held": symbol.why_held or None,
                }
                for symbol in self.symbols
            ],
            "residuals": [vars(kind) for kind in self.residuals],
            "correlations": [{"a": a, "b": b, "correlation": value} for a, b, value in self.correlations],
            "inseparable": [{"direction": parts, "held": held} for parts, held in self.inseparable],
            "warnings": list(self.warnings),
        }


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
