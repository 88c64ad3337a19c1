"""The tables of `speedup.md` from the rows of the CSV files, and the figure."""

from __future__ import annotations

import itertools
import math
import textwrap
from typing import TYPE_CHECKING, Any

from study import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from study import Row, Tables

PUBLISHED = 35.0
"""Kundu et al. 2024 (arXiv 2407.14645), abstract: about, from A100 to B200."""
SHORT = {
    "a100-80gb-sxm": "A100",
    "h100-sxm": "H100",
    "h200-sxm": "H200",
    "b200-sxm": "B200",
    "gb200-nvl72": "GB200",
    "gpt3-175b": "GPT-3 175B",
    "gpt-1t": "GPT 1T",
}
UNITS = {
    "memory_bandwidth": (1e9, "memory, GB/s"),
    "memory_capacity": (1e9, "memory, GB"),
    "scale_up_bandwidth": (1e9, "scale-up, GB/s"),
    "scale_up_size": (1, "devices in a scale-up domain"),
    "scale_out_bandwidth": (1e9, "scale-out, GB/s"),
    "vector_rate": (1e12, "vector, TFLOP/s"),
}
"""What quantities are shown in, and as what; matrix rates in TFLOP/s."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")


def short(name: str) -> str:
    """The name of a model or a device as a table shows it."""
    return SHORT.get(name, name)


def work_of(row: Row) -> str:
    """What is trained, as a table shows it."""
    return f"{short(row['model'])}, {row['devices']} devices"


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    makers = {"rates": rates, "totals": totals, "factors": means, "ranges": ranges, "path": path, "shares": shares}
    found = {name: make(tables["factors" if name == "ranges" else name]) for name, make in makers.items()}
    found["exponents"] = exponents(tables["factors"], tables["rates"], tables["shares"])
    found |= {"reading": reading(tables["totals"], tables["factors"]), "needed": needed(tables["totals"])}
    found |= {"ladder": ladder(tables["ladder"]), "conclusion": conclusion(tables["ladder"])}
    return found | {"levels": levels(tables["levels"]), "blackwell": blackwell(tables["blackwell"])}


def blackwell(rows: list[Row]) -> str:
    """How far predictions on Blackwell are from published training, and what that would mean for the speed-ups."""
    lines = [
        [row["device"], row["rows"], f"{row['mean']:.1%}", f"{row['too_fast']} of {row['rows']}", f"{row['time']:.2f}"]
        for row in rows
    ]
    heads = [
        "device",
        "published rows",
        "mean error",
        "predicted too fast",
        "predicted / measured time (geometric mean)",
    ]
    text = [
        f"On {row['device']} the published steps are {'slower' if row['time'] < 1 else 'faster'} than predicted: if "
        f"those of this study are as far off, its speed-ups on {row['device']} are to be multiplied by "
        f"{row['time']:.2f}."
        for row in rows
    ]
    said = "\n".join(textwrap.wrap(" ".join(text) or "No published training on Blackwell is scored.", 119))
    return said + ("\n\n" + markdown(heads, lines) if rows else "")


def groups_of(rows: list[Row]) -> dict[tuple[Any, ...], dict[str, Row]]:
    """The rows of each comparison by group."""
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["devices"], row["device"]), {})[row["group"]] = row
    return found


def rates(rows: list[Row]) -> str:
    """What the catalogue says, with the ratios to A100."""
    devices = list(dict.fromkeys(row["device"] for row in rows))
    lines = []
    for quantity in dict.fromkeys(row["quantity"] for row in rows):
        unit, label = UNITS.get(quantity, (1e12, f"matrix, {quantity}, TFLOP/s"))
        own = {row["device"]: row for row in rows if row["quantity"] == quantity}
        cells = [f"{own[d]['second'] / unit:.5g} (x {own[d]['ratio']:.2f})" if d in own else "-" for d in devices]
        lines.append([label, f"{next(iter(own.values()))['first'] / unit:.5g}", *cells])
    return markdown(["", "A100", *map(short, devices)], lines)


def totals(rows: list[Row]) -> str:
    """The speed-ups."""
    lines = []
    for row in rows:
        same = f"{row['same_plan']:.2f}" + ("" if row["same_plan_fits"] else " (does not fit)")
        ratio = row["mfu"] / row["first_mfu"]
        line = [work_of(row), short(row["device"]), row["precision"], f"{row['first_time_s']:.2f}", same]
        line += [f"{row['time_s']:.3f}", f"**{row['best_plan']:.2f}**"]
        line += [f"{row['usual_schedules']:.2f}", f"{row['peak_ratio']:.2f}"]
        lines.append([*line, f"{row['first_mfu']:.1%}", f"{row['mfu']:.1%}", f"{ratio:.3f}"])
    columns = ["training", "device", "products in", "A100, s", "speed-up, A100's plan", "s", "speed-up, best plan"]
    columns += ["1F1B on both", "ratio of peaks", "MFU on A100", "MFU", "ratio of MFU"]
    return markdown(columns, lines, left=3)


def reading(rows: list[Row], factor_rows: list[Row]) -> str:
    """What the tables of speed-ups and factors say, over all trainings."""
    lines = []
    for device in dict.fromkeys(row["device"] for row in rows):
        parts = [
            f"{between(row['best_plan'] for row in rows if (row['device'], row['precision']) == (device, precision))} "
            f"in {precision}"
            for precision in dict.fromkeys(row["precision"] for row in rows if row["device"] == device)
        ]
        ranked = dict.fromkeys(row["group"] for row in factor_rows)
        worth = [
            f"{group} {between(r['mean'] for r in factor_rows if (r['device'], r['group']) == (device, group))}"
            for group in ranked
        ]
        lines.append(f"* {short(device)}: {', '.join(parts)} times A100. Mean factors: {', '.join(worth)}.")
    ratios = [row["mfu"] / row["first_mfu"] for row in rows]
    lines.append(f"* Each is below its ratio of peaks, since the MFU falls to {between(ratios)} of A100's.")
    return "\n".join(lines)


def between(values: Iterable[float]) -> str:
    """The range of some numbers.

    >>> between([1.234, 1.5, 1.3]), between([2.0])
    ('1.23 to 1.50', '2.00')
    """
    low, *_, high = sorted(f"{value:9.2f}" for value in [*values] * 2)
    return low.strip() if low == high else f"{low.strip()} to {high.strip()}"


def conclusion(rows: list[Row]) -> str:
    """Which assumption passes the published speed-up, by device."""
    lines = []
    for device in dict.fromkeys(row["device"] for row in rows):
        own = [row for row in rows if row["device"] == device]
        works = list(dict.fromkeys(work_of(row) for row in own))
        told = []
        for work in works:
            mine = [row for row in own if work_of(row) == work]
            past = next((row for row in mine if row["speedup"] >= PUBLISHED), None)
            most = max(row["speedup"] for row in mine)
            where = f'passes 35 with "{past["assumption"]}"' if past else f"does not pass 35: {most:.1f} at most"
            told.append(f"{work} {where}")
        lines.append(f"* {short(device)}: {'; '.join(told)}.")
    return "\n".join(lines)


def means(rows: list[Row]) -> str:
    """The factors in the mean over all orders."""
    lines = []
    for found in groups_of(rows).values():
        any_row = next(iter(found.values()))
        cells = [f"{row['mean']:.2f}" for row in found.values()]
        lines.append([work_of(any_row), f"{short(any_row['device'])}, {any_row['precision']}", *cells])
        lines[-1].append(f"**{any_row['total']:.2f}**")
    return markdown(["training", "device", *dict.fromkeys(row["group"] for row in rows), "product"], lines, left=2)


def ranges(rows: list[Row]) -> str:
    """The least and the largest factors over all orders, and those of a group that changes first or last."""
    lines = []
    for found in groups_of(rows).values():
        any_row = next(iter(found.values()))
        cells = [
            f"{row['least']:.2f} to {row['largest']:.2f} ({row['changed_first']:.2f}, {row['changed_last']:.2f})"
            for row in found.values()
        ]
        lines.append([work_of(any_row), short(any_row["device"]), *cells])
    return markdown(["training", "device", *dict.fromkeys(row["group"] for row in rows)], lines, left=2)


def path(rows: list[Row]) -> str:
    """The factors along the stated order; a star where A100's plan would not fit."""
    steps = ["fp8", "fp4", *(s for s in dict.fromkeys(row["step"] for row in rows) if s not in ("fp8", "fp4"))]
    lines = []
    for (model, devices, device), group in itertools.groupby(
        rows, key=lambda row: (row["model"], row["devices"], row["device"])
    ):
        found = {row["step"]: row for row in group}
        cells = [
            f"{found[step]['factor']:.3f}" + ("" if found[step]["fits"] else "*") if step in found else "-"
            for step in steps
        ]
        last = list(found.values())[-1]
        line = [work_of({"model": model, "devices": devices}), short(device), *cells, f"**{last['so_far']:.2f}**"]
        lines.append([*line, f"`{last['plan']}`"])
    return markdown(["training", "device", *steps, "product", "the best plan"], lines, left=2)


