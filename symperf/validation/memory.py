"""Rows of `memory.csv`: bytes on the fullest device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from . import inference_memory
from .case import Case
from .definitions import software_of
from .layout import layout_of
from .models import model_of
from .rows import Columns
from .runs import run_of
from .tables import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..evaluation.base_run import BaseRun
    from ..runs.training_run import Run
    from .case import Expressed
    from .layout import RowLayout
    from .rows import TableRow

COLUMNS = Columns(
    required=("id", "model", "hw_key", "metric", "value", "unit"),
    optional=(
        *("use", "family", "params_b", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "hardware"),
        *("num_devices", "tp", "pp", "vpp", "dp", "cp", "ep", "etp", "sharding", "micro_batch_seqs", "grad_accum"),
        *("global_batch_seqs", "seq_len_tokens", "precision", "recompute", "task", "framework", "input_len_tokens"),
        *("output_len_tokens", "offloaded_layers", "lora_rank", "lora_targets", "base_precision"),
        *("source", "source_locator", "url", "note"),
    ),
)
UNITS = {"GB": 1e9, "GiB": 2.0**30, "MB": 1e6, "MiB": 2.0**20, "bytes": 1.0, "B": 1.0}
STATE = ("weights", "gradients", "optimizer")
SAVED = ("saved_activations",)
"""Tensors that a forward pass creates and a gradient needs: what Korthikanti et al. 2022 section 4 call activations.
Their tables count neither what is computed again nor what the loss alone needs."""
METRICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("parameters + gradients + optimizer state", STATE),
    ("memory_allocated (as logged)", STATE),
    ("activation memory", SAVED),
    ("memory", ()),
)
"""What a text of the column `metric` holds -> the classes of memory that it counts, () for all; the first that fits.
What is allocated when a step is logged is what stays between steps: the state."""
BESIDE: Mapping[str, tuple[str, ...]] = {
    "allocated": (),
    "allocator": ("fragmentation", "libraries"),
    "device": ("fragmentation", "libraries", "context", "communicators"),
}
"""What is counted beside tensors, by what a figure counts. Workspaces of cuBLAS lie in PyTorch's pool."""
RELATIVE = "relative to tensor-parallel baseline without recompute"


def express(row: TableRow) -> list[Expressed]:
    """The case of a row.

    Raises:
        InputError: the row cannot be expressed.
    """
    if "inference" in row.text("task"):
        return inference_memory.express(row)
    metric, value, unit = row.text("metric"), row.number("value"), row.text("unit")
    classes = next((classes for part, classes in METRICS if part in metric), None)
    if classes is None:
        raise InputError(f"metric: found {quote(metric)}, expected one that names memory")
    relative = RELATIVE in metric
    if not value or (unit != "%" if relative else unit not in UNITS):
        raise InputError(f"unit: found {quote(unit)} of memory, expected {'%' if relative else ' or '.join(UNITS)}")
    measured = value / 100 if relative else value * UNITS[unit]
    quantity = "share_of_activations" if relative else "memory_bytes"
    layout = layout_of(row, model_of(row), memory_only=True)
    held = held_of(row) if not classes else ""

    def run() -> Run:
        return run_of(row, memory_only=True)

    def read(run: BaseRun) -> float:
        if relative:
            plain = run.bind(recompute="none", sequence_parallel=False)
            return bytes_of(run, classes, layout) / bytes_of(plain, classes, layout)
        return bytes_of(run, classes, layout, held)

    labels = {name: row.text(name) for name in ("model", "hw_key", "precision", "recompute", "framework", "metric")}
    words = (row.text("model"), str(layout.plan), row.text("precision"), row.text("recompute"), metric)
    name = f"{row.id}: {', '.join(word for word in words if word)}"
    return [Case(source_of(row), name, quantity, measured, run, read, labels)]


def held_of(row: TableRow) -> str:
    """What a figure of the whole memory counts: "allocated", "allocator" or "device"; what it says, or its software."""
    metric = row.text("metric")
    said = [name for word, name in (("allocated", "allocated"), ("reserved", "allocator")) if word in metric]
    return said[0] if len(said) == 1 else software_of(row.text("framework")).reported


def bytes_of(run: BaseRun, classes: tuple[str, ...], layout: RowLayout, held: str = "allocated") -> float:
    """Bytes of some classes of memory on the fullest device; without classes of all that is held, as it is counted."""
    found = sum_of(run, classes, held)
    if not layout.rest:
        return found
    return (1 - layout.share) * found + layout.share * sum_of(run.bind(**layout.rest), classes, held)


def sum_of(run: BaseRun, classes: tuple[str, ...], held: str) -> float:
    """Bytes of some classes of memory, or of what is held, of one run."""
    if classes == SAVED:
        return run.value(*SAVED)
    if not classes:
        return run.value("memory") + sum(run.value(f"beside/{name}") for name in BESIDE[held])
    return sum(value for name, value in run.memory_terms().items() if name.split("/")[0] in classes)
