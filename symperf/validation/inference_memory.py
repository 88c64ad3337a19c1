"""Rows of `memory.csv` that are of inference: memory in use on the fullest device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..runs.inference_run import InferenceRun
from .case import Case
from .inference import plan_of
from .inference_definitions import software_of
from .inference_formats import formats_of
from .models import model_of
from .systems import system_of
from .tables import source_of

if TYPE_CHECKING:
    from .case import Expressed
    from .rows import TableRow

BYTES = {"GB": 1e9, "GiB": 2.0**30, "MiB": 2.0**20, "MB": 1e6}
"""Units of the column `unit`."""
LENGTHS = re.compile(r"input (\d+) output (\d+)")


def express(row: TableRow) -> list[Expressed]:
    """The case of a row of the task "inference"; the lengths are in its note, as "input 128 output 8".

    Raises:
        InputError: the row cannot be expressed.
    """
    note = row.text("note")
    if "outlier" in note.casefold():
        raise InputError("its note calls it an outlier of its source")
    lengths, batch = LENGTHS.search(note), row.whole("micro_batch_seqs")
    value, unit = row.number("value"), row.text("unit")
    if lengths is None or batch is None:
        raise InputError("the batch and the lengths are not said")
    if not value or unit not in BYTES:
        raise InputError(f"memory in {quote(unit)}: expected a number in {', '.join(BYTES)}")
    prompt, generate = (int(length) for length in lengths.groups())

    def run() -> InferenceRun:
        system, software = system_of(row), software_of(row)
        formats, model = formats_of(row, system), model_of(row)
        values, beside = dict(formats.values), software.held_bytes
        if software.two_tables and model.architecture.tied_embeddings:
            beside += 2.0 * model.sizes["vocab_size"] * model.sizes["hidden_size"]
        if beside:
            values["workspace_bytes"] = beside
        return InferenceRun(
            model,
            system,
            plan_of(row, formats.precision),
            batch=batch,
            prompt=prompt,
            generate=generate,
            stack=software.stack,
            kv_precision=formats.kv_precision,
            values=values,
        )

    name = f"{row.id}: {row.text('model')}, batch {batch}, {prompt} in, {generate} out"
    labels = {name: row.text(name) for name in ("model", "hw_key", "tp", "framework")}
    measured = value * BYTES[unit]
    return [Case(source_of(row), name, "memory_bytes", measured, run, lambda found: found.value("memory"), labels)]
