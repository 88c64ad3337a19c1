"""An inference as JSON and as terminal tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..common.table import Table
from ..runs.shortage import NAMES, shortage
from . import adapters, room
from .run_parts import (
    by_class,
    facts,
    memory_of,
    shares_of,
    show_overheads,
    show_warnings,
    terms_json,
    title,
    warnings_of,
)
from .scaled import percent, quantity, seconds
from .utilization import executed, impossible

if TYPE_CHECKING:
    from rich.console import Console

    from ..runs.encoding import Encoding
    from ..runs.inference_run import InferenceRun

MEMORY_CLASSES = ("weights", "kv_cache", "activations", "workspace")


def memory_classes(run: InferenceRun) -> dict[str, float]:
    """Bytes on the fullest device by class, and their total."""
    return by_class(run.memory_terms(), MEMORY_CLASSES, run.value("memory"))


def as_json(run: InferenceRun, longest: int = 1) -> dict[str, Any]:
    """The `infer` object of the public contract; the longest context is of so many sequences."""
    return {
        "model": run.model.name,
        "system": run.system.name,
        "stack": run.stack.name,
        "devices": run.plan.devices,
        "prefill_s": run.value("prefill"),
        "decode_s": run.value("decode"),
        "time_s": run.value("time"),
        "time_per_token_s": run.value("time_per_token") if run.generates else None,
        "tokens_per_s": run.value("tokens_per_s"),
        "tokens_per_s_per_device": run.value("tokens_per_s_per_device"),
        "prefill_mfu": run.value("prefill_mfu"),
        "prefill_mfu_executed": run.value("prefill_mfu_executed"),
        "decode_mbu": run.value("decode_mbu") if run.generates else None,
        "memory_bytes": memory_classes(run),
        **({"host_memory_bytes": run.host_memory()} if run.structure.offload else {}),
        "capacity_bytes": run.value("capacity_bytes"),
        "fits": run.fits,
        "sequences_that_fit": run.fitting_sequences(),
        **room.as_json(run.room(), run.longest_context(longest), run.model.context),
        "shares": run.shares(),
        "operations": [dataclasses.asdict(op) for op in run.operations()],
        **terms_json(run),
        **({"images": run.encoding.to_dict()} if run.encoding else {}),
        **({"adapters": adapters.as_json(run)} if run.adapters else {}),
        "warnings": list(all_warnings(run)),
    }


def all_warnings(run: InferenceRun) -> tuple[str, ...]:
    """What the plan, the model and the system warn of, and how many sequences would fit where not all do."""
    return (
        *impossible(run, {"prefill_mfu": "MFU"}, "prefill_mfu_executed"),
        *warnings_of(run, None if run.fits else _shortage(run)),
    )


def _shortage(run: InferenceRun) -> str:
    """How much is missing, what would make it fit, and how many sequences do."""
    text = room.why_not(shortage(run, run.room(), -(-run.work.batch // run.plan.dp)), NAMES)
    count = run.fitting_sequences() * run.plan.dp
    return f"{text}; {count or 'not one'} of {run.work.batch} sequences fit{'s' * (count < 2)}"


def show(run: InferenceRun, console: Console, longest: int = 1) -> None:
    """Print the answers, the memory, the operations of each phase and the shares.

    Args:
        run: what is told.
        console: where it is printed.
        longest: sequences of the longest context that is told.
    """
    console.print(title(run.model.name, run.plan.devices, run.system, run.stack.told))
    times = Table(("", "", ""), left=(0, 1, 2), wraps=(2,))
    times.add_row("prefill", seconds(run.value("prefill")), f"MFU {percent(run.value('prefill_mfu'))}", bold=True)
    other = executed(run, "prefill_mfu", "prefill_mfu_executed")
    if run.generates:
        steps = run.work.generate - 1
        decode = f"{steps} steps of {seconds(run.value('time_per_token'))}, MBU {percent(run.value('decode_mbu'))}"
        times.add_row("decode", seconds(run.value("decode")), decode, bold=True)
    times.add_row("total", seconds(run.value("time")), quantity(run.value("tokens_per_s"), "token/s"), bold=True)
    console.print(times)
    whole, parts = memory_of(run, memory_classes(run))
    place, held = run.room(), run.fitting_sequences() * run.plan.dp
    table = facts()
    if other:
        table.add_row("executed", other)
    if run.encoding:
        for row in image_rows(run.encoding):
            table.add_row(*row)
    if run.prefix:
        whole_s = seconds(run.bind(prefix=0).value("prefill"))
        table.add_row("prefix", f"{run.prefix} tokens of each prompt are in the cache; {whole_s} to prefill all")
    for row in adapters.rows(run):
        table.add_row(*row)
    table.add_row("memory", f"{whole}; {held} sequences would fit")
    table.add_row("", parts)
    if run.structure.offload:
        host = ", ".join(f"{name} {quantity(size, 'B')}" for name, size in run.host_memory().items())
        table.add_row("host memory", host)
    for row in room.rows(place, run.longest_context(longest), longest, run.model.context):
        table.add_row(*row)
    table.add_row("time is due to", shares_of(run))
    console.print(table)
    phases = ("encoder", "prefill", "decode")[0 if run.encoding else 1 : 3 if run.generates else 2]
    for phase in phases:
        console.print(f"\n{phase}", style="bold")
        console.print(operations(run, phase))
    show_overheads(run, console)
    show_warnings(all_warnings(run), console)


def image_rows(encoding: Encoding) -> list[tuple[str, str]]:
    """What the images of the prompts are, and what they cost before the prefill."""
    found, weights = encoding.to_dict(), quantity(encoding.weight_bytes, "B")
    each = ", ".join(
        " x ".join(str(value) for name, value in dataclasses.asdict(size.image).items() if name != "frames")
        + (f" x {size.image.frames} frames" if size.image.frames > 1 else "")
        for size in encoding.sizes
    )
    what = " and ".join(dict.fromkeys("sound" if tower.part == "audio" else "images" for tower in encoding.towers))
    return [
        (what, f"{each}: {encoding.tokens} tokens of each prompt, encoded in {seconds(encoding.time_s)}"),
        ("first token", f"{seconds(found['time_to_first_token_s'])} with the {what}; the total includes them too"),
        ("encoder", f"{weights} of weights"),
    ]


def operations(run: InferenceRun, phase: str) -> Table:
    """One row an operation: shape, executions, time of one and of all, share of the phase, bound."""
    heads = ("operation", "m", "n", "k", "count", "each", "time", "share", "bound")
    table = Table(heads, left=("operation", "bound"))
    total = run.encoding.time_s if run.encoding and phase == "encoder" else run.value(phase)
    for op in run.operations():
        if op.phase != phase or not op.time_s:
            continue
        shape = ["" if size is None else str(size) for size in (op.m, op.n, op.k)]
        each = seconds(op.time_s / op.count)
        share = percent(op.time_s / total)
        table.add_row(op.name, *shape, f"{op.count:.6g}", each, seconds(op.time_s), share, op.bound or "")
    return table
