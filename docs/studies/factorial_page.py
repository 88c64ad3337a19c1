"""The tables and figures of the factorial of technology, from its rows alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from study import RATE_COLOURS, Row, Tables, markdown
from technology_points import l2_text

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = RATE_COLOURS | {"launch": "0.6"}
WORDS = {"l2": "L2", "scale_up": "scale-up", "scale_out": "scale-out", "launch": "launches"}
SLOW, FAST = ("nvlink2", "hdr"), ("nvlink5", "xdr")
"""The slowest and the fastest networks."""
MIDDLE = ("nvlink4", "ndr")
FEW = ("hbm2", "hbm3", "hbm4", "hbm7")


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    rows = tables["factorial"]
    return {
        "size": size_text(rows),
        "nodes": nodes_table(rows),
        "gains": gains_table(rows),
        "binds": binds_table(rows),
        "plans": plans_table(rows),
        "chips": chips_table(rows),
        "reading": reading_text(rows),
        "l2": l2_text(tables["cache"]),
    }


def nodes_of(rows: Sequence[Row]) -> list[str]:
    """The nodes in order."""
    return list(dict.fromkeys(row["node"] for row in rows))


def memories_of(rows: Sequence[Row]) -> list[str]:
    """The memories in order."""
    return list(dict.fromkeys(row["memory"] for row in rows))


def row_at(rows: Sequence[Row], **at: str) -> Row:
    """The row with some values."""
    return next(row for row in rows if all(row[name] == value for name, value in at.items()))


def on(networks: tuple[str, str]) -> dict[str, str]:
    """Two networks as values of columns."""
    return dict(zip(("scale_up", "scale_out"), networks, strict=True))


def bound(row: Row) -> str:
    """The resource with the largest share."""
    return max(COLOURS, key=lambda name: float(row[f"share_{name}"]))


def plan_text(row: Row) -> str:
    """A plan in few words."""
    parts = [f"{name} {row[name]}" for name in ("tp", "pp", "cp", "dp", "vpp") if row[name] > 1]
    parts += [f"micro-batch {row['micro_batch']}", row["schedule"]]
    parts += [f"recompute {row['recompute']}"] if row["recompute"] != "none" else []
    return ", ".join(parts + ([f"ZeRO-{row['zero']}"] if row["zero"] else []))


def size_text(rows: Sequence[Row]) -> str:
    """How many points there are, and how many plans could run and fit."""
    points = sum(row["chips"] for row in rows)
    least, most = (end(row["feasible"] for row in rows) for end in (min, max))
    different = {tuple(row[name] for name in _FIELDS) for row in rows}
    return (
        f"{points:,} points: {len(rows)} combinations of node, memory and networks, {rows[0]['chips']:,} chips each. "
        f"{least:,} to {most:,} plans can run and fit, as the memory holds; on the set's own chip {len(different)} of "
        "them are the best somewhere."
    )


def nodes_table(rows: Sequence[Row]) -> str:
    """Seconds of a step of the set's own chip, by node and memory, on the middle networks, with what binds."""
    lines = []
    for node in nodes_of(rows):
        cells = [row_at(rows, node=node, memory=memory, **on(MIDDLE)) for memory in memories_of(rows)]
        texts = [f"{row['time_s']:.2f} {WORDS.get(bound(row), bound(row))}" for row in cells]
        lines.append([node, f"{cells[0]['matrix_rate'] / 1e12:.0f}", *texts])
    return markdown(["node", "TFLOP/s", *memories_of(rows)], lines)


def gains_table(rows: Sequence[Row]) -> str:
    """How much faster the last node is than the first: in compute, and in time by memory and networks."""
    first, last = nodes_of(rows)[0], nodes_of(rows)[-1]
    ratio = row_at(rows, node=last)["matrix_rate"] / row_at(rows, node=first)["matrix_rate"]
    lines = []
    for memory in memories_of(rows):
        line = [memory]
        for pair in (SLOW, MIDDLE, FAST):
            start, end = (row_at(rows, node=node, memory=memory, **on(pair)) for node in (first, last))
            line += [f"{start['time_s'] / end['time_s']:.2f}", f"{start['time_s'] / end['kept_s']:.2f}"]
        lines.append(line)
    heads = [text for pair in (SLOW, MIDDLE, FAST) for text in ("+".join(pair), "plan kept")]
    return f"Compute: x {ratio:.1f}. Time:\n\n" + markdown(["memory", *heads], lines)


def binds_table(rows: Sequence[Row]) -> str:
    """Combinations of memory and networks by what binds, at each node."""
    lines = []
    for node in nodes_of(rows):
        held = [row for row in rows if row["node"] == node]
        counts = Counter(bound(row) for row in held)
        lines.append([node, *(counts.get(name, 0) for name in COLOURS)])
    return markdown(["node", *(WORDS.get(name, name) for name in COLOURS)], lines)


