"""A search as JSON, as CSV and as terminal tables."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from ..common.cells import csv_cell
from ..common.table import Table, show_lines
from ..plan_search.reasons import reasons
from ..plan_search.space import LEFT_OUT
from ..plans.plan import FIELDS, Plan, attention_of
from .scaled import gibibytes, percent, quantity, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from ..models.model import Model
    from ..plan_search.explain import Alternative
    from ..plan_search.search import Answer

ALWAYS = ("tp", "pp", "cp", "dp", "micro_batch")
BASES = {
    "resources": "joules are those of FLOPs, bytes and static power, by the energies that the system tells",
    "board": "joules are those of every device at its board power all the time, an upper bound",
}
"""What the joules of an answer count."""


def as_json(answer: Answer, front: list[dict[str, Any]]) -> dict[str, Any]:
    """The `search` object of the public contract, with the counts of the space and what explains the winner.

    Args:
        answer: of the search.
        front: its plans on the Pareto front; none where it was not asked for.
    """
    winner = answer.winner
    return {
        "model": winner.model.name,
        "system": winner.system.name,
        "plans": answer.records,
        "considered": answer.considered,
        "legal": answer.legal,
        "feasible": answer.feasible,
        "pruned": answer.pruned,
        "rejected": answer.rejected,
        "reasons": [each.as_json() for each in reasons(answer)],
        "whole": answer.whole,
        "space": space(answer),
        "left_out": LEFT_OUT,
        "shares": answer.shares(),
        "alternatives": [_alternative(each) for each in answer.alternatives()],
        "energy_basis": answer.criterion.basis,
        "pareto": front,
    }


def space(answer: Answer) -> dict[str, list[Any]]:
    """The values that each field of the plan could take."""
    found: dict[str, dict[Any, None]] = {}
    for each in answer.found:
        for name, values in each.question.candidates.items():
            found.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: list(values) for name, values in found.items()}


def _alternative(each: Alternative) -> dict[str, Any]:
    return {
        "field": each.field,
        "value": each.value,
        "plan": each.fields,
        "time_s": each.time,
        "slower": each.slower,
        "exact": each.exact,
        "needs": each.needs,
        "factor": each.factor,
    }


def as_csv(records: list[dict[str, Any]]) -> str:
    """Plans, a line each, under a line of names; nothing where a field has no value."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in each.items()} for each in records)
    return text.getvalue()


def show(
    answer: Answer,
    console: Console,
    *,
    took: float,
    command: str,
    front: tuple[list[dict[str, Any]], tuple[str, ...]] | None = None,
) -> None:
    """Print the counts, the plans, what binds the winner, the alternatives, the reasons of the others, a command.

    Args:
        answer: of the search.
        console: to print on.
        took: seconds of the search.
        command: that gives the best plan by itself.
        front: the plans of a Pareto front with its axes, in place of the best.
    """
    from rich.text import Text

    winner = answer.winner
    devices = ", ".join(str(found.question.devices) for found in answer.found)
    console.print(Text.assemble((winner.model.name, "bold"), f" on {devices} x {winner.system.title}"))
    console.print(counts(answer, took))
    if not answer.whole:
        console.print(Text("interrupted: the best of what was seen", "yellow"))
    records = answer.records if front is None else front[0]
    if front is not None:
        *others, last = front[1]
        console.print(f"\nno other plan is as good in {', '.join(others)} and {last}", style="bold")
    console.print(plans(answer, records, priced=front is not None and "cost" in front[1]))
    if answer.criterion.basis is not None:
        console.print(BASES[answer.criterion.basis])
    if shares := ", ".join(f"{name} {percent(share)}" for name, share in answer.shares().items() if share >= 5e-4):
        console.print(f"\nthe best plan's time is due to {shares}")
    if near := answer.alternatives():
        console.print("\nthe best plan with another value of one field", style="bold")
        console.print(nearest(near, answer.winner_fields, joules=answer.best.question.by_energy))
    console.print("\nnot among them", style="bold")
    show_lines(console, (f"  {each.plans:>15,}  {each}" for each in reasons(answer)))
    if answer.pruned:
        show_lines(console, [f"  {answer.pruned:>15,}  fit, and are slower by a bound; their time was not computed"])
    show_lines(console, (f"  left out: {name}, {why}" for name, why in LEFT_OUT.items()))
    console.print("\nthe best plan by itself", style="bold")
    show_lines(console, [f"  {command}"])


