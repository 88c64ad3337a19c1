"""Study: what binds each product of an inference, latency as memory gets faster, and the limits of decoding.

Run: python docs/studies/run.py inference [--check]
"""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import inference_page as page
from study import Row, Study, Tables

from symperf import Model, Plan, System, inference
from symperf.formulas.collectives.call_overhead import started_collective_time
from symperf.formulas.collectives.domain import domain_collective_time
from symperf.formulas.generation import decode_bounds
from symperf.formulas.language.symbols import SYMBOLS
from symperf.systems.memories import Memory, names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TITLE = "bounds of products in prefill and decode, latency against DRAM, and when decoding turns compute-bound"
MODELS = {"llama-2-7b": 1, "llama-2-13b": 1, "llama-2-70b": 4}
"""Models and the tensor-parallel degree at which the larger work fits on every system."""
SYSTEMS = ("a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")
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
"""Columns of the table of bounds, and the operations that they stand for: the first that the model has."""
SCALED_MODEL = "llama-2-13b"
SCALED = [(system, tp) for system in ("a100-80gb-sxm", "h100-sxm") for tp in (1, 8)]
RANGE = (3e11, 2e14)
"""Bandwidths between which changes of bound are sought, bytes per second."""
ALONE = {"stack": "none", "launch_latency": 0.0, "domain_latency": 0.0, "split_latency": 0.0}
"""The device without software, without starts of kernels and collectives, without second kernels of split products."""
SETTINGS = {"alone": ALONE, "tensorrt-llm": {"stack": "tensorrt-llm"}}
LIMIT_CONTEXTS = (100, 1000)

Layout = int | dict[str, Any]
"""A tensor-parallel degree, or fields of a plan."""


def run_of(model: str, system: str, layout: Layout, work: tuple[int, int], **how: Any) -> Any:
    """An inference in 16 bits that generates 200 tokens."""
    fields = layout if isinstance(layout, dict) else {"tp": layout}
    plan = Plan(**({"precision": "fp16"} | fields))
    batch, prompt = work
    return inference(Model.load(model), System.load(system), plan, batch=batch, prompt=prompt, generate=200, **how)


# --- what binds each product


def bounds(
    models: Mapping[str, Layout] = MODELS,
    systems: Sequence[str] = SYSTEMS,
    stacks: Sequence[str] = STACKS,
    operations: Mapping[str, tuple[str, ...]] = OPERATIONS,
    work: Sequence[tuple[int, int]] = WORK,
) -> list[Row]:
    """One row an operation: its shape, work and bytes, the time of one execution, and its bound (None: no time)."""
    found = []
    for stack, (model, layout), asked, system in itertools.product(stacks, models.items(), work, systems):
        run = run_of(model, system, layout, asked, stack=stack)
        named = {(op.phase, op.name): op for op in run.operations()}
        for phase, (column, paths) in itertools.product(("prefill", "decode"), operations.items()):
            op = next((named[phase, path] for path in paths if (phase, path) in named), None)
            if op is None:
                continue
            row: Row = {"stack": stack, "model": model, "tp": run.plan.tp, "system": system, "phase": phase}
            row |= {"batch": asked[0], "prompt": asked[1], "operation": column, "path": op.name}
            row |= {"m": op.m, "n": op.n, "k": op.k}
            flops, moved = (run.value(f"term/{phase}/{op.name}/{what}") for what in ("flops", "bytes"))
            row |= {"flops": flops, "bytes": moved, "flops_per_byte": flops / moved if moved else None}
            found.append(row | {"each_us": 1e6 * op.time_s / op.count, "bound": op.bound})
    return found


def ridges(systems: Sequence[str] = SYSTEMS) -> list[Row]:
    """One row a system: what products attain of its peak and of its bandwidth, and the ridge between, in FLOP/byte.

    Products that last attain less where power limits them (`sustained_efficiency`); the ridge is that of short ones.
    """
    found = []
    for system in systems:
        value = {name: pair[0] for name, pair in run_of(SCALED_MODEL, system, 1, WORK[0], stack="none").bound.items()}
        rate = value["matrix_rate"] * value["matrix_efficiency"]
        bandwidth = value["memory_bandwidth"] * value["memory_efficiency"]
        row = {"system": system, "peak_TFLOP_s": value["matrix_rate"] / 1e12, "attained_TFLOP_s": rate / 1e12}
        sustained = min(value["matrix_efficiency"], value.get("sustained_efficiency", 1.0))
        row |= {"lasting_TFLOP_s": row["peak_TFLOP_s"] * sustained}
        row |= {"bandwidth_TB_s": value["memory_bandwidth"] / 1e12, "attained_TB_s": bandwidth / 1e12}
        found.append(row | {"ridge_peak": row["peak_TFLOP_s"] / row["bandwidth_TB_s"], "ridge": rate / bandwidth})
    return found


# --- latency as memory gets faster


