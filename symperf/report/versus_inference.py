"""A plan for inference against the best one, and the fewest devices within a time, as JSON and as terminal tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.table import Table
from ..plan_search.inference.versus import time_of
from .scaled import percent, seconds
from .versus import _table, _term

if TYPE_CHECKING:
    from rich.console import Console

    from ..plan_search.inference.records import PlanRecord
    from ..plan_search.inference.versus import InferenceVersus

COMPARED = ("requests_per_s", "output_tokens_per_s", "ttft_s", "tpot_s", "time_s", "concurrency", "memory_bytes")


def as_json(found: InferenceVersus) -> dict[str, Any]:
    """The object under `explained`; figures of a plan that cannot run are null."""
    return {
        "plan": dict(found.given),
        "devices": found.devices,
        "verdict": found.verdict,
        "rule": found.rule,
        "reason": found.reason or None,
        "behind": found.behind,
        "winner": found.winner.nested(),
        "explained": None if found.plan is None else found.plan.nested(),
        "time": time_of(found.winner)[0],
        "terms": [_term(term, "s") for term in found.terms],
    }


def within_json(found: PlanRecord, limit: float) -> dict[str, Any]:
    """The object under `within`."""
    measures = found.measures
    return {"seconds": limit, "devices": measures["devices"], "time_s": measures["time_s"], "plan": found.nested()}


def show(found: InferenceVersus, console: Console) -> None:
    """Print the verdict, and what it is made of."""
    from rich.text import Text

    named = " ".join(f"{name}={value}" for name, value in found.given.items())
    console.print(Text.assemble("\n", (named or "one device", "bold"), f": {_verdict(found)}"))
    if found.plan is None or found.verdict == "the best":
        return
    table = Table(("this plan", "best plan", "of"), left=("of",))
    for name in COMPARED:
        mine, best = found.plan.measures[name], found.winner.measures[name]
        if mine is not None or best is not None:
            table.add_row(*("" if value is None else f"{value:.5g}" for value in (mine, best)), name)
    console.print(table)
    name, whole = time_of(found.winner)
    console.print(f"\nseconds of {name} that each resource is responsible for, against the best plan's", style="bold")
    console.print(_table(found.terms, seconds, whole))


def _verdict(found: InferenceVersus) -> str:
    if found.plan is None or found.behind is None:
        return f"{found.verdict}: {found.reason}" + (f" ({found.rule})" if found.verdict == "refused" else "")
    if found.verdict in ("the best", "equal"):
        return "it is the best plan" if found.verdict == "the best" else "as good as the best"
    return f"{percent(abs(found.behind))} {found.verdict} than the best"


def show_within(found: PlanRecord, limit: float, console: Console) -> None:
    """Print the fewest devices."""
    devices, time = found.measures["devices"], found.measures["time_s"]
    named = " ".join(f"{name}={value}" for name, value in found.fields.items() if value is not None)
    are = "device is" if devices == 1 else "devices are"
    told = f"{devices} {are} the fewest searched with a batch of at most {limit:g} s"
    console.print(f"\n{told}: {seconds(time)} with {named}")
