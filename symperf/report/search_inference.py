"""A search for inference as JSON, as CSV and as terminal tables."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING, Any

from ..common.cells import csv_cell
from ..common.table import Table, show_lines
from ..plan_search.inference.reasons import reasons
from ..plan_search.inference.search import sort_counts
from ..plan_search.inference.space import OPENED
from ..plans.plan import FIELDS
from .scaled import gibibytes, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from ..plan_search.inference.front import Front
    from ..plan_search.inference.load import Survey
    from ..plan_search.inference.records import PlanRecord
    from ..plan_search.inference.search import InferenceAnswer

HEADS = {"precision": "weights", "kv_precision": "cache", "micro_batch": "mb"}
BEHIND = {"latency": "slower", "cost": "costs more", "joules": "more J", "tokens_per_joule": "more J"}
LIMITS = {"ttft": "TTFT", "tpot": "TPOT", "chunk": "prefill", "kv_cache": "cache", "max_num_seqs": "sequences"}


def as_json(answer: InferenceAnswer) -> dict[str, Any]:
    """The `search` object of inference; `docs/search.md` lists its keys."""
    question = answer.questions[0]
    space: dict[str, dict[Any, None]] = {}
    for each in answer.questions:
        for name, values in each.candidates.items():
            space.setdefault(name, {}).update(dict.fromkeys(values))
    return {
        "model": question.model.name,
        "system": question.system.name,
        "stack": question.base.stack.name,
        "prompt": question.prompt,
        "generate": question.generate,
        "targets": {"ttft_s": question.ttft, "tpot_s": question.tpot},
        "by": answer.by,
        "plans": [record.nested() for record in answer.records],
        "axes": None if answer.front is None else list(answer.front.axes),
        "pareto": None if answer.front is None else [record.nested() for record in answer.front.records],
        "considered": answer.survey.considered,
        "feasible": answer.feasible,
        "rejected": answer.rejected,
        "reasons": [each.as_json() for each in reasons(answer.survey)],
        "pools": answer.pools and {n: _counts(s) for n, s in zip(("prefill", "decode"), answer.pools, strict=True)},
        "whole": answer.whole,
        "space": {name: list(values) for name, values in space.items()},
        "shares": answer.winner.shares(),
        "alternatives": [
            {"field": name, "value": each.fields[name], "behind": behind(answer, each), "plan": each.nested()}
            for name, each in _alternatives(answer)
        ],
    }


def _counts(survey: Survey) -> dict[str, Any]:
    return {"considered": survey.considered, "feasible": survey.feasible, "rejected": sort_counts(survey)}


def _alternatives(answer: InferenceAnswer) -> list[tuple[str, PlanRecord]]:
    """None of a search that was interrupted, which is to end soon."""
    return answer.alternatives if answer.whole else []


def behind(answer: InferenceAnswer, other: PlanRecord) -> float:
    """How much slower another plan is, or how much less it serves, as a fraction of the best."""
    return abs(other.score / answer.winner.score - 1)


def as_csv(answer: InferenceAnswer) -> str:
    """The plans, or those of the front, a line each, under a line of names; nothing where there is no value."""
    records = [record.flat() for record in shown(answer)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in each.items()} for each in records)
    return text.getvalue()


def shown(answer: InferenceAnswer) -> list[PlanRecord]:
    """The plans of the front where it is asked for, else the best."""
    return answer.records if answer.front is None else answer.front.records


def show(answer: InferenceAnswer, console: Console, *, took: float, command: str | None = None) -> None:
    """Print the counts, the plans, what binds the best, the alternatives, the reasons of the others, and a command."""
    from rich.text import Text

    question = answer.questions[0]
    devices = ", ".join(str(each.devices) for each in answer.questions)
    stack = question.base.stack.title
    console.print(
        Text.assemble((question.model.name, "bold"), f" on {devices} x {question.system.title}, {stack}"),
    )
    console.print(f"{question.prompt} tokens in, {question.generate} out; {_aim(answer)}")
    console.print(f"{answer.survey.considered:,} plans considered, {answer.feasible:,} feasible; in {took:.2f} s")
    for name, survey in zip(("prefill", "decode"), answer.pools or (), strict=False):
        console.print(f"pools that {name}: {survey.considered:,} plans considered, {survey.feasible:,} feasible")
    if not answer.whole:
        console.print(Text("interrupted: the best of what was seen", "yellow"))
    if answer.front is not None:
        console.print(f"\n{_compared(answer.front)}", style="bold")
    console.print(plans(answer, shown(answer)))
    shares = ", ".join(f"{name} {percent(part)}" for name, part in answer.winner.shares().items() if part >= 5e-4)
    what = "decode iterations of the best plan are" if answer.winner.pools else "the best plan's time is"
    console.print(f"\n{what} due to {shares}")
    near = _alternatives(answer)
    if near:
        console.print("\nthe best plan with another value of one field", style="bold")
        console.print(_nearest(answer, near))
    console.print("\nnot among them", style="bold")
    for survey, where in ((answer.survey, ""), *zip(answer.pools or (), (" (prefill)", " (decode)"), strict=False)):
        show_lines(console, (f"  {each.plans:>9,}  {each}{where}" for each in reasons(survey)))
    if command is not None:
        console.print("\nthe best plan by itself", style="bold")
        show_lines(console, [f"  {command}"])


def _compared(front: Front) -> str:
    """What the front is of."""
    many = len(front.records)
    return f"{many} of {front.points:,} points, to which no other is equal in {' and '.join(front.axes)} or better"


def _aim(answer: InferenceAnswer) -> str:
    question = answer.questions[0]
    limits = [(n, t) for n, t in (("TTFT", question.ttft), ("TPOT", question.tpot)) if t is not None]
    within = " and ".join(f"{name} at most {seconds(time)}" for name, time in limits)
    if question.batch:
        batch = f"static batch of {' or '.join(map(str, question.batch))}, by {answer.by.replace('_', ' ')}"
        return f"{batch}, {within}" if within else batch
    if answer.front is not None:
        return "requests in flight, each replaced as it ends" + (f", {within} in the mean" if within else "")
    return f"the largest load with {within} in the mean"


def plans(answer: InferenceAnswer, records: list[PlanRecord]) -> Table:
    """One row a plan; where there are pools, each has a line of its own, and the plan is in words."""
    question, front = answer.questions[0], answer.front
    pools = any(record.pools for record in records)
    words = ("tp", "pp", "dp", "ep", "chunk", *OPENED) if pools else () if _deals(records) else ("ep",)
    names = [name for name in question.candidates if name not in words]
    names = [name for name in names if name != "batch" or len(question.batch) > 1]
    columns: dict[str, Callable[[PlanRecord], str]] = {
        "time" if question.batch else "request/s": lambda r: (
            _time(r.measures["time_s"]) if question.batch else f"{r.measures['requests_per_s']:.4g}"
        ),
        "token/s/device": lambda r: _figure(r, "output_tokens_per_s_per_device"),
        **({} if front is None else {"token/s/user": lambda r: _figure(r, "interactivity")}),
        "TTFT": lambda r: _time(r.measures["ttft_s"]),
        "TPOT": lambda r: _time(r.measures["tpot_s"]),
    }
    if not pools:
        columns["memory"] = lambda r: gibibytes(r.measures["memory_bytes"])
    if front is not None and not question.batch:
        columns["in flight"] = lambda r: _figure(r, "concurrency")
    elif not pools and not question.batch:
        columns["limit"] = lambda r: LIMITS[r.measures["limit"]]
    if len(answer.questions) > 1:
        columns["devices"] = lambda r: str(r.measures["devices"])
    columns |= {HEADS.get(name, name): partial(_field, name) for name in names}
    if records[0].measures["tokens_per_dollar"] is not None and answer.by != "cost":
        columns["token/$"] = lambda r: _figure(r, "tokens_per_dollar")
    asked = {answer.by, *(() if front is None else front.axes)}
    if "cost" in asked:
        columns |= {"USD/Mtoken out": _cost("output"), "in": _cost("input")}
    if asked & {"joules", "tokens_per_joule"}:
        columns["J/token"] = lambda r: _figure(r, "joules_per_output_token")
    if pools:
        columns["plan"] = _plan
    table = Table(list(columns), left=("limit", "plan"), wraps=("plan",))
    for record in records:
        table.add_row(*(cell(record) for cell in columns.values()))
    return table


def _figure(record: PlanRecord, name: str) -> str:
    value = record.measures[name]
    return "" if value is None else f"{value:.4g}"


def _cost(tokens: str) -> Callable[[PlanRecord], str]:
    return lambda record: _figure(record, f"cost_per_million_{tokens}_tokens")


def _field(name: str, record: PlanRecord) -> str:
    value = record.fields[name]
    return str(value) if value is not None else "stored" if name == "precision" else "none"


def _deals(records: list[PlanRecord]) -> bool:
    return any(fields.get("ep", 1) > 1 for record in records for fields in (record.fields, *record.pools.values()))


def _time(value: float | None) -> str:
    return "" if value is None else seconds(value)


def _plan(record: PlanRecord) -> str:
    """A plan in words, or both of two pools, a line each; degrees of 1 are left out."""
    found = []
    for name, fields in (record.pools or {"": record.fields}).items():
        degrees = [f"{key}={fields[key]}" for key in ("tp", "pp", "dp", "ep") if fields[key] > 1]
        degrees += [f"chunk={fields['chunk']}"] if fields["chunk"] else []
        degrees += [f"{key}={fields[key]}" for key in OPENED if key in fields and fields[key] != FIELDS[key].default]
        found.append(" ".join([f"{fields['devices']} {name}:", *degrees] if name else degrees))
    return "\n".join(found)


def _nearest(answer: InferenceAnswer, near: list[tuple[str, PlanRecord]]) -> Table:
    """One row an alternative: how far behind it is, and what it has in place of what."""
    words = ("with", "in place of")
    table = Table((BEHIND.get(answer.by, "serves less"), *words), left=words, wraps=words)
    best, seen = answer.winner.fields, list[dict[str, Any]]()
    for _, each in near:
        if each.fields in seen:  # the same plan is the best with another value of several fields
            continue
        seen.append(each.fields)
        changed = [name for name, value in each.fields.items() if value != best[name]]
        table.add_row(
            percent(behind(answer, each)),
            " ".join(f"{name}={each.fields[name]}" for name in changed),
            " ".join(f"{name}={best[name]}" for name in changed),
        )
    return table
