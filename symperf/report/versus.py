"""A plan against the best one, as JSON and as terminal tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..common.table import Table
from .scaled import gibibytes, percent, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from ..plan_search.versus import TermDifference, Versus

SHOWN = 12
"""Terms in a table; the rest is one line."""
LEAST = 1e-6
"""A difference below this share of the winner is not worth a line."""


def as_json(found: Versus) -> dict[str, Any]:
    """The object under `explained`; figures of a plan that cannot run are null."""
    refused = found.verdict == "refused"
    return {
        "plan": dict(found.given),
        "winner": dataclasses.asdict(found.winner),
        "devices": found.devices,
        "verdict": found.verdict,
        "rule": found.rule,
        "reason": found.reason or None,
        "time_s": found.time,
        "winner_time_s": found.winner_time,
        "difference_s": found.difference,
        "memory_bytes": found.memory,
        "limit_bytes": found.limit,
        "missing_bytes": None if refused else found.missing,
        "terms": [_term(term, "s") for term in found.terms],
        "memory_terms": [_term(term, "bytes") for term in found.memory_terms],
    }


def _term(term: TermDifference, unit: str) -> dict[str, Any]:
    return {
        "name": term.name,
        f"winner_{unit}": term.winner,
        f"plan_{unit}": term.plan,
        f"difference_{unit}": term.difference,
    }


def show(found: Versus, console: Console) -> None:
    """Print the verdict, and what it is made of."""
    from rich.text import Text

    named = " ".join(f"{name}={value}" for name, value in found.given.items())
    console.print(Text.assemble("\n", (named or "one device", "bold"), f": {_verdict(found)}"))
    if found.time is None:
        return
    if found.reason:
        console.print(found.reason)
    if found.verdict == "does not fit":
        console.print("\nbytes on the fullest device, against the best plan's", style="bold")
        console.print(_table(found.memory_terms, gibibytes, sum(term.winner for term in found.memory_terms)))
    if found.verdict != "the best":
        console.print("\nseconds of a step, against the best plan's", style="bold")
        console.print(_table(found.terms, seconds, found.winner_time))


def _verdict(found: Versus) -> str:
    if found.time is None or found.difference is None or found.memory is None:
        return f"refused: {found.reason}" + (f" ({found.rule})" if found.rule else "")
    times = f"{seconds(found.time)} a step, the best takes {seconds(found.winner_time)}"
    if found.verdict == "does not fit":
        return (
            f"does not fit: it needs {gibibytes(found.memory)} of {gibibytes(found.limit)}, "
            f"{gibibytes(found.missing)} too much; it would take {times}"
        )
    if found.verdict in ("the best", "equal"):
        return "it is the best plan" if found.verdict == "the best" else f"as fast as the best: {times}"
    return f"{percent(abs(found.difference) / found.winner_time)} {found.verdict}: {times}"


def _table(terms: tuple[TermDifference, ...], write: Any, whole: float) -> Table:
    table = Table(("difference", "this plan", "best plan", "term"), left=("term",))
    worth = [term for term in terms if abs(term.difference) > LEAST * whole]
    for term in worth[:SHOWN]:
        table.add_row(_sign(term.difference, write), write(term.plan), write(term.winner), term.name)
    rest = [term for term in terms if term not in worth[:SHOWN]]
    if rest:
        sums = [sum(getattr(term, name) for term in rest) for name in ("difference", "plan", "winner")]
        table.add_row(_sign(sums[0], write), write(sums[1]), write(sums[2]), f"{len(rest)} others")
    sums = [sum(getattr(term, name) for term in terms) for name in ("difference", "plan", "winner")]
    table.add_row(_sign(sums[0], write), write(sums[1]), write(sums[2]), "all", bold=True)
    return table


def _sign(value: float, write: Any) -> str:
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{write(abs(value))}"
