"""Measured training steps as rows to fit: each is a run on the system, whose whole closed form is compiled.

The table is `training.csv` of `symperf validate`: rows are read and laid out as there, on the system that is fitted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..run import Run
from ..validation import rows as cells
from ..validation import training
from ..validation.layout import layout_of
from ..validation.models import model_of
from .forms import Family, Form
from .table import Row

if TYPE_CHECKING:
    import os

    from ..system import System


def families(path: str | os.PathLike[str], system: System) -> tuple[list[Family], Counter[str]]:
    """The steps of a file by structure, and why some are left out (reason: rows).

    Raises:
        InputError: the file cannot be read, or a cell is none.
    """
    found: dict[int, list[tuple[Row, Run]]] = {}
    left: Counter[str] = Counter()
    for row in cells.read(Path(path), training.COLUMNS):
        try:
            run, seconds = _measured(row, system)
        except cells.UnreadableError:
            raise
        except InputError as error:
            left[f"step rows: {error}"] += 1
            continue
        texts = {"name": row.id, "dtype": row.text("precision"), "mode": "", "note": ""}
        found.setdefault(id(run.compiled.program), []).append((Row(row.line, "step", texts, {}, seconds), run))
    return [_family(members, system) for members in found.values()], left


def _measured(row: cells.Row, system: System) -> tuple[Run, float]:
    """The run of a row and the seconds of its step."""
    quantity, measured, _ = training.measurement(row)
    model = model_of(row)
    layout = layout_of(row, model)
    if layout.midway or layout.layers != model.sizes["num_layers"]:
        raise InputError("every second product is computed again, or stages are padded with layers")
    run = Run(model, system, layout.plan, batch=layout.batch, sequence=layout.sequence)
    if quantity == "time_s":
        return run, measured
    if quantity not in ("tokens_per_s", "tokens_per_s_per_device"):
        raise InputError("neither the step's time nor tokens a second are given")
    devices = run.value("devices") if quantity.endswith("_per_device") else 1.0
    return run, run.value("tokens") / devices / measured


def _family(members: list[tuple[Row, Run]], system: System) -> Family:
    rows = [row for row, _ in members]
    bound = [{name: value for name, (value, _) in run.bound.items()} for _, run in members]
    own = [name for name in bound[0] if name not in system.quantities]
    sizes: dict[str, Any] = {name: np.array([values[name] for values in bound]) for name in own}
    seconds = np.array([row.seconds for row in rows])
    return Family(Form("step", "step"), rows, {}, sizes, seconds, members[0][1].compiled.program)