def scaling(
    memories: Sequence[str] | None = None,
    cases: Sequence[tuple[str, Layout]] = SCALED,
    model: str = SCALED_MODEL,
    work: tuple[int, int] = WORK[0],
) -> list[Row]:
    """One row a device, layout and memory technology: latency and bound."""
    found = []
    for (system, layout), name in itertools.product(cases, memories or names()):
        memory = Memory.load(name)
        bandwidth = memory.device_bandwidth
        row = _case(model, system, layout) | {"memory": name, "kind": memory.kind, "device_GB_s": bandwidth / 1e9}
        for label, how in SETTINGS.items():
            run = run_of(model, system, layout, work, memory_bandwidth=bandwidth, **how)
            shares = run.shares()
            row[f"{label}_prefill_ms"] = 1e3 * run.value("prefill")
            row[f"{label}_token_ms"] = 1e3 * run.value("time_per_token")
            row[f"{label}_total_s"] = run.value("time")
            row[f"{label}_bound"] = max(shares, key=shares.__getitem__)
            row |= {f"{label}_{key}": shares.get(key, 0.0) for key in ("memory", "compute", "l2", "launch")}
            row[f"{label}_network"] = shares.get("scale_up", 0.0) + shares.get("scale_out", 0.0)
        found.append(row)
    return found


def _case(model: str, system: str, layout: Layout) -> Row:
    tp = layout.get("tp", 1) if isinstance(layout, dict) else layout
    return {"model": model, "system": system, "tp": tp}


def crossovers(
    cases: Sequence[tuple[str, Layout]] = SCALED, model: str = SCALED_MODEL, work: tuple[int, int] = WORK[0]
) -> list[Row]:
    """One row a device, layout and setting: the bandwidths at which the bound of the whole latency changes, exactly."""
    found = []
    for (system, layout), (label, how) in itertools.product(cases, SETTINGS.items()):
        run = run_of(model, system, layout, work, **how)
        ranges = run.regimes("memory_bandwidth", *RANGE).bounds()
        for (_, _, before), (at, _, after) in itertools.pairwise(ranges):
            row = _case(model, system, layout) | {"setting": label, "before": before, "after": after}
            found.append(row | {"bandwidth_GB_s": at / 1e9})
    return found


def ceilings(systems: Sequence[str] = tuple(dict(SCALED)), model: str = SCALED_MODEL) -> list[Row]:
    """One row a system with L2: the memory bandwidth at which a byte takes as long in L2, bytes per second."""
    found = []
    for system in systems:
        value = {name: pair[0] for name, pair in run_of(model, system, 1, WORK[0], **ALONE).bound.items()}
        ceiling = value["l2_bandwidth"] * value["l2_efficiency"] / value["memory_efficiency"]
        found.append({"system": system, "ceiling_GB_s": ceiling / 1e9})
    return found


# --- limits of decoding


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


def limits(models: Mapping[str, Layout] = MODELS, systems: Sequence[str] = SYSTEMS) -> list[Row]:
    """One row a model and system: where decoding stops being bound by device memory (`decode_bounds`)."""
    found = []
    for model, system in itertools.product(models, systems):
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
        weights = evaluated(decode_bounds.reduce_bound_degree(layer, 1), run)
        two, three = (2 * evaluated(empty_all_reduce(ranks), run) for ranks in (2, 3))
        found.append(row | {"t_limit": degree(weights, 3 * two - 2 * three, three - two)})
    return found


def empty_all_reduce(ranks: int) -> Any:
    """Closed form of an all-reduce of no bytes where a domain's collectives are measured, affine in the ranks."""
    time = domain_collective_time(0, ranks, 2 * (ranks - 1), 2)
    return started_collective_time(time, ranks, SYMBOLS["domain_latency"].symbol)


def degree(weights: float, start: float, rank: float) -> float:
    """The degree t > 0 at which t (start + rank t) = weights: reading takes weights / t, all-reduces the rest.

    >>> degree(80.0, 2.0, 1.0)
    8.0
    """
    return 2 * weights / (start + math.sqrt(start**2 + 4 * rank * weights))


# --- the study


def study(coarse: bool) -> Study:
    """All tables, or a few rows of each."""
    tables: Tables
    if coarse:
        tables = {
            "bounds": bounds({"llama-2-13b": 1}, ("h100-sxm",), ("none",)),
            "ridges": ridges(("a100-80gb-sxm",)),
            "scaling": scaling(("hbm2", "hbm4"), [("a100-80gb-sxm", 8)]),
            "crossovers": crossovers([("h100-sxm", 1)]),
            "ceilings": ceilings(("h100-sxm",)),
            "limits": limits({"llama-2-70b": 4}, ("b200-sxm",)),
        }
    else:
        tables = {"bounds": bounds(), "ridges": ridges(), "scaling": scaling(), "crossovers": crossovers()}
        tables |= {"ceilings": ceilings(), "limits": limits()}
    figures = {
        "bounds": lambda figure: page.draw_bounds(figure, tables["bounds"], tables["ridges"]),
        "scaling": lambda figure: page.draw_scaling(figure, tables["scaling"], curves()),
    }
    return Study(tables, {} if coarse else blocks(tables), figures)


def blocks(tables: Tables) -> dict[str, str]:
    """The generated parts of the page."""
    return page.blocks(tables)


def curves(cases: Sequence[tuple[str, Layout]] = SCALED, model: str = SCALED_MODEL) -> dict[tuple[str, int], list[Any]]:
    """Pairs of bandwidth (bytes per second) and time of a token (s) along `RANGE`, by device and degree."""
    low, high = 1.6 * RANGE[0], RANGE[1]
    grid = [low * (high / low) ** (i / 120) for i in range(121)]
    found = {}
    for system, layout in cases:
        run = run_of(model, system, layout, WORK[0], **ALONE)
        key = (system, _case(model, system, layout)["tp"])
        found[key] = [(x, run.bind(memory_bandwidth=x).value("time_per_token")) for x in grid]
    return found


if __name__ == "__main__":
    import run as runner

    sys.exit(runner.main([Path(__file__).stem, *sys.argv[1:]]))
