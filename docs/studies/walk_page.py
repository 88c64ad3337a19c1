"""The tables and figures of a walk, from its rows alone."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from study import RATE_COLOURS, Row, Tables, markdown
from technology_points import l2_text

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = RATE_COLOURS | {"latency": "0.6"}
WORDS = {"l2": "L2", "scale_up": "scale-up", "scale_out": "scale-out"}
LETTERS = {"compute": "C", "memory": "M", "l2": "L", "scale_up": "U", "scale_out": "O"}
KINDS = {
    "launch": "kernels",
    "scale_up": "scale-up hops",
    "scale_out": "scale-out hops",
    "domain": "collectives",
    "domain_hop": "scale-up hops",
    "domain_piece": "pieces",
}
"""What each latency is paid for, where its name does not say it."""
LEGS = ("compute", "memory", "network")
DOUBLINGS = 6
"""Of each leg."""


def word(resource: str | None) -> str:
    """A resource in words, or nothing."""
    return WORDS.get(resource or "", resource or "")


def short(seconds: float) -> str:
    """A time with four digits, in seconds or milliseconds.

    >>> short(13.47295), short(0.0403499)
    ('13.47 s', '40.35 ms')
    """
    return f"{seconds:.4g} s" if seconds >= 1 else f"{1e3 * seconds:.4g} ms"


def groups(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of some columns, in order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    first = tables["greedy"][0]["system"]
    return {
        "crossings": crossings_table(tables["crossings"]),
        "greedy": greedy_table(tables["greedy"]),
        "steps": steps_table([row for row in tables["greedy"] if row["system"] == first], "training", "share"),
        "limits": limits_table(tables["limits"]),
        "floors": floors_table(tables["floors"]),
        "forms": forms_text([row for row in tables["floors"] if row["system"] == first], "training"),
        "nodes": nodes_table(tables["nodes"]),
        "corners": corners_table(tables["corners"]),
        "l2": l2_text(tables["cache"]),
    }


def crossings_table(rows: Sequence[Row]) -> str:
    """What binds at the start and after every change, with the factor at which it changes."""
    lines = []
    for (system, question), found in groups(rows, "system", "question").items():
        walks = {leg: "; ".join(_change(row) for row in found if row["leg"] == leg) for leg in LEGS}
        start, last = found[0], found[-1]
        lines.append([system, question, start["after"], *(walks[leg] or "-" for leg in LEGS), last["after"]])
    heads = [f"{leg} x 1 to 64" for leg in LEGS]
    return markdown(["system", "question", "at first", *heads, "in the end"], lines, left=7)


def _change(row: Row) -> str:
    return f"{row['after']} at {row['factor']:.5g}"


def greedy_table(rows: Sequence[Row]) -> str:
    """Sequences of doublings, one letter each, and what they bring."""
    lines = []
    for (system, question, rule), found in groups(rows, "system", "question", "rule").items():
        sequence = "".join(LETTERS[row["resource"]] for row in found)
        last = found[-1]
        lines.append([system, question, rule, sequence, len(found), f"{last['speed_up']:.3f}", short(last["time_s"])])
    return markdown(["system", "question", "rule", "doubled", "doublings", "faster", "time"], lines, left=4)


def steps_table(rows: Sequence[Row], question: str, rule: str) -> str:
    """One greedy path step by step."""
    lines = [
        [r["step"], word(r["resource"]), f"{r['share']:.1%}", f"{r['gain']:.4f}", short(r["time_s"]), _so_far(r)]
        for r in rows
        if (r["question"], r["rule"]) == (question, rule)
    ]
    return markdown(["step", "doubled", "its share before", "gain", "time", "so far"], lines, left=2)


def _so_far(row: Row) -> str:
    return ", ".join(f"{word(name)} x {row[f'x_{name}']:.0f}" for name in LETTERS if row[f"x_{name}"] > 1)


def limits_table(rows: Sequence[Row]) -> str:
    """By how much the time shrinks when resources are infinitely fast."""
    columns = list(dict.fromkeys(row["infinite"] for row in rows))
    lines = []
    for (system, question), found in groups(rows, "system", "question").items():
        by = {row["infinite"]: row["speed_up"] for row in found}
        lines.append([system, question, *(f"{by[name]:.4g}" if name in by else "-" for name in columns)])
    heads = [" + ".join(word(part) for part in name.split(" + ")) for name in columns]
    return markdown(["system", "question", *heads], lines, left=2)


def floors_table(rows: Sequence[Row]) -> str:
    """How often each latency is paid, and what they sum to."""
    lines = []
    for (system, question), found in groups(rows, "system", "question").items():
        paid = [row for row in found if row["seconds"] > 0]
        terms = " + ".join(f"{row['times']:.6g} x {1e6 * row['each_s']:.4g} us ({kind(row)})" for row in paid)
        lines.append([system, question, terms, short(math.fsum(row["seconds"] for row in paid))])
    return markdown(["system", "question", "what is left", "in all"], lines, left=3)


def kind(row: Row) -> str:
    """A latency in words: what it is paid for."""
    what = row["latency"].removesuffix("_latency")
    return KINDS.get(what, what)


def forms_text(rows: Sequence[Row], question: str) -> str:
    """The closed forms of how often each latency is paid."""
    found = [row for row in rows if row["question"] == question]
    return "```text\n" + "\n\n".join(f"{kind(row)}: {row['closed_form']}" for row in found) + "\n```"


def nodes_table(rows: Sequence[Row]) -> str:
    """Time and what binds by point of technology, a pair of columns a question."""
    asked = list(dict.fromkeys(row["question"] for row in rows))
    lines = []
    for (node, memory, network), found in groups(rows, "node", "memory", "network").items():
        line = [node, memory, network, f"{found[0]['matrix_rate'] / 1e12:.0f}"]
        by = {row["question"]: row for row in found}
        for question in asked:
            row = by[question]
            line += [short(row["time_s"]), f"{word(row['bound'])} {row['share_' + row['bound']]:.0%}"]
        lines.append(line)
    heads = list(itertools.chain.from_iterable((question, "bound") for question in asked))
    return markdown(["node", "memory", "network", "TFLOP/s", *heads], lines, left=3)


def corners_table(rows: Sequence[Row]) -> str:
    """What the nodes bring, by memory and network."""
    lines = [
        [
            row["question"],
            row["memory"],
            row["network"],
            f"{row['compute']:.1f}",
            f"{row['speed_up']:.2f}",
            f"{word(row['first_bound'])} to {word(row['last_bound'])}",
        ]
        for row in rows
    ]
    return markdown(["question", "memory", "network", "compute x", "faster x", "bound"], lines, left=3)


# --- figures


def draw_walk(figure: Any, rows: Sequence[Row], system: str) -> None:
    """Shares along the walk on one system, a panel a question, two in a row."""
    asked = groups([row for row in rows if row["system"] == system], "question")
    figure.set_size_inches(8, 5 if len(asked) > 2 else 3.5)
    panels = figure.subplots(math.ceil(len(asked) / 2), 2, sharey=True, squeeze=False).flat
    figure.suptitle(f"Share of the time on {system} as one resource after the other gets faster", fontsize=11)
    for axes, ((question,), found) in zip(panels, asked.items(), strict=False):
        _areas(axes, [_position(row) for row in found], found)
        axes.set_title(question, fontsize=10)
        for at in (DOUBLINGS, 2 * DOUBLINGS):
            axes.axvline(at, color="black", linewidth=0.8, linestyle=":")
        ticks = range(0, 3 * DOUBLINGS + 1, 3)
        axes.set_xticks(list(ticks), [_tick(at) for at in ticks], fontsize=8)
        axes.set_xlabel("compute, then memory and L2, then networks, times", fontsize=8)
    _legend(figure, rows)


def _position(row: Row) -> float:
    return DOUBLINGS * LEGS.index(row["leg"]) + math.log2(row["factor"])


def _tick(at: int) -> str:
    return f"{2 ** (at % DOUBLINGS)}" if at % DOUBLINGS or at == 0 else "64 | 1" if at < 3 * DOUBLINGS else "64"


def draw_nodes(figure: Any, rows: Sequence[Row]) -> None:
    """Shares and time by point of technology, a panel a question."""
    asked = groups(rows, "question")
    panels = figure.subplots(len(asked), 1, sharex=True, squeeze=False)[:, 0]
    figure.set_size_inches(8, 2 + 1.9 * len(asked))
    figure.suptitle("Share of the time, and the time (line): nodes, then memories, then networks", fontsize=11)
    for axes, ((question,), found) in zip(panels, asked.items(), strict=True):
        places = list(range(len(found)))
        _areas(axes, places, found)
        axes.set_ylabel(question, fontsize=9)
        line = axes.twinx()
        line.plot(places, [row["time_s"] for row in found], color="black", marker="o", markersize=3)
        line.set_ylim(bottom=0)
        line.set_ylabel("s", fontsize=8)
        axes.set_xticks(places, [_place(row) for row in found], fontsize=7, rotation=45, ha="right")
    _legend(figure, rows)


def _place(row: Row) -> str:
    return f"{row['node']} {row['memory']}\n{row['network']}"


def _areas(axes: Any, places: Sequence[float], rows: Sequence[Row]) -> None:
    shares = [[row[f"share_{name}"] for row in rows] for name in COLOURS]
    axes.stackplot(places, *shares, colors=list(COLOURS.values()), linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_xlim(min(places), max(places))


def _legend(figure: Any, rows: Sequence[Row]) -> None:
    from matplotlib.patches import Patch

    used = [name for name in COLOURS if any(row[f"share_{name}"] > 0 for row in rows)]
    handles = [Patch(color=COLOURS[name], label=word(name)) for name in used]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
