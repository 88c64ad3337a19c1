"""Writes the inference studies: three CSV files, the figure, and the tables of `inference.md`, all in this folder.

Run: python docs/studies/inference.py [--check]   (with --check nothing is written; exit status 1 if a table is stale)

The figure needs matplotlib (`pip install symperf[plot]`); the numbers do not.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import math
import re
import sys
from pathlib import Path
from typing import Any

from symperf import Model, Plan, System, inference
from symperf.formulas import decode_bounds
from symperf.formulas.symbols import SYMBOLS
from symperf.memories import Memory, names

HERE = Path(__file__).resolve().parent
PAGE = HERE / "inference.md"
MODELS = {"llama-2-7b": 1, "llama-2-13b": 1, "llama-2-70b": 4}
"""Models and the tensor-parallel degree at which the larger work fits on every system."""
SYSTEMS = ("a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm")
WORK = ((1, 200), (16, 2048))
"""Batch and prompt; 200 tokens are generated."""
STACKS = ("none", "tensorrt-llm")
OPERATIONS = {
    "qkv": ("layer/attention/qkv",),
    "attention": ("layer/attention/flash",),
    "output": ("layer/attention/output",),
    "gate, up": ("layer/mlp/gate_up", "layer/mlp/gate"),
    "down": ("layer/mlp/down",),
    "logits": ("head/logits",),
    "all-reduce": ("layer/mlp/reduce",),
}
"""Columns of the table of bounds, and the operations that they stand for."""
LETTERS = {"compute": "C", "memory": "M", "l2": "L", "launch": "S", "scale_up": "N", "scale_out": "N", "": "-"}
SCALED_MODEL = "llama-2-13b"
SCALED = [(system, tp) for system in ("a100-80gb-sxm", "h100-sxm") for tp in (1, 8)]
RANGE = (3e11, 2e14)
"""Bandwidths between which changes of bound are sought, bytes per second."""
ALONE = {"stack": "none", "launch_latency": 0.0}
"""The device without software and without the start of kernels."""
LIMIT_CONTEXTS = (100, 1000)

Row = dict[str, Any]


def run_of(model: str, system: str, tp: int, work: tuple[int, int], **how: Any) -> Any:
    """An inference in 16 bits that generates 200 tokens."""
    plan = Plan(tp=tp, precision="fp16")
    batch, prompt = work
    return inference(Model.load(model), System.load(system), plan, batch=batch, prompt=prompt, generate=200, **how)


def bounds(
    models: dict[str, int] = MODELS, systems: tuple[str, ...] = SYSTEMS, stacks: tuple[str, ...] = STACKS
) -> list[Row]:
    """One row an operation of `OPERATIONS`: its shape, the time of one execution and its bound."""
    found = []
    for stack, (model, tp), work, system in itertools.product(stacks, models.items(), WORK, systems):
        named = {(op.phase, op.name): op for op in run_of(model, system, tp, work, stack=stack).operations()}
        for phase, (column, paths) in itertools.product(("prefill", "decode"), OPERATIONS.items()):
            op = next(named[phase, path] for path in paths if (phase, path) in named)
            row = {"stack": stack, "model": model, "tp": tp, "system": system, "phase": phase}
            row |= {"batch": work[0], "prompt": work[1], "operation": column, "path": op.name}
            row |= {"m": op.m, "n": op.n, "k": op.k, "each_us": significant(1e6 * op.time_s / op.count)}
            found.append(row | {"bound": op.bound or ""})
    return found


def scaling(memories: list[str] | None = None, cases: list[tuple[str, int]] = SCALED) -> list[Row]:
    """One row a device, tensor-parallel degree and memory technology: latency and bound."""
    found = []
    for system, tp in cases:
        for name in memories or names():
            memory = Memory.load(name)
            bandwidth = memory.device_bandwidth
            row = {"system": system, "tp": tp, "memory": name, "kind": memory.kind, "device_GB_s": bandwidth / 1e9}
            for label, how in (("alone", ALONE), ("tensorrt-llm", {"stack": "tensorrt-llm"})):
                run = run_of(SCALED_MODEL, system, tp, WORK[0], memory_bandwidth=bandwidth, **how)
                shares = run.shares()
                row[f"{label}_prefill_ms"] = significant(1e3 * run.value("prefill"))
                row[f"{label}_token_ms"] = significant(1e3 * run.value("time_per_token"))
                row[f"{label}_total_s"] = significant(run.value("time"))
                row[f"{label}_bound"] = max(shares, key=shares.__getitem__)
                row |= {
                    f"{label}_{key}": round(shares.get(key, 0.0), 4) for key in ("memory", "compute", "l2", "launch")
                }
                row[f"{label}_network"] = round(shares.get("scale_up", 0.0) + shares.get("scale_out", 0.0), 4)
            found.append(row)
    return found


def crossovers(cases: list[tuple[str, int]] = SCALED) -> list[Row]:
    """One row a device, degree and setting: the bandwidths at which the bound of the whole latency changes, exactly."""
    found = []
    for system, tp in cases:
        for label, how in (("alone", ALONE), ("tensorrt-llm", {"stack": "tensorrt-llm"})):
            run = run_of(SCALED_MODEL, system, tp, WORK[0], **how)
            ranges = run.regimes("memory_bandwidth", *RANGE).bounds()
            steps = [(low, left, right) for (_, _, left), (low, _, right) in itertools.pairwise(ranges)]
            for at, before, after in steps:
                row = {"system": system, "tp": tp, "setting": label, "before": before, "after": after}
                found.append(row | {"bandwidth_GB_s": at / 1e9})
    return found


def product_parameters(run: Any) -> tuple[float, float]:
    """Weights of the products of one layer on all devices, and of the whole model on one device."""
    size = {name: value for name, (value, _) in run.bound.items()}
    hidden, width = size["hidden_size"], size["head_dim"] * size["num_key_value_heads"]
    attention = hidden * size["head_dim"] * size["num_attention_heads"]
    layer = 2 * attention + 2 * hidden * width + 3 * hidden * size["intermediate_size"]
    return layer, (layer * size["num_layers"] + size["vocab_size"] * hidden) / size["tp"]


def evaluated(formula: Any, run: Any) -> float:
    """The value of a closed form at a run's values."""
    known = {SYMBOLS[name].symbol: value for name, (value, _) in run.bound.items() if name in SYMBOLS}
    return float(formula.subs(known).subs(SYMBOLS["flop"].symbol, 1))


