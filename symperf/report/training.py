"""A training run as JSON and as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import gibibytes, percent, quantity, seconds
from .stages import LISTED_STAGES, stages_json, stages_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..evaluation.base_run import BaseRun, Row
    from ..runs.training_run import Run

MEMORY_CLASSES = ("weights", "gradients", "optimizer", "activations", "workspace")


def memory_classes(run: Run) -> dict[str, float]:
    """Bytes on the fullest device by class, and their total."""
    found = dict.fromkeys(MEMORY_CLASSES, 0.0)
    for path, value in run.memory_terms().items():
        found[path.split("/")[0]] += value
    return found | {"total": run.value("memory")}


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
        "devices": run.plan.devices,
        "memory_bytes": memory_classes(run),
        **({"stages": stages_json(run)} if 1 < run.plan.pp <= LISTED_STAGES else {}),
        **({"host_memory_bytes": run.host_memory()} if run.structure.offload else {}),
        "capacity_bytes": run.value("capacity_bytes"),
        "fits": run.fits,
        "shares": run.shares(),
        "breakdown": [
            {
                "name": row.name,
                "time_s": row.time_s,
                "theory_s": row.theory_s,
                "share": row.share,
                "bound": row.bound,
                "flops": row.flops,
                "bytes": row.bytes,
            }
            for row in run.table()
        ],
        "overheads": [
            {"name": name, "value": value, "source": source} for name, (value, source) in run.overheads().items()
        ],
        **run.spending_json(),
        "warnings": list(all_warnings(run)),
    }


def all_warnings(run: Run) -> tuple[str, ...]:
    """What the plan, the model and the system warn of, and what would make a run fit that does not.

    Of the system's assumed values only those count that the step time depends on.
    """
    own = (() if run.fits else (does_not_fit(run),)) + run.warnings
    elasticity = run.sensitivity()
    system = tuple(
        text
        for text in run.system.warnings
        if " = " not in text or elasticity.get(text.split(" = ")[0], 0.0) or text.split(" = ")[0] in run.given
    )
    return own + run.model.warnings + system


def does_not_fit(run: Run) -> str:
    """How much is missing, and which single change of the plan would make it fit."""
    need, have = run.value("memory"), run.value("capacity_bytes")
    text = f"does not fit: needs {gibibytes(need)} of {gibibytes(have)}"
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
        found.append((name, other.memory_alone()))
    return found


def show(run: Run, console: Console) -> None:
    """Print the answers, the memory, the breakdown and the shares."""
    from rich.table import Table
    from rich.text import Text

    memory = memory_classes(run)
    fit = "fits" if run.fits else "does not fit"
    console.print(Text.assemble((run.model.name, "bold"), f" on {run.plan.devices} x {run.system.title}"))
    facts = Table.grid(padding=(0, 2))
    facts.add_row("step time", Text(seconds(run.value("time")), "bold"))
    facts.add_row("throughput", f"{quantity(run.value('tokens_per_s'), 'token/s')}")
    per_device = quantity(run.value("flops_per_s_per_device"), "FLOP/s")
    facts.add_row("MFU, HFU", f"{percent(run.value('mfu'))}, {percent(run.value('hfu'))}  ({per_device} per device)")
    margin = percent(1 - memory["total"] / run.value("capacity_bytes"))
    facts.add_row(
        "memory", f"{gibibytes(memory['total'])} of {gibibytes(run.value('capacity_bytes'))}: {fit}, margin {margin}"
    )
    parts = ", ".join(f"{name} {gibibytes(memory[name])}" for name in MEMORY_CLASSES if memory[name])
    facts.add_row("", parts)
    shares = ", ".join(f"{name} {percent(share)}" for name, share in run.shares().items())
    facts.add_row("time is due to", shares)
    if run.structure.offload:
        host = ", ".join(f"{name} {gibibytes(size)}" for name, size in run.host_memory().items())
        facts.add_row("host memory", host)
    console.print(facts)
    console.print(breakdown(run))
    if 1 < run.plan.pp <= LISTED_STAGES:
        console.print("\nmemory by stage", style="bold")
        console.print(stages_table(run))
    console.print("\nefficiencies and overheads", style="bold")
    for line in overheads(run):
        console.print(line, no_wrap=True, overflow="ellipsis")
    for text in all_warnings(run):
        console.print(Text(f"warning: {text}", "yellow"))


def breakdown(run: Run) -> Table:
    """One row an operation: its time, what data-sheet rates without overheads would leave of it, share and bound."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("term", "time", "at peak", "share", "bound", "work", "bytes"):
        table.add_column(name, justify="left" if name in ("term", "bound") else "right", no_wrap=True)
    for row in merged(run.table()):
        work = quantity(row.flops, "FLOP") if row.flops else ""
        moved = quantity(row.bytes, "B") if row.bytes else ""
        time, ideal = seconds(row.time_s), seconds(row.theory_s)
        if not row.time_s:
            time, ideal = f"({seconds(row.count * row.each_s)} hidden)", ""
        table.add_row(row.name, time, ideal, percent(row.share), row.bound or "", work, moved)
    return table


def overheads(run: BaseRun) -> list[str]:
    """The efficiencies and overheads between the theory and the prediction, a line each: name, value, source."""
    lines = []
    for name, (value, source) in run.overheads().items():
        if name.endswith("_latency"):
            text = seconds(value)
        else:
            text = quantity(value, "B") if name.endswith("_bytes") else f"{value:.4g}"
        lines.append(f"{name:22}{text:>8}  {source}")
    return lines


def merged(rows: list[Row]) -> list[Row]:
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
