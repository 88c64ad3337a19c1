"""Measured training steps and latencies as rows to fit: each is a run on the system, whose closed form is compiled.

The tables are `training.csv` and `inference.csv` of `symperf validate`: rows are read and laid out as there, on the
system that is fitted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..runs.training_run import Run
from ..validation import inference, training
from ..validation import rows as cells
from ..validation.inference_definitions import software_of
from ..validation.layout import layout_of
from ..validation.models import model_of
from .forms import RowFamily, RowFormula
from .plausible import ABOVE_PEAK
from .table import MeasuredRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..evaluation.base_run import BaseRun
    from ..systems.system import System
    from .table import MeasuredTable

SHARED = ("matrix_efficiency", "fp8_efficiency", "half_efficiency")
"""Inputs of products, of which one may take its value from another's symbol, as the formats and the system have it."""


def families(table: MeasuredTable, system: System) -> tuple[list[RowFamily], Counter[str], tuple[str, ...]]:
    """The runs of a table by structure, why some rows are left out (reason: rows), and the parts that rows name.

    Raises:
        InputError: the file cannot be read, or a cell is none.
    """
    columns, measured = KINDS[table.runs]
    found: dict[tuple[Any, ...], list[tuple[MeasuredRow, BaseRun]]] = {}
    left: Counter[str] = Counter()
    parts = []
    for row in cells.read(Path(table.name), columns):
        try:
            run, output, seconds = _check_run(row, system, measured)
        except cells.UnreadableError:
            raise
        except InputError as error:
            left[f"{table.runs} rows: {error}"] += 1
            continue
        parts.append(row.text("hw_key"))
        texts = {"name": row.id, "dtype": row.text("precision"), "mode": "", "note": ""}
        form = RowFormula(table.runs, output, renamed=_renamed_inputs(run, system))
        key = form, id(run.compiled.program), *_own(run, system)
        found.setdefault(key, []).append((MeasuredRow(row.line, table.runs, texts, {}, seconds, table.name), run))
    named = tuple(dict.fromkeys(part for part in parts if part))
    return [_family(key[0], key[2:], members) for key, members in found.items()], left, named


def _check_run(
    row: cells.TableRow, system: System, measured: Callable[[cells.TableRow, System], tuple[BaseRun, str, float, float]]
) -> tuple[BaseRun, str, float]:
    """The run of a row, the output of its program that was measured, and the seconds of that."""
    if row.text("use").casefold() == "test":
        raise InputError("rows that are marked as test set no constant")
    run, output, seconds, flops = measured(row, system)
    if flops > ABOVE_PEAK * run.value("devices") * run.bound["matrix_rate"][0] * seconds:
        raise InputError(f"it implies over {ABOVE_PEAK:g} times the peak rate: is its unit right, and its system?")
    return run, output, seconds


def _step(row: cells.TableRow, system: System) -> tuple[BaseRun, str, float, float]:
    """The run of a training step, its output, its seconds, and its FLOPs."""
    quantity, measured, _ = training.measurement(row)
    model = model_of(row)
    layout = layout_of(row, model)
    if layout.rest:
        raise InputError("not all its layers run alike")
    run = Run(model, system, layout.plan, batch=layout.batch, sequence=layout.sequence)
    flops = run.value("model_flops")
    if quantity == "time_s":
        return run, "time", measured, flops
    if quantity not in ("tokens_per_s", "tokens_per_s_per_device"):
        raise InputError("neither the step's time nor tokens a second are given")
    devices = run.value("devices") if quantity.endswith("_per_device") else 1.0
    return run, "time", run.value("tokens") / devices / measured, flops


def _latency(row: cells.TableRow, system: System) -> tuple[BaseRun, str, float, float]:
    """The run of a static batch, the output that was measured, its seconds, and the FLOPs that they took at least."""
    inference.doubt(row)
    work = inference.work_of(row)
    quantity, measured = inference.measurement(row, work)
    if work.requests:
        raise InputError("a server with requests in flight has no closed form to fit")
    if inference.encodes(row):
        raise InputError("the layers of an encoder alone are no output of a run")
    software = software_of(row)
    run = inference.run_of(row, software, work, system)
    if software.in_turns and not run.fits:
        raise InputError("its sequences do not fit together: the software serves them in turns")
    output = inference.OUTPUTS.get(quantity, "time")
    if quantity not in inference.OUTPUTS:
        measured = run.value(quantity) * run.value("time") / measured
    return run, output, measured, 0.0 if output == "time_per_token" else run.value("prefill_flops")


KINDS: dict[str, tuple[cells.Columns, Callable[[cells.TableRow, System], tuple[BaseRun, str, float, float]]]] = {
    "step": (training.COLUMNS, _step),
    "latency": (inference.COLUMNS, _latency),
}


def _renamed_inputs(run: BaseRun, system: System) -> tuple[tuple[str, str], ...]:
    """Which inputs take their value from another symbol of the system."""
    told = {name: (found.value, found.source) for name in SHARED if (found := system.quantities.get(name))}
    return tuple(
        (name, source)
        for name in SHARED
        if name in run.compiled.program.inputs and run.bound[name] != told.get(name)
        for source in [next((other for other, value in told.items() if value == run.bound[name]), "")]
        if source
    )


def _own(run: BaseRun, system: System) -> tuple[str, ...]:
    """The inputs whose value is the run's: those that the system lacks, or that the software sets."""
    renamed = dict(_renamed_inputs(run, system))
    return tuple(
        name
        for name, (value, _) in run.bound.items()
        if name not in renamed and (name not in system.quantities or system.quantities[name].value != value)
    )


def _family(form: RowFormula, own: tuple[str, ...], members: list[tuple[MeasuredRow, BaseRun]]) -> RowFamily:
    rows = [row for row, _ in members]
    sizes: dict[str, Any] = {name: np.array([run.bound[name][0] for _, run in members]) for name in own}
    program = members[0][1].compiled.program
    program = replace(program, outputs={"time": program.outputs[form.formula]})
    return RowFamily(form, rows, {}, sizes, np.array([row.seconds for row in rows]), program)