def limits(models: dict[str, int] = MODELS, systems: tuple[str, ...] = SYSTEMS) -> list[Row]:
    """One row a model and system: where decoding stops being bound by device memory (`formulas/decode_bounds.py`)."""
    found = []
    for model in models:
        for system in systems:
            run = run_of(model, system, 1, WORK[0], stack="none")
            layer, parameters = product_parameters(run)
            size = {name: value for name, (value, _) in run.bound.items()}
            shape = tuple(SYMBOLS[name].symbol for name in ("num_layers", "num_key_value_heads", "head_dim"))
            row: Row = {"model": model, "system": system, "b_1": evaluated(decode_bounds.ridge_batch(), run)}
            for context in LIMIT_CONTEXTS:
                batch = evaluated(decode_bounds.balance_batch(parameters, context, *shape), run)
                row[f"b_{context}"] = batch if batch < 1e200 else None
            row["l_limit"] = evaluated(decode_bounds.context_limit(parameters, *shape), run)
            row["g_limit"] = evaluated(decode_bounds.attention_ridge_group(), run)
            row["g"] = size["num_attention_heads"] / size["num_key_value_heads"]
            target = evaluated(decode_bounds.reduce_bound_degree(layer, 4 * SYMBOLS["scale_up_latency"].symbol), run)
            row["t_limit"] = degree(target)
            found.append(row)
    return found


def degree(target: float) -> float:
    """The solution t of t log2(t) = target, by bisection.

    >>> degree(24.0)
    8.0
    """
    low, high = 1.0, 2.0 + target
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.log2(middle) < target else (low, middle)
    return round((low + high) / 2, 9)


