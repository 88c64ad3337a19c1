"""What the answers of every kind of run have in common, as JSON and on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table, show_lines
from .scaled import gibibytes, percent, quantity, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console
    from rich.text import Text

    from ..evaluation.base_run import BaseRun
    from ..runs.full_run import FullRun
    from ..systems.system import System


def by_class(terms: Mapping[str, float], classes: Iterable[str], total: float) -> dict[str, float]:
    """Bytes of named terms by class, the first part of a name, and the total that they have."""
    found = dict.fromkeys(classes, 0.0)
    for path, value in terms.items():
        found[path.split("/")[0]] += value
    return found | {"total": total}


def terms_json(run: FullRun) -> dict[str, Any]:
    """The keys of the public contract that tell where time, energy and money of a run go."""
    fields = ("name", "time_s", "theory_s", "share", "bound", "flops", "bytes")
    overheads = run.overheads().items()
    return {
        "breakdown": [{name: getattr(row, name) for name in fields} for row in run.table()],
        "overheads": [{"name": name, "value": value, "source": source} for name, (value, source) in overheads],
        **run.spending_json(),
    }


def warnings_of(run: BaseRun, shortage: str | None) -> tuple[str, ...]:
    """How a run does not fit, and what the plan, the model and the system warn of.

    Of the system's assumed values only those count that the time depends on.
    """
    elasticity = run.sensitivity()
    system = tuple(
        text
        for text in run.system.warnings
        if " = " not in text or elasticity.get(text.split(" = ")[0], 0.0) or text.split(" = ")[0] in run.given
    )
    return (() if shortage is None else (shortage,)) + run.warnings + run.model.warnings + system


def does_not_fit(need: float, have: float) -> str:
    """How much memory is missing."""
    return f"does not fit: needs {gibibytes(need)} of {gibibytes(have)}"


def title(model: str, devices: int, system: System, stack: str | None = None) -> Text:
    """What runs on what."""
    from rich.text import Text as _Text

    return _Text.assemble((model, "bold"), f" on {devices} x {system.title}", f", {stack}" if stack else "")


def memory_of(run: BaseRun, memory: Mapping[str, float]) -> tuple[str, str]:
    """The memory beside the capacity, and its classes, of what `by_class` gives."""
    have = run.value("capacity_bytes")
    fit = "fits" if run.fits else "does not fit"
    margin = percent(1 - run.needed_bytes / have)
    whole = f"{gibibytes(memory['total'])} of {gibibytes(have)}: {fit}, margin {margin}"
    return whole, ", ".join(f"{name} {gibibytes(size)}" for name, size in memory.items() if size and name != "total")


def shares_of(run: BaseRun) -> str:
    """The share of each resource in the time."""
    return ", ".join(f"{name} {percent(share)}" for name, share in run.shares().items())


def facts() -> Table:
    """A table of facts: what each is called, and what is said of it."""
    return Table(("", ""), left=(0, 1), wraps=(1,))


def show_overheads(run: BaseRun, console: Console) -> None:
    """The efficiencies and overheads between the theory and the prediction: name, value, source."""
    console.print("\nefficiencies and overheads", style="bold")
    table = Table(("", "", ""), left=(0, 2), wraps=(2,))
    for name, (value, source) in run.overheads().items():
        size = quantity(value, "B") if "_bytes" in name else f"{value:.4g}"
        text = seconds(value) if "_latency" in name else size
        table.add_row(name, text, source)
    console.print(table)


def show_warnings(texts: Iterable[str], console: Console) -> None:
    """Warnings, a line each."""
    show_lines(console, (f"warning: {text}" for text in texts), "yellow")
