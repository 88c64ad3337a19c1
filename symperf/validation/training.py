"""Rows of `training.csv`: a step's time, or what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .case import Case
from .documents import document_of
from .flop_counts import convention_of, counted_flops
from .layout import layout_of
from .models import model_of
from .rows import Columns
from .runs import run_of
from .tables import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..evaluation.base_run import BaseRun
    from ..runs.training_run import Run
    from .case import Expressed
    from .rows import TableRow

DESCRIPTION = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "num_devices", "devices_per_node")
DEGREES = ("tp", "pp", "vpp", "dp", "cp", "ep", "etp", "sharding", "micro_batch_seqs", "grad_accum")
MEASURED = ("step_time_s", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu_pct")
COLUMNS = Columns(
    required=("id", "model", "hw_key", "seq_len_tokens"),
    optional=(
        *DESCRIPTION,
        *DEGREES,
        *MEASURED,
        "sequence_parallel",
        *("use", "params_b", "hardware", "global_batch_seqs", "precision", "recompute", "task", "primary_metric"),
        *("value", "unit", "tflops_definition", "hfu_pct", "peak_mem_GiB", "peak_mem_GB", "framework", "source"),
        *("source_locator", "url", "note", "family", "offloaded_layers", "lora_rank", "lora_targets", "base_precision"),
    ),
)
PASSES = {"per-layer forward time": 0, "per-layer backward time": 1, "per-layer forward+backward time": 2}
"""Metrics of one layer -> which of forward, backward and both it is of."""


def express(row: TableRow) -> list[Expressed]:
    """The case of a row.

    Raises:
        InputError: the row cannot be expressed, or states nothing that is predicted.
    """
    if left_out := document_of(row).left_out:
        raise InputError(left_out)
    quantity, measured, read = measurement(row)
    labels = {
        name: row.text(name) for name in ("model", "hw_key", "precision", "recompute", "framework", "num_devices")
    }

    def run() -> Run:
        return run_of(row)

    def implied(found: BaseRun) -> float:
        share = counted_flops(found, row, "model") / step_time(found, row) / found.bound["matrix_rate"][0]
        ratio = read(found) / measured
        return share * (ratio if quantity == "time_s" else 1 / ratio)

    doubted = None if quantity == "layer_time_s" else implied
    return [Case(source_of(row), describe_row(row), quantity, measured, run, read, labels, doubted)]


def describe_row(row: TableRow) -> str:
    """A row's id and a short text of what it is."""
    degrees = " ".join(f"{name}{row.text(name)}" for name in DEGREES[:6] if row.text(name) not in ("", "1"))
    work = "x".join(row.text(name) for name in ("global_batch_seqs", "seq_len_tokens") if row.text(name))
    devices = f"{row.text('num_devices')} x {row.text('hw_key')}".removeprefix(" x ")
    words = (row.text("model"), devices, degrees, work, row.text("precision"), row.text("recompute"))
    return f"{row.id}: {', '.join(word for word in words if word)}"


def measurement(row: TableRow) -> tuple[str, float, Callable[[BaseRun], float]]:
    """What a row measured: its JSON key, the number in SI units, and how a run tells it.

    The step's time comes first, then rates, and last what needs a count of FLOPs, which sources count differently.

    Raises:
        InputError: it measured nothing that is predicted.
    """
    if (metric := row.text("primary_metric")) in PASSES:
        value = row.number("value")
        if value is None or row.text("unit") != "ms":
            raise InputError("the time of a layer has no number in ms")
        return "layer_time_s", value / 1e3, lambda run: layer_time(run, PASSES[metric])
    if value := row.number("step_time_s"):
        return "time_s", value, lambda run: step_time(run, row)
    for quantity in ("tokens_per_s", "tokens_per_s_per_device"):
        if value := row.number(quantity):
            return quantity, value, lambda run, name=quantity: tokens(run, name) / step_time(run, row)
    if value := row.number("samples_per_s"):
        return "samples_per_s", value, lambda run: run.bound["batch"][0] / step_time(run, row)
    if value := row.number("tflops_per_device"):
        return "tflops_per_device", value, rate_of(row, 1e12)
    if value := row.number("mfu_pct"):
        rate = rate_of(row)
        return "mfu", value / 100, lambda run: rate(run) / run.bound["matrix_rate"][0]
    raise InputError("the row gives no time, rate or utilisation")


def rate_of(row: TableRow, unit: float = 1.0) -> Callable[[BaseRun], float]:
    """How a run tells the FLOP/s of a device as the row's source counts them.

    Raises:
        InputError: how it counts is not known.
    """
    convention = convention_of(row)
    return lambda run: counted_flops(run, row, convention) / step_time(run, row) / unit


def step_time(run: BaseRun, row: TableRow) -> float:
    """Seconds of the step; the mean of two where not all layers run alike."""
    time, layout = run.value("time"), layout_of(row, model_of(row))
    if not layout.rest:
        return time
    return (1 - layout.share) * time + layout.share * run.bind(**layout.rest).value("time")


def tokens(run: BaseRun, quantity: str) -> float:
    """Tokens of a step, in all or on each device."""
    return run.value("tokens") / (run.value("devices") if quantity.endswith("_per_device") else 1)


def layer_time(run: BaseRun, part: int) -> float:
    """Seconds of the forward pass of one layer, of its backward pass with what it computes again, or of both."""
    terms = [row for row in run.table() if row.name.startswith("layer/")]
    layers = run.model.sizes["num_layers"]
    forward = sum(row.time_s for row in terms if row.name.endswith("/forward")) / layers
    both = sum(row.time_s for row in terms) / layers
    return (forward, both - forward, both)[part]