def significant(value: float) -> float:
    """A number with five digits."""
    return float(f"{value:.5g}")


# --- the page


def table(header: list[str], rows: list[list[str]], left: int = 1) -> str:
    """A Markdown table whose first columns are to the left."""
    rule = "|" + "|".join("---" if i < left else "---:" for i in range(len(header))) + "|"
    return "\n".join(["| " + " | ".join(header) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def bounds_table(rows: list[Row], stack: str, systems: tuple[str, ...] = SYSTEMS) -> str:
    """Bounds by model, phase, work and operation; one letter a system in each cell."""
    cells: dict[tuple[Any, ...], dict[tuple[str, str], str]] = {}
    for row in rows:
        if row["stack"] == stack:
            key = (row["model"], row["tp"], row["phase"], row["batch"], row["prompt"])
            cells.setdefault(key, {})[row["operation"], row["system"]] = LETTERS[row["bound"]]
    lines = []
    for (model, tp, phase, batch, prompt), found in cells.items():
        letters = [" ".join(found[column, system] for system in systems) for column in OPERATIONS]
        lines.append([f"{model}, TP {tp}", phase, f"{batch} x {prompt}", *letters])
    return table(["model", "phase", "batch x prompt", *OPERATIONS], lines, left=3 + len(OPERATIONS))


def counts_table(rows: list[Row], systems: tuple[str, ...] = SYSTEMS) -> str:
    """How many of the four products of a layer, over the models, have each bound."""
    lines = []
    for stack in dict.fromkeys(row["stack"] for row in rows):
        for phase in ("prefill", "decode"):
            for batch, prompt in WORK:
                line = [stack, phase, f"{batch} x {prompt}"]
                for system in systems:
                    found = [
                        LETTERS[row["bound"]]
                        for row in rows
                        if (row["stack"], row["phase"], row["batch"], row["system"]) == (stack, phase, batch, system)
                        and row["operation"] in ("qkv", "output", "gate, up", "down")
                    ]
                    line.append(" ".join(f"{found.count(letter)} {letter}" for letter in "CMLS" if letter in found))
                lines.append(line)
    return table(["stack", "phase", "batch x prompt", *systems], lines, left=3)


def scaling_table(rows: list[Row]) -> str:
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
    return table([*header, "token ms, software", "bound", "memory's share"], lines, left=2)


def crossovers_table(rows: list[Row]) -> str:
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
    return table(["device", "setting", "bound", "at TB/s"], lines, left=3)


def limits_table(rows: list[Row]) -> str:
    """The closed forms of `decode_bounds` at the systems' values."""
    lines = []
    for row in rows:
        batches = ["none" if row[f"b_{c}"] is None else f"{row[f'b_{c}']:.1f}" for c in LIMIT_CONTEXTS]
        line = [row["model"], row["system"], f"{row['b_1']:.1f}", *batches, f"{row['l_limit']:.0f}"]
        lines.append([*line, f"{row['g_limit']:.1f}", f"{row['g']:.0f}", f"{row['t_limit']:.2f}"])
    columns = ["b_1", *(f"b* at {c}" for c in LIMIT_CONTEXTS), "l*", "g*", "its a / a_kv", "t*"]
    return table(["model", "system", *columns], lines, left=2)


def ceiling_text(rows: list[Row]) -> str:
    """What of the model decides beyond device memory, said from the numbers."""
    lines = []
    for system in dict.fromkeys(system for system, _ in SCALED):
        run = run_of(SCALED_MODEL, system, 1, WORK[0], **ALONE)
        value = {name: pair[0] for name, pair in run.bound.items()}
        ceiling = value["l2_bandwidth"] * value["l2_efficiency"] / value["memory_efficiency"]
        first = next(r for r in rows if (r["system"], r["tp"], r["setting"]) == (system, 1, "alone"))
        lines.append(
            f"* {system}: β₂ η₂ / η = {ceiling / 1e12:.3f} TB/s; on one device alone, {first['after']} takes over from "
            f"{first['before']} at {first['bandwidth_GB_s'] / 1e3:.3f} TB/s."
        )
    if any(row["after"] == "compute" for row in rows if (row["tp"], row["setting"]) == (1, "alone")):
        lines.append(
            "\nThe two differ: the model counts L2 traffic of a product of m rows in tiles of T rows as m / T passes\n"
            "over the weights, less than one for m < T, so that the padded tiles' arithmetic binds first. With whole\n"
            "passes L2 binds at the first figure. Take the first figure as the limit."
        )
    return "\n".join(lines)


def blocks() -> tuple[dict[str, str], dict[str, list[Row]]]:
    """The generated parts of the page by name, and the rows of each CSV file."""
    data = {"bounds": bounds(), "scaling": scaling(), "crossovers": crossovers(), "limits": limits()}
    parts = {f"bounds {stack}": bounds_table(data["bounds"], stack) for stack in STACKS}
    parts["counts"] = counts_table(data["bounds"])
    parts["scaling"] = scaling_table(data["scaling"])
    parts["crossovers"] = crossovers_table(data["crossovers"])
    parts["ceiling"] = ceiling_text(data["crossovers"])
    parts["limits"] = limits_table(data["limits"])
    return parts, data


def filled(text: str, parts: dict[str, str]) -> str:
    """A page with its generated parts put between their markers."""
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- begin {re.escape(name)} -->\n).*?(<!-- end {re.escape(name)} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{PAGE.name}: no place for {name}")
        text = pattern.sub(lambda match, part=part: f"{match[1]}\n{part}\n\n{match[2]}", text)
    return text


def as_csv(rows: list[Row]) -> str:
    """Rows as the text of a CSV file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.10g}" if isinstance(value, float) else value for key, value in row.items()})
    return out.getvalue()


def draw(path: Path) -> None:
    """The figure: time of a token over the bandwidth of device memory, with the technologies as points."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "symperf"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    memories = [Memory.load(name) for name in names()]
    grid = [RANGE[0] * 1.6 * (RANGE[1] / RANGE[0] / 1.6) ** (i / 120) for i in range(121)]
    for (system, tp), colour in zip(SCALED, ("tab:blue", "tab:cyan", "tab:red", "tab:orange"), strict=True):
        run = run_of(SCALED_MODEL, system, tp, WORK[0], **ALONE)
        at = {x: 1e3 * run.bind(memory_bandwidth=x).value("time_per_token") for x in grid}
        axes.plot([x / 1e12 for x in at], list(at.values()), color=colour, label=f"{system}, TP {tp}")
        points = [m.device_bandwidth for m in memories]
        values = [1e3 * run.bind(memory_bandwidth=x).value("time_per_token") for x in points]
        axes.plot([x / 1e12 for x in points], values, "o", color=colour, markersize=4)
    for memory in memories:
        x = memory.device_bandwidth / 1e12
        axes.axvline(x, color="0.85", linewidth=0.8, zorder=0, linestyle=":" if memory.kind == "projection" else "-")
        axes.text(
            x, 0.99, memory.name, rotation=90, fontsize=7, va="top", ha="right", transform=axes.get_xaxis_transform()
        )
    axes.set(xscale="log", yscale="log", xlabel="device memory, TB/s", ylabel="time of a token, ms")
    axes.set_title("Llama 2 13B, FP16, batch 1, 200 tokens in and out, the device alone", fontsize=10)
    axes.legend(fontsize=8, loc="lower left")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a table is stale")
    options = parser.parse_args(arguments)
    parts, data = blocks()
    fresh = {HERE / f"inference_{name}.csv": as_csv(rows) for name, rows in data.items()}
    fresh[PAGE] = filled(PAGE.read_text(encoding="utf-8"), parts)
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name}: {'stale' if options.check else 'written'}")
        if not options.check:
            path.write_text(fresh[path], encoding="utf-8")
    if not options.check:
        draw(HERE / "inference_scaling.svg")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
