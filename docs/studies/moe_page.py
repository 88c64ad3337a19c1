"""The tables and figures of the study of a mixture of experts, from its rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from study import Row, Tables, markdown
from walk_page import crossings_table, draw_walk, greedy_table, groups, limits_table, short, word

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["blocks", "draw_share", "draw_walk"]

SHOWN = ("hbm3e", "nvlink4")
"""Memory and scale-up network of the table of the grid."""
LINES = {"hdr": "tab:red", "ndr": "tab:orange", "xdr": "tab:blue"}
STYLES = {"hbm2e": ":", "hbm4": "-"}
PARTS = ("weights_GB", "gradients_GB", "optimizer_GB", "activations_GB", "workspace_GB", "total_GB")


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    return {
        "memory": memory_table(tables["memory"]),
        "schedules": schedules_table(tables["schedules"]),
        "speedup": speedup_table(tables["speedup"]),
        "crossings": crossings_table(tables["crossings"]),
        "greedy": greedy_table(tables["greedy"]),
        "limits": limits_table(tables["limits"]),
        "grid": grid_table(tables["grid"]),
        "counts": counts_table(tables["grid"]),
        "needed": needed_table(tables["needed"]),
        "prefill": bounds_table(tables["bounds"], "prefill"),
        "decode": bounds_table(tables["bounds"], "decode"),
        "latency": latency_table(tables["latency"]),
    }


def memory_table(rows: Sequence[Row]) -> str:
    """Bytes of the fullest device by part."""
    lines = [
        [row["recompute"], *(f"{row[part]:.1f}" for part in PARTS), "yes" if row["fits"] else "no"] for row in rows
    ]
    heads = [part.removesuffix("_GB") + ", GB" for part in PARTS]
    return markdown(["recompute", *heads, "fits 80 GB"], lines)


def schedules_table(rows: Sequence[Row]) -> str:
    """Time, memory and who is responsible, by schedule."""
    lines = [
        [
            row["schedule"],
            row["precision"],
            row["recompute"],
            f"{row['time_s']:.2f}",
            f"{row['memory_GB']:.0f}",
            f"{row['ratio']:.2f}",
            f"{row['all_to_all']:.0%}",
            f"{row['share_scale_up'] + row['share_scale_out']:.0%}",
            f"{row['share_compute']:.0%}",
        ]
        for row in rows
    ]
    heads = ["schedule", "precision", "recompute", "step, s", "memory, GB", "work : all-to-all"]
    return markdown([*heads, "all-to-all", "networks", "compute"], lines, left=3)


def speedup_table(rows: Sequence[Row]) -> str:
    """Mean factor and range of each group, by device."""
    groups_of = list(dict.fromkeys(row["group"] for row in rows))
    lines = []
    for (device,), found in groups(rows, "device").items():
        cells = [f"{row['mean']:.2f} ({row['least']:.2f} to {row['largest']:.2f})" for row in found]
        first = found[0]
        times = [f"{first['first_s']:.1f}", f"{first['time_s']:.2f}", f"{first['total']:.2f}"]
        lines.append([device, *times, *cells, "yes" if first["fits"] else "no"])
    return markdown(["device", "A100, s", "step, s", "faster", *groups_of, "fits"], lines)


def at(rows: Sequence[Row], memory: str, scale_up: str) -> list[Row]:
    """Rows of one memory and scale-up network."""
    return [row for row in rows if row["memory"] == memory and row["network"].startswith(f"{scale_up}+")]


def outer(row: Row) -> str:
    """The scale-out network of a row."""
    return str(row["network"].split("+")[1])


def grid_table(rows: Sequence[Row]) -> str:
    """Step time, and the part of the all-to-all, at the memory and scale-up network shown."""
    names = list(dict.fromkeys(map(outer, rows)))
    lines = []
    for (precision, node), found in groups(at(rows, *SHOWN), "precision", "node").items():
        by = {outer(row): row for row in found}
        cells = [f"{by[name]['time_s']:.3g} s, {by[name]['all_to_all']:.0%}" for name in names]
        lines.append([precision, node, f"{found[0]['matrix_rate'] / 1e12:.0f}", *cells])
    return markdown(["precision", "node", "TFLOP/s in 16 bits", *names], lines, left=2)


def counts_table(rows: Sequence[Row]) -> str:
    """At how many points of each node the scale-out network has the largest share, by scale-out generation."""
    names = list(dict.fromkeys(map(outer, rows)))
    lines = []
    for (precision, node), found in groups(rows, "precision", "node").items():
        counts = []
        for name in names:
            those = [row for row in found if outer(row) == name]
            counts.append(f"{sum(row['bound'] == 'scale_out' for row in those)} of {len(those)}")
        lines.append([precision, node, *counts])
    return markdown(["precision", "node", *names], lines, left=2)


def needed_table(rows: Sequence[Row]) -> str:
    """The scale-out bandwidth from which on networks no longer bind, by node."""
    lines = []
    for (node,), found in groups(rows, "node").items():
        by = {row["precision"]: row for row in found}
        cells = [_bandwidth(row) for row in by.values()]
        lines.append([node, f"{found[0]['matrix_rate'] / 1e12:.0f}", *cells])
    heads = [f"{precision}, GB/s" for precision in dict.fromkeys(row["precision"] for row in rows)]
    return markdown(["node", "TFLOP/s in 16 bits", *heads], lines)


def _bandwidth(row: Row) -> str:
    at = row["scale_out_bandwidth"]
    return "none" if at is None else f"{at / 1e9:.5g} (then {word(row['after'])})"


def bounds_table(rows: Sequence[Row], phase: str) -> str:
    """Shape, time and bound of each operation, a column a system."""
    found = groups([row for row in rows if row["phase"] == phase], "operation")
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lines = []
    for (operation,), those in found.items():
        by = {row["system"]: row for row in those}
        shape = " x ".join(str(those[0][letter]) for letter in "mnk") if those[0]["n"] else "-"
        lines.append([operation, shape, *(f"{word(by[s]['bound'])}, {by[s]['each_us']:.4g} us" for s in systems)])
    return markdown(["operation", "m x n x k", *systems], lines, left=2 + len(systems))


def latency_table(rows: Sequence[Row]) -> str:
    """Prefill and a token by memory technology."""
    lines = []
    for row in rows:
        line = [row["memory"], f"{row['memory_bandwidth'] / 1e12:.3g}"]
        for label in ("prefill", "token"):
            line += [short(row[f"{label}_s"]), word(row[f"{label}_bound"]), f"{row[f'{label}_memory']:.0%}"]
        lines.append(line)
    heads = ["prefill", "bound", "memory's share", "token", "bound", "memory's share"]
    return markdown(["memory", "TB/s", *heads], lines)


# --- figures


def draw_share(figure: Any, rows: Sequence[Row]) -> None:
    """The part of the step that the all-to-all is responsible for, by node: a panel a precision, a line a network."""
    asked = groups([row for row in rows if row["network"].startswith(f"{SHOWN[1]}+")], "precision")
    figure.set_size_inches(8, 4)
    figure.suptitle("All-to-all of experts: share of the step (DualPipe, 2048 devices)", fontsize=11)
    for axes, ((precision,), found) in zip(
        figure.subplots(1, len(asked), sharey=True, squeeze=False)[0], asked.items(), strict=True
    ):
        for (memory, network), line in groups(found, "memory", "network").items():
            if memory in STYLES:
                out = network.split("+")[1]
                places = [row["node"] for row in line]
                shares = [row["all_to_all"] for row in line]
                axes.plot(places, shares, color=LINES[out], linestyle=STYLES[memory], label=f"{out}, {memory}")
        axes.set_title(precision, fontsize=10)
        axes.set_ylim(0, 1)
        axes.set_xlabel("logic node", fontsize=9)
    figure.supylabel("share of the step", fontsize=9)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