def plans_table(rows: Sequence[Row]) -> str:
    """The best plan by node on the slowest and on the fastest networks, with HBM3."""
    lines = []
    for node in nodes_of(rows):
        cells = [row_at(rows, node=node, memory="hbm3", **on(pair)) for pair in (SLOW, FAST)]
        lines.append([node, *(plan_text(row) for row in cells)])
    return markdown(["node", *("+".join(pair) for pair in (SLOW, FAST))], lines, left=3)


def chips_table(rows: Sequence[Row]) -> str:
    """The range over all chips of a node, and the fastest chip's budgets, with HBM3 and the middle networks."""
    lines = []
    for node in nodes_of(rows):
        row = row_at(rows, node=node, memory="hbm3", **on(MIDDLE))
        times = [f"{row[name]:.2f}" for name in ("slowest_s", "time_s", "fastest_s")]
        shares = [f"{row[f'fastest_{name}']:.3g}" for name in ("area_core", "power_core", "power_l2")]
        size = f"{row['fastest_die_area'] * 1e6:.0f}"
        lines.append([node, *times, size, f"{row['fastest_power']:.0f}", *shares, row["chips_plans"]])
    heads = ["slowest, s", "own chip, s", "fastest, s", "mm2", "W", "area of cores", "power of cores", "power of L2"]
    return markdown(["node", *heads, "plans"], lines)


def reading_text(rows: Sequence[Row]) -> str:
    """What the rows show, in sentences."""
    first, last = nodes_of(rows)[0], nodes_of(rows)[-1]
    names = ("memory", "scale_up", "scale_out")
    late = [row for row in rows if row["node"] == last]
    early = [row_at(rows, node=first, **{name: row[name] for name in names}) for row in late]
    ratio = late[0]["matrix_rate"] / early[0]["matrix_rate"]
    gains = [start["time_s"] / end["time_s"] for start, end in zip(early, late, strict=True)]
    kept = max(row["kept_s"] / row["time_s"] for row in late)
    start, end = ([row["share_compute"] for row in each] for each in (early, late))
    networks = max(row["share_scale_up"] + row["share_scale_out"] for row in rows)
    leading = Counter(bound(row) for row in rows)
    others = [WORDS.get(name, name) for name in COLOURS if not leading.get(name)]
    most = max(row["chips_plans"] for row in rows)
    sentences = [
        f"{ratio:.1f} times the compute makes a step {min(gains):.1f} to {max(gains):.1f} times as fast.",
        f"Compute has {_span(start)} of the time at {first} and {_span(end)} at {last}.",
        f"No combination has {', '.join(others[:-1])} or {others[-1]} for its largest share.",
        f"Both networks together have at most {networks:.0%}.",
        f"The best plan of {first} kept at {last} is up to {kept - 1:.0%} slower than the best plan there.",
        f"Among the {rows[0]['chips']:,} chips of a combination at most {most} plans are the best of some chip.",
    ]
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _span(shares: Sequence[float]) -> str:
    return f"{min(shares):.0%} to {max(shares):.0%}"


_FIELDS = ("tp", "pp", "cp", "dp", "vpp", "micro_batch", "schedule", "recompute", "zero", "sequence_parallel")


# --- figures


def draw_times(figure: Any, rows: Sequence[Row]) -> None:
    """Time against node: a line for each of some memories, a panel for the slowest and the fastest networks."""
    panels = figure.subplots(1, 2, sharey=True)
    nodes = nodes_of(rows)
    for axes, pair in zip(panels, (SLOW, FAST), strict=True):
        for memory in FEW:
            times = [row_at(rows, node=node, memory=memory, **on(pair))["time_s"] for node in nodes]
            axes.plot(nodes, times, marker="o", label=memory)
        rates = [row_at(rows, node=node)["matrix_rate"] for node in nodes]
        axes.plot(nodes, [times[0] * rates[0] / rate for rate in rates], ":", color="0.5", label="as compute")
        axes.set(title="+".join(pair), xlabel="logic node", yscale="log")
        axes.grid(visible=True, which="both", linewidth=0.3)
    panels[0].set_ylabel("seconds of a step, best plan")
    panels[1].legend()


def draw_bounds(figure: Any, rows: Sequence[Row]) -> None:
    """Shares of the time against node, a panel for each of two memories and two networks."""
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    nodes = nodes_of(rows)
    for line, memory in zip(panels, (FEW[0], FEW[-1]), strict=True):
        for axes, pair in zip(line, (SLOW, FAST), strict=True):
            cells = [row_at(rows, node=node, memory=memory, **on(pair)) for node in nodes]
            shares = [[float(row[f"share_{name}"]) for row in cells] for name in COLOURS]
            labels = [WORDS.get(name, name) for name in COLOURS]
            axes.stackplot(nodes, shares, colors=list(COLOURS.values()), labels=labels)
            axes.set_title(f"{memory}, {'+'.join(pair)}", fontsize=10)
            axes.set_ylim(0, 1)
    figure.supylabel("share of the step time, best plan")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
