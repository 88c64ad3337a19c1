"""The tables and the figure of the study of training memory, from its rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from study import Row, Tables, markdown

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = {
    "weights": "0.35",
    "gradients": "0.55",
    "optimizer": "0.75",
    "activations": "tab:red",
    "workspace": "tab:orange",
}
VARIANTS = {
    "none": ("eager", False, "none"),
    "none, SP": ("eager", True, "none"),
    "selective": ("eager", False, "selective"),
    "selective, SP": ("eager", True, "selective"),
    "flash, SP": ("flash", True, "none"),
    "full": ("eager", False, "full"),
}
"""Bars of the figure."""


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    return {
        "memory": _memory(tables["memory"]),
        "published": _published(tables["published"]),
        "limits": _pivot(tables["limits"], ["longest_sequence", "most_micro_batch"], _limit),
        "devices": _devices(tables["devices"]),
        "moe": _memory(tables["moe"]),
    }


def manner(row: Row) -> str:
    """Attention kernel and sequence parallelism in a word or two."""
    return row["attention"] + (", SP" if row["sequence_parallel"] else "")


def _memory(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        parts = [f"{row[f'{part}_GB']:.1f}" for part in PARTS]
        devices = row["tp"] * row["pp"] * row["dp"]
        line = [f"{row['model']}, {devices} devices", manner(row), row["recompute"], *parts, f"{row['total_GB']:.1f}"]
        lines.append([*line, "yes" if row["fits"] else "no"])
    return markdown(["layout", "attention", "recomputed", *PARTS, "total", "fits"], lines, left=3)


def _published(rows: list[Row]) -> str:
    lines = [
        [row["model"], row["what"], row["recompute"]]
        + [f"{row[name]:.2f} {row['unit']}" for name in ("published", "here")]
        + [f"{100 * row['error']:+.1f} %"]
        for row in rows
    ]
    return markdown(["model", "bar", "how", "published", "here", "difference"], lines, left=3)


def _pivot(rows: list[Row], columns: list[str], cell: Callable[[Row, str], str]) -> str:
    """One line a model and manner; a group of three columns, by recomputation, for each of the given ones."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["model"], manner(row)), {})[row["recompute"]] = row
    kinds = list(dict.fromkeys(row["recompute"] for row in rows))
    header = ["model", "attention", *(f"{_title(column)}, {kind}" for column in columns for kind in kinds)]
    lines = [
        [*key, *(cell(by[kind], column) if kind in by else "" for column in columns for kind in kinds)]
        for key, by in found.items()
    ]
    return markdown(header, lines, left=2)


def _title(column: str) -> str:
    return {"longest_sequence": "tokens", "most_micro_batch": "micro-batch"}.get(column, column)


def _limit(row: Row, column: str) -> str:
    return f"{row[column]:.2f}" if column == "most_micro_batch" else str(row[column])


def _devices(rows: list[Row]) -> str:
    """Fewest devices, ways to share the state beside one another."""
    merged: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        merged.setdefault((row["model"], manner(row), row["recompute"]), dict(row))[row["sharing"]] = row
    kinds = list(dict.fromkeys(row["sharing"] for row in rows))

    def cell(row: Row, kind: str) -> str:
        found = row[kind]
        if found["devices"] is None:
            return "none"
        return f"{found['devices']} ({found['tp']} x {found['pp'] * found['dp']})"

    return _pivot(list(merged.values()), kinds, cell)


def draw(figure: Any, rows: list[Row], limits: list[Row]) -> None:
    """Bars of bytes by part, and the longest sequences."""
    figure.set_size_inches(9, 7)
    bars, lengths = figure.subplots(2, 1)
    models = list(dict.fromkeys(row["model"] for row in rows))
    keyed = {(r["model"], r["attention"], r["sequence_parallel"], r["recompute"]): r for r in rows}
    longest = {(r["model"], r["attention"], r["sequence_parallel"], r["recompute"]): r for r in limits}
    places = [(i * (len(VARIANTS) + 1) + j, m, v) for i, m in enumerate(models) for j, v in enumerate(VARIANTS)]
    positions = [place for place, _, _ in places]
    bottom = [0.0] * len(places)
    for part, colour in PARTS.items():
        heights = [keyed[model, *VARIANTS[variant]][f"{part}_GB"] for _, model, variant in places]
        bars.bar(positions, heights, bottom=bottom, color=colour, label=part)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    capacity = rows[0]["capacity_GB"]
    bars.set_ylim(0, 1.2 * max(bottom))
    bars.axhline(capacity, color="black", linewidth=1, linestyle="--", label=f"{capacity:.0f} GB")
    bars.set_ylabel("GB on the fullest device")
    bars.legend(fontsize=8, ncols=3, loc="upper left")
    tokens = [longest[model, *VARIANTS[variant]]["longest_sequence"] for _, model, variant in places]
    lengths.bar(positions, tokens, color="tab:blue")
    lengths.axhline(limits[0]["sequence"], color="black", linewidth=1, linestyle="--", label="as trained")
    lengths.set(ylabel="longest sequence that fits, tokens")
    lengths.legend(fontsize=8, loc="upper left")
    for axes in (bars, lengths):
        axes.set_xticks(positions, [variant for _, _, variant in places], rotation=90, fontsize=7)
    middles = [sum(place for place, m, _ in places if m == model) / len(VARIANTS) for model in models]
    for middle, model in zip(middles, models, strict=True):
        bars.text(middle, 1.01, model, ha="center", va="bottom", fontsize=9, transform=bars.get_xaxis_transform())
