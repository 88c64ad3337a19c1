"""The tables and the figures of the inference study, from its rows alone."""

from __future__ import annotations

from typing import Any

from study import Row, Tables, markdown

LETTERS = {"compute": "C", "memory": "M", "l2": "L", "launch": "S", "scale_up": "N", "scale_out": "N", None: "-"}
PRODUCTS = ("qkv", "output", "gate, up", "down")
"""The products of a layer."""
COLOURS = ("tab:blue", "tab:cyan", "tab:red", "tab:orange", "tab:green", "tab:purple")
CONTEXTS = (100, 1000)


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page by name."""
    parts = {f"bounds {stack}": _bounds(tables["bounds"], stack) for stack in _values(tables["bounds"], "stack")}
    return parts | {
        "counts": _counts(tables["bounds"]),
        "ridges": _ridges(tables["ridges"], tables["bounds"]),
        "intensity": _intensity(tables["bounds"]),
        "against the ridge": _against(tables["bounds"], tables["ridges"]),
        "scaling": _scaling(tables["scaling"]),
        "crossovers": _crossovers(tables["crossovers"]),
        "ceiling": _ceiling(tables["ceilings"], tables["crossovers"]),
        "limits": _limits(tables["limits"]),
    }


def _values(rows: list[Row], column: str) -> list[Any]:
    return list(dict.fromkeys(row[column] for row in rows))


# --- products


def _bounds(rows: list[Row], stack: str) -> str:
    """Bounds by model, phase, work and operation; one letter a system in each cell."""
    columns, systems = _values(rows, "operation"), _values(rows, "system")
    cells: dict[tuple[Any, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        if row["stack"] == stack:
            key = (row["model"], row["tp"], row["phase"], row["batch"], row["prompt"])
            cells.setdefault(key, {})[row["operation"], row["system"]] = LETTERS[row["bound"]]
    lines = []
    for (model, tp, phase, batch, prompt), found in cells.items():
        letters = [" ".join(found[column, system] for system in systems) for column in columns]
        lines.append([f"{model}, TP {tp}", phase, f"{batch} x {prompt}", *letters])
    return markdown(["model", "phase", "batch x prompt", *columns], lines, left=3 + len(columns))


def _counts(rows: list[Row]) -> str:
    """How many of the products of a layer, over the models, have each bound."""
    systems = _values(rows, "system")
    found: dict[tuple[Any, ...], dict[str, list[str]]] = {}
    for row in rows:
        if row["operation"] in PRODUCTS:
            key = (row["stack"], row["phase"], f"{row['batch']} x {row['prompt']}")
            found.setdefault(key, {}).setdefault(row["system"], []).append(LETTERS[row["bound"]])
    lines = [
        [*key, *(" ".join(f"{by[s].count(x)} {x}" for x in "CMLS" if x in by[s]) for s in systems)]
        for key, by in sorted(found.items(), key=lambda item: _order(rows, item[0]))
    ]
    return markdown(["stack", "phase", "batch x prompt", *systems], lines, left=3)


def _order(rows: list[Row], key: tuple[Any, ...]) -> tuple[int, ...]:
    works = list(dict.fromkeys(f"{row['batch']} x {row['prompt']}" for row in rows))
    phases = _values(rows, "phase")
    return (_values(rows, "stack").index(key[0]), phases.index(key[1]), works.index(key[2]))


def _ridges(rows: list[Row], bounds: list[Row]) -> str:
    """Peaks, what short and lasting products attain of them, and what the fastest product of the study does."""
    lines = [
        [row["system"]]
        + [f"{row[name]:.0f}" for name in ("peak_TFLOP_s", "attained_TFLOP_s", "lasting_TFLOP_s")]
        + [f"{_fastest(bounds, row['system']):.0f}"]
        + [f"{row[name]:.2f}" for name in ("bandwidth_TB_s", "attained_TB_s")]
        + [f"{row[name]:.0f}" for name in ("ridge_peak", "ridge")]
        for row in rows
    ]
    rates = ["peak, TFLOP/s", "short products", "lasting products", "fastest below", "bandwidth, TB/s", "attained"]
    return markdown(["system", *rates, "ridge of the data sheet, FLOP/byte", "ridge attained"], lines)


def _fastest(bounds: list[Row], system: str) -> float:
    """TFLOP/s of the product of a study that is the fastest on a system, its start included."""
    return max(row["flops"] / row["each_us"] / 1e6 for row in bounds if row["system"] == system and row["flops"])


def _intensity(rows: list[Row]) -> str:
    """FLOP per byte of the products, which are the same on every system."""
    columns = (*PRODUCTS, "logits")
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        if row["operation"] in columns and row["stack"] == rows[0]["stack"]:
            key = (f"{row['model']}, TP {row['tp']}", row["phase"], f"{row['batch']} x {row['prompt']}")
            found.setdefault(key, {}).setdefault(row["operation"], row["flops_per_byte"])
    lines = [[*key, *(_three(by[column]) for column in columns)] for key, by in found.items()]
    return markdown(["model", "phase", "batch x prompt", *columns], lines, left=3)


def _three(value: float) -> str:
    """A number with three digits before the point, or in all."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _against(rows: list[Row], ridges: list[Row]) -> str:
    """Products on each side of the attained ridge, and how many of them have another bound than it says."""
    ridge = {row["system"]: row["ridge"] for row in ridges}
    lines = []
    for system in ridge:
        mine = [
            r
            for r in rows
            if (r["system"], r["stack"]) == (system, rows[0]["stack"]) and r["operation"] in (*PRODUCTS, "logits")
        ]
        above = [row["bound"] for row in mine if row["flops_per_byte"] > ridge[system]]
        below = [row["bound"] for row in mine if row["flops_per_byte"] <= ridge[system]]
        lines.append([system, len(above), above.count("compute"), len(below), below.count("memory")])
    return markdown(["system", "above the ridge", "of them compute", "below", "of them memory"], lines)