def counts(answer: Answer, took: float) -> str:
    """How many plans there were."""
    return f"{answer.considered:,} plans considered, {answer.legal:,} can run, {answer.feasible:,} fit; in {took:.2f} s"


def plans(answer: Answer, records: list[dict[str, Any]], *, priced: bool = False) -> Table:
    """One row a plan, in the order of the plan's fields; those that all plans have as `symperf train` are left out."""
    names = fields_shown(answer, records)
    several = len(answer.found) > 1
    heads = ["time", "token/s", "MFU", "reserved", *(["devices"] if several else [])]
    heads += ["USD/M token"] if priced else []
    heads += [FIELDS[name].heading for name in names]
    ranks_by = answer.criterion.column
    heads += [ranks_by] if ranks_by != "time_s" else []
    table = Table(heads, left=("recompute", "schedule", "attention", "rank_order"))
    for record in records:
        cells = [
            seconds(record["time_s"]),
            quantity(record["tokens_per_s"], ""),
            percent(record["mfu"]),
            gibibytes(record["memory_bytes"]),
        ]
        cells += [str(record["devices"])] if several else []
        cells += [f"{record['dollars_per_million_tokens']:.4g}"] if priced else []
        cells += [_cell(record[name]) if _tells(name, record) else "" for name in names]
        cells += [quantity(record[ranks_by], "")] if ranks_by != "time_s" else []
        table.add_row(*cells)
    return table


def fields_shown(answer: Answer, records: list[dict[str, Any]]) -> list[str]:
    """The fields that tell the plans: each that `symperf train` would have another value for in one of them."""
    model = answer.winner.model
    return [name for name in Plan.names() if name in ALWAYS or any(not _plain(name, each, model) for each in records)]


def _plain(name: str, record: Mapping[str, Any], model: Model) -> bool:
    """Whether a field has the value that `symperf train` gives it where it is left out."""
    value = record[name]
    if name == "schedule":
        return bool(value == Plan(vpp=record["vpp"], pp=record["pp"]).effective_schedule)
    if name == "attention":
        return bool(value == attention_of(Plan(dropout=record["dropout"]), model))
    return bool(value == FIELDS[name].default) or not _tells(name, record)


def _cell(value: Any) -> str:
    if value is None:
        return "none"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def nearest(near: list[Alternative], best: dict[str, Any], *, joules: bool = False) -> Table:
    """One row an alternative plan: what it has in place of what, how much slower it is, and what makes it as fast.

    By joules, how many more it takes.
    """
    words = ("with", "in place of", *([] if joules else ["as fast with"]))
    table = Table(("more J" if joules else "slower", *words), left=words, wraps=words)
    seen: list[dict[str, Any]] = []
    for each in near:
        if each.fields in seen:  # the same plan is the best with another value of several fields
            continue
        seen.append(each.fields)
        changed = [name for name, value in each.fields.items() if value != best[name] and _tells(name, each.fields)]
        needs = "no single rate or latency" if each.needs is None else f"{each.needs} x {each.factor:.3g}"
        table.add_row(
            f"{'' if each.exact else 'about '}{percent(each.slower)}",
            " ".join(f"{name}={_cell(each.fields[name])}" for name in changed),
            " ".join(f"{name}={_cell(best[name])}" for name in changed),
            *([] if joules else [needs]),
        )
    return table


def _tells(name: str, fields: Mapping[str, Any]) -> bool:
    return name != "cp_kind" or fields["cp"] > 1