def shares(rows: list[Row]) -> str:
    """The shares of the step time at the ends."""
    resources = ("compute", "memory", "scale_up", "scale_out", "launch")
    lines: list[list[str]] = []
    for row in rows:
        if row["end"] == "A100" and any(line[0] == work_of(row) for line in lines):
            continue
        end = "A100, bf16" if row["end"] == "A100" else f"{short(row['device'])}, {row['precision']}, {row['end']}"
        cells = [f"{row[name]:.1%}" for name in resources]
        lines.append([work_of(row), end, f"{row['time_s']:.3f}", *cells, f"{row['matrix_rate']:.3f}"])
    header = ["training", "end", "s", *(name.replace("_", "-") for name in resources)]
    return markdown([*header, "-d ln T / d ln matrix rate"], lines, left=2)


def exponents(factors: list[Row], rate_rows: list[Row], share_rows: list[Row]) -> str:
    """How much of the logarithm of a ratio of rates reaches the step time, beside the shares at both ends."""
    ratio = {(row["device"], row["quantity"]): row["ratio"] for row in rate_rows}
    ends = {(row["model"], row["devices"], row["device"], row["end"]): row for row in share_rows}
    lines = []
    for key, found in groups_of(factors).items():
        model, devices, device = key
        line = [work_of({"model": model, "devices": devices}), short(device)]
        for group, quantity in (("compute", "bf16"), ("memory", "memory_bandwidth")):
            rate = ratio[device, quantity]
            mean = math.log(found[group]["mean"]) / math.log(rate)
            low, high = (ends[(*key, end)][group] for end in ("A100", "best plan"))
            line += [f"{rate:.2f}", f"{found[group]['mean']:.2f}", f"{mean:.2f}", f"{low:.2f}, {high:.2f}"]
        lines.append(line)
    columns = [
        f"{group}: {name}" for group in ("compute", "memory") for name in ("ratio", "factor", "exponent", "shares")
    ]
    return markdown(["training", "device", *columns], lines, left=2)