# --- memory technologies and limits


def _scaling(rows: list[Row]) -> str:
    """Latency by device and memory technology."""
    lines = [
        [
            f"{row['system']}, TP {row['tp']}",
            row["memory"] + (" (projection)" if row["kind"] == "projection" else ""),
            f"{row['device_GB_s'] / 1e3:.3g}",
            f"{row['alone_prefill_ms']:.4g}",
            f"{row['alone_token_ms']:.4g}",
            row["alone_bound"],
            f"{row['alone_memory']:.0%}",
            f"{row['tensorrt-llm_token_ms']:.4g}",
            row["tensorrt-llm_bound"],
            f"{row['tensorrt-llm_memory']:.0%}",
        ]
        for row in rows
    ]
    header = ["device", "memory", "TB/s", "prefill ms", "token ms", "bound", "memory's share"]
    return markdown([*header, "token ms, software", "bound", "memory's share"], lines, left=2)


def _crossovers(rows: list[Row]) -> str:
    """Where the bound of the whole latency changes."""
    lines = [
        [
            f"{row['system']}, TP {row['tp']}",
            "device alone" if row["setting"] == "alone" else row["setting"],
            f"{row['before']} to {row['after']}",
            f"{row['bandwidth_GB_s'] / 1e3:.4f}",
        ]
        for row in rows
    ]
    return markdown(["device", "setting", "bound", "at TB/s"], lines, left=3)


def _ceiling(ceilings: list[Row], crossings: list[Row]) -> str:
    """What of the model decides beyond device memory, said from the numbers."""
    lines = []
    alone = [row for row in crossings if (row["tp"], row["setting"]) == (1, "alone")]
    for row in ceilings:
        first = next(found for found in alone if found["system"] == row["system"])
        lines.append(
            f"* {row['system']}: β₂ η₂ / η = {row['ceiling_GB_s'] / 1e3:.3f} TB/s; on one device alone, "
            f"{first['after']} takes over from {first['before']} at {first['bandwidth_GB_s'] / 1e3:.3f} TB/s."
        )
    return "\n".join(lines)


