"""An inference as JSON and as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import gibibytes, percent, quantity, seconds
from .training import overheads

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..runs.inference_run import InferenceRun

MEMORY_CLASSES = ("weights", "kv_cache", "activations", "workspace")


def memory_classes(run: InferenceRun) -> dict[str, float]:
    """Bytes on the fullest device by class, and their total."""
    found = dict.fromkeys(MEMORY_CLASSES, 0.0)
    for path, value in run.memory_terms().items():
        found[path.split("/")[0]] += value
    return found | {"total": run.value("memory")}


def as_json(run: InferenceRun) -> dict[str, Any]:
    """The `infer` object of the public contract."""
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
        "decode_mbu": run.value("decode_mbu") if run.generates else None,
        "memory_bytes": memory_classes(run),
        "capacity_bytes": run.value("capacity_bytes"),
        "fits": run.fits,
        "sequences_that_fit": run.fitting_sequences(),
        "shares": run.shares(),
        "operations": [
            {
                "phase": op.phase,
                "name": op.name,
                "m": op.m,
                "n": op.n,
                "k": op.k,
                "count": op.count,
                "time_s": op.time_s,
                "bound": op.bound,
            }
            for op in run.operations()
        ],
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


def all_warnings(run: InferenceRun) -> tuple[str, ...]:
    """What the plan, the model and the system warn of, and how many sequences would fit where not all do."""
    own = (() if run.fits else (does_not_fit(run),)) + run.warnings
    elasticity = run.sensitivity()
    system = tuple(
        text
        for text in run.system.warnings
        if " = " not in text or elasticity.get(text.split(" = ")[0], 0.0) or text.split(" = ")[0] in run.given
    )
    return own + run.model.warnings + system


def does_not_fit(run: InferenceRun) -> str:
    """How much is missing, and how many sequences would fit."""
    need, have = run.value("memory"), run.value("capacity_bytes")
    text = f"does not fit: needs {gibibytes(need)} of {gibibytes(have)}"
    count = run.fitting_sequences()
    if not run.generates:
        found = (run.plan.micro_batch or 1) * run.plan.dp
        return f"{text}; {count * run.plan.dp} sequences at once would fit, found {found}"
    if count:
        return f"{text}; the cache of {count * run.plan.dp} sequences would fit, found batch = {run.work.batch}"
    return f"{text}; beside weights and activations no cache fits: raise tp or pp, or take smaller formats"


def show(run: InferenceRun, console: Console) -> None:
    """Print the answers, the memory, the operations of each phase and the shares."""
    from rich.table import Table
    from rich.text import Text

    memory = memory_classes(run)
    fit = "fits" if run.fits else "does not fit"
    console.print(
        Text.assemble((run.model.name, "bold"), f" on {run.plan.devices} x {run.system.title}, {run.stack.title}")
    )
    facts = Table.grid(padding=(0, 2))
    facts.add_row("prefill", Text(seconds(run.value("prefill")), "bold"), f"MFU {percent(run.value('prefill_mfu'))}")
    if run.generates:
        steps = run.work.generate - 1
        decode = f"{steps} steps of {seconds(run.value('time_per_token'))}, MBU {percent(run.value('decode_mbu'))}"
        facts.add_row("decode", Text(seconds(run.value("decode")), "bold"), decode)
    facts.add_row("total", Text(seconds(run.value("time")), "bold"), quantity(run.value("tokens_per_s"), "token/s"))
    console.print(facts)
    margin = percent(1 - memory["total"] / run.value("capacity_bytes"))
    parts = ", ".join(f"{name} {gibibytes(memory[name])}" for name in MEMORY_CLASSES if memory[name])
    shares = ", ".join(f"{name} {percent(share)}" for name, share in run.shares().items())
    held = run.fitting_sequences() * run.plan.dp
    limit = f"{gibibytes(memory['total'])} of {gibibytes(run.value('capacity_bytes'))}: {fit}, margin {margin}"
    for line in (
        f"memory         {limit}; {held} sequences would fit",
        f"               {parts}",
        f"time is due to {shares}",
    ):
        console.print(line, highlight=False)
    for phase in ("prefill", "decode")[: 2 if run.generates else 1]:
        console.print(f"\n{phase}", style="bold")
        console.print(operations(run, phase))
    console.print("\nefficiencies and overheads", style="bold")
    for line in overheads(run):
        console.print(line, no_wrap=True, overflow="ellipsis")
    for text in all_warnings(run):
        console.print(Text(f"warning: {text}", "yellow"))


def operations(run: InferenceRun, phase: str) -> Table:
    """One row an operation: shape, executions, time of one and of all, share of the phase, bound."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("operation", "m", "n", "k", "count", "each", "time", "share", "bound"):
        table.add_column(name, justify="left" if name in ("operation", "bound") else "right", no_wrap=True)
    total = run.value(phase)
    for op in run.operations():
        if op.phase != phase or not op.time_s:
            continue
        shape = ["" if size is None else str(size) for size in (op.m, op.n, op.k)]
        each = seconds(op.time_s / op.count)
        share = percent(op.time_s / total)
        table.add_row(op.name, *shape, f"{op.count:.6g}", each, seconds(op.time_s), share, op.bound or "")
    return table