def needed(rows: list[Row]) -> str:
    """What the ratio of MFUs would have to be for the published speed-up."""
    lines = []
    for row in rows:
        if row["device"] not in ("b200-sxm", "gb200-nvl72"):
            continue
        ratio = PUBLISHED / row["peak_ratio"]
        line = [work_of(row), short(row["device"]), row["precision"], f"{row['peak_ratio']:.2f}", f"{ratio:.2f}"]
        lines.append([*line, f"{row['mfu']:.1%}", f"{row['mfu'] / ratio:.1%}", f"{row['first_mfu']:.1%}"])
    columns = ["training", "device", "products in", "ratio of peaks", f"ratio of MFU for {PUBLISHED:.0f}"]
    return markdown([*columns, "MFU, best plan", "MFU that A100 would have", "MFU on A100, best plan"], lines, left=3)


def ladder(rows: list[Row]) -> str:
    """The speed-up as assumptions are added, a column a comparison."""
    columns = list(dict.fromkeys((row["model"], row["devices"], row["device"]) for row in rows))
    found = {(row["assumption"], row["model"], row["devices"], row["device"]): row["speedup"] for row in rows}
    lines = []
    for assumption in dict.fromkeys(row["assumption"] for row in rows):
        cells = [found.get((assumption, *column)) for column in columns]
        lines.append([assumption, *("-" if cell is None else f"{cell:.2f}" for cell in cells)])
    heads = [f"{short(device)}, {work_of({'model': m, 'devices': n})}" for m, n, device in columns]
    return markdown(["and", *heads], lines)


def levels(rows: list[Row]) -> str:
    """The speed-up with and without the L2 cache as a level."""
    lines = []
    for row in rows:
        line = [work_of(row), short(row["device"]), row["level"], f"{row['first_time_s']:.3f}"]
        lines.append([*line, f"{row['time_s']:.3f}", f"{row['speedup']:.3f}"])
    return markdown(["training", "device", "roofline", "A100, s", "s", "speed-up"], lines, left=3)


def draw(figure: Any, rows: list[Row]) -> None:
    """Stacked bars on a logarithmic axis: what speeds up above 1, what slows down below it, the product as a mark."""
    every = groups_of(rows)
    works = list(dict.fromkeys(key[:2] for key in every))
    groups = list(dict.fromkeys(row["group"] for row in rows))
    axes = figure.subplots(1, len(works), sharey=True, squeeze=False)[0]
    for axis, work in zip(axes, works, strict=True):
        own = {key[2]: found for key, found in every.items() if key[:2] == work}
        for at, found in enumerate(own.values()):
            above = below = 1.0
            for colour, group in zip(COLOURS, groups, strict=True):
                factor, label = found[group]["mean"], group if at == 0 else None
                start = above if factor >= 1 else below
                axis.bar(at, start * (factor - 1), bottom=start, color=colour, width=0.7, label=label)
                above, below = (above * factor, below) if factor >= 1 else (above, below * factor)
            total = found[groups[0]]["total"]
            axis.plot([at - 0.42, at + 0.42], [total, total], color="black", linewidth=2)
            axis.annotate(f"{total:.1f}", (at, above), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        labels = [f"{short(device)}\n{next(iter(found.values()))['precision']}" for device, found in own.items()]
        axis.set_xticks(range(len(own)), labels, fontsize=8)
        axis.set_title(work_of({"model": work[0], "devices": work[1]}), fontsize=9)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.axhline(PUBLISHED, color="grey", linestyle="--", linewidth=1)
    axes[0].set_yscale("log")
    axes[0].set_ylim(0.7, 45)
    ticks = (1, 2, 5, 10, 20, 35)
    axes[0].set_yticks(ticks, [str(tick) for tick in ticks])
    axes[0].minorticks_off()
    axes[0].set_ylabel("times as fast as A100 in bf16 (dashed: the published 35)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(groups), fontsize=8)