def _limits(rows: list[Row]) -> str:
    """The closed forms of `decode_bounds` at the systems' values."""
    lines = []
    for row in rows:
        batches = ["none" if row[f"b_{c}"] is None else f"{row[f'b_{c}']:.1f}" for c in CONTEXTS]
        line = [row["model"], row["system"], f"{row['b_1']:.1f}", *batches, f"{row['l_limit']:.0f}"]
        lines.append([*line, f"{row['g_limit']:.1f}", f"{row['g']:.0f}", f"{row['t_limit']:.2f}"])
    columns = ["b_1", *(f"b* at {c}" for c in CONTEXTS), "l*", "g*", "its a / a_kv", "t*"]
    return markdown(["model", "system", *columns], lines, left=2)


# --- figures


def draw_bounds(figure: Any, rows: list[Row], ridges: list[Row]) -> None:
    """Products on the rooflines of the systems: what each attains over its work a byte."""
    axes = figure.subplots()
    low, high = 0.5, 6000.0
    for row, colour in zip(ridges, COLOURS, strict=False):
        name, ridge, top = row["system"], row["ridge"], row["attained_TFLOP_s"]
        heights = [top * low / ridge, top, top]
        axes.plot([low, ridge, high], heights, color=colour, linewidth=1, label=f"{name}, ridge {ridge:.0f}")
        axes.axvline(ridge, color=colour, linewidth=0.5, linestyle=":")
        for phase, marker in (("prefill", "o"), ("decode", "x")):
            mine = [
                r
                for r in rows
                if (r["system"], r["phase"], r["stack"]) == (name, phase, rows[0]["stack"])
                and r["operation"] in (*PRODUCTS, "logits")
            ]
            intensities = [r["flops_per_byte"] for r in mine]
            attained = [r["flops"] / r["each_us"] / 1e6 for r in mine]
            axes.plot(intensities, attained, marker, color=colour, markersize=4, fillstyle="none", markeredgewidth=0.9)
    axes.set(xscale="log", yscale="log", xlabel="work of a product, FLOP per byte of device memory")
    axes.set_ylabel("TFLOP/s attained, starts of kernels included")
    axes.set_title("Products of Llama 2 in FP16 (circles prefill, crosses decode), attained rooflines", fontsize=10)
    axes.legend(fontsize=8, loc="lower right")


def draw_scaling(figure: Any, rows: list[Row], curves: dict[tuple[str, int], list[Any]]) -> None:
    """Time of a token over the bandwidth of device memory, with the technologies as points."""
    axes = figure.subplots()
    for ((system, tp), curve), colour in zip(curves.items(), COLOURS, strict=False):
        axes.plot([x / 1e12 for x, _ in curve], [1e3 * t for _, t in curve], color=colour, label=f"{system}, TP {tp}")
        mine = [row for row in rows if (row["system"], row["tp"]) == (system, tp)]
        times = [row["alone_token_ms"] for row in mine]
        axes.plot([row["device_GB_s"] / 1e3 for row in mine], times, "o", color=colour, markersize=4)
    for name, kind, bandwidth in dict.fromkeys((row["memory"], row["kind"], row["device_GB_s"]) for row in rows):
        style, x = ":" if kind == "projection" else "-", bandwidth / 1e3
        axes.axvline(x, color="0.85", linewidth=0.8, zorder=0, linestyle=style)
        where = axes.get_xaxis_transform()
        axes.text(x, 0.99, name, rotation=90, fontsize=7, va="top", ha="right", transform=where)
    axes.set(xscale="log", yscale="log", xlabel="device memory, TB/s", ylabel="time of a token, ms")
    axes.set_title("Llama 2 13B, FP16, batch 1, 200 tokens in and out, the device alone", fontsize=10)
    axes.legend(fontsize=8, loc="lower left")
