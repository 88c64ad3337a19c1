"""A training run as JSON and as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table
from . import encoders, trained_adapters
from .run_parts import (
    does_not_fit,
    facts,
    shares_of,
    show_overheads,
    show_warnings,
    terms_json,
    title,
    warnings_of,
)
from .scaled import gibibytes, percent, quantity, seconds
from .stages import LISTED_STAGES, fullest_stage, stages_json, stages_table
from .training_memory import memory_classes, memory_rows
from .utilization import executed, impossible

if TYPE_CHECKING:
    from rich.console import Console

    from ..evaluation.base_run import Row
    from ..runs.training_run import Run


def as_json(run: Run) -> dict[str, Any]:
    """The `train` object of the public contract."""
    return {
        "model": run.model.name,
        "system": run.system.name,
        "time_s": run.value("time"),
        "tokens_per_s": run.value("tokens_per_s"),
        "tokens_per_s_per_device": run.value("tokens_per_s_per_device"),
        "tflops_per_device": run.value("tflops_per_device"),
        "mfu": run.value("mfu"),
        "hfu": run.value("hfu"),
        "mfu_executed": run.value("mfu_executed"),
        "devices": run.plan.devices,
        "memory_bytes": memory_classes(run),
        "reserved_bytes": run.reserved_parts(),
        "saved_activation_bytes": run.value("saved_activations"),
        **(
            {"stages": stages_json(run), "fullest_stage": fullest_stage(run)}
            if 1 < run.plan.pp <= LISTED_STAGES
            else {}
        ),
        **({"host_memory_bytes": run.host_memory()} if run.structure.offload else {}),
        "capacity_bytes": run.value("capacity_bytes"),
        "fits": run.fits,
        **({"images": encoders.as_json(run)} if run.images else {}),
        **({"adapters": trained_adapters.as_json(run)} if run.structure.adapted else {}),
        "shares": run.shares(),
        **terms_json(run),
        "warnings": list(all_warnings(run)),
    }


def all_warnings(run: Run) -> tuple[str, ...]:
    """What the plan, the model and the system warn of, and what would make a run fit that does not."""
    return (
        *impossible(run, {"mfu": "MFU", "hfu": "HFU"}, "mfu_executed"),
        *warnings_of(run, None if run.fits else _shortage(run)),
    )


def _shortage(run: Run) -> str:
    """How much is missing, and which single change of the plan would make it fit."""
    need, have = run.needed_bytes, run.value("capacity_bytes")
    text = does_not_fit(need, have)
    fitting = [f"{name} ({gibibytes(size)})" for name, size in levers(run) if size <= have]
    return f"{text}; would fit with {' or '.join(fitting)}" if fitting else f"{text}; no single change makes it fit"


def levers(run: Run) -> list[tuple[str, float]]:
    """Single changes of the plan that save memory, with the memory that each would need."""
    from ..common.errors import InputError

    plan = run.plan
    halved = (plan.micro_batch or 1) // 2
    changes: list[tuple[str, dict[str, Any]]] = [
        ("--sequence-parallel", {"sequence_parallel": True}),
        ("--recompute selective", {"recompute": "selective"}),
        ("--recompute full", {"recompute": "full"}),
        ("--zero 1", {"zero": 1}),
        (f"--micro-batch {halved}", {"micro_batch": halved}),
        (f"--tp {2 * plan.tp}", {"tp": 2 * plan.tp}),
        (f"--pp {2 * plan.pp}", {"pp": 2 * plan.pp}),
    ]
    found = []
    for name, change in changes:
        if all(getattr(plan, field) == value for field, value in change.items()):
            continue
        try:
            other = run.bind(**change)
        except InputError:
            continue
        found.append((name, other.needed_alone()))
    return found


def show(run: Run, console: Console) -> None:
    """Print the answers, the memory, the breakdown and the shares."""
    console.print(title(run.model.name, run.plan.devices, run.system))
    table = facts()
    table.add_row("step time", seconds(run.value("time")), bold=True)
    table.add_row("throughput", f"{quantity(run.value('tokens_per_s'), 'token/s')}")
    per_device = quantity(run.value("flops_per_s_per_device"), "FLOP/s")
    table.add_row("MFU, HFU", f"{percent(run.value('mfu'))}, {percent(run.value('hfu'))}  ({per_device} per device)")
    if other := executed(run, "mfu", "mfu_executed"):
        table.add_row("executed", other)
    for row in (
        *memory_rows(run),
        *trained_adapters.rows(run),
        *(encoders.rows(run) if run.images else ()),
    ):
        table.add_row(*row)
    table.add_row("time is due to", shares_of(run))
    if run.structure.offload:
        host = ", ".join(f"{name} {gibibytes(size)}" for name, size in run.host_memory().items())
        table.add_row("host memory", host)
    console.print(table)
    console.print(breakdown(run))
    if 1 < run.plan.pp <= LISTED_STAGES:
        console.print(f"\nmemory by stage, the fullest is {fullest_stage(run)}", style="bold")
        console.print(stages_table(run))
    show_overheads(run, console)
    show_warnings(all_warnings(run), console)


def breakdown(run: Run) -> Table:
    """One row an operation: its time, what data-sheet rates without overheads would leave of it, share and bound."""
    table = Table(("term", "time", "at peak", "share", "bound", "work", "bytes"), left=("term", "bound"))
    for row in merge_rows(run.table()):
        work = quantity(row.flops, "FLOP") if row.flops else ""
        moved = quantity(row.bytes, "B") if row.bytes else ""
        time, ideal = seconds(row.time_s), seconds(row.theory_s)
        if not row.time_s:
            time, ideal = f"({seconds(row.count * row.each_s)} hidden)", ""
        table.add_row(row.name, time, ideal, percent(row.share), row.bound or "", work, moved)
    return table


def merge_rows(rows: list[Row]) -> list[Row]:
    """Rows of one operation together (forward, recompute and backward), in the order of their first."""
    from ..evaluation.base_run import Row as _Row

    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.name.rsplit("/", 1)[0] if row.bound or row.count != 1 else row.name, []).append(row)
    found = []
    for name, members in groups.items():
        time = sum(row.time_s for row in members)
        main = max(members, key=lambda row: (row.time_s, row.each_s))
        count = sum(row.count for row in members)
        if not count:  # of none, as of no layers for multi-token prediction
            continue
        found.append(
            _Row(
                name=name,
                time_s=time,
                theory_s=sum(row.theory_s for row in members),
                share=sum(row.share for row in members),
                bound=main.bound,
                flops=sum(row.flops for row in members),
                bytes=sum(row.bytes for row in members),
                count=count,
                each_s=sum(row.count * row.each_s for row in members) / count,
            )
        )
    return [row for row in found if row.time_s or row.each_s]
