"""Runs of twenty structures, and moves of their symbols to other values, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import symperf as sf
from symperf.codegen.interpret import adjoints, arrays
from symperf.codegen.interpret import run as interpret
from symperf.derive.forms import told_spending
from symperf.formulas.language.symbols import COUNT, FRACTION, SYMBOLS, ZERO_UP
from symperf.spending.mixin import ENERGIES as RESOURCES
from symperf.spending.program import spending_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symperf.evaluation.base_run import BaseRun

TRAINING: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "data parallel": ("llama-2-7b", "h100-sxm", 64, 4096, {"dp": 64}),
    "zero 3": ("llama-2-70b", "h100-sxm", 64, 4096, {"dp": 64, "zero": 3}),
    "tensor parallel": ("llama-2-7b", "h100-sxm", 8, 4096, {"tp": 8, "micro_batch": 8}),
    "eager pipeline": ("gpt3-175b", "a100-80gb-sxm", 64, 2048, {"tp": 8, "pp": 8, "overlap_tp": 1.0}),
    "interleaved": (
        "gpt3-175b",
        "a100-80gb-sxm",
        64,
        2048,
        {"tp": 8, "pp": 8, "vpp": 3, "recompute": "selective", "sequence_parallel": True, "overlap_tp": 0.5},
    ),
    "gpipe, full recomputation": (
        "gpt-22b",
        "a100-80gb-sxm",
        16,
        2048,
        {"tp": 4, "pp": 4, "schedule": "gpipe", "recompute": "full", "overlap_dp": 0.0, "dp": 2},
    ),
    "zero bubble": (
        "llama-3.1-70b",
        "h100-sxm",
        128,
        4096,
        {"tp": 8, "pp": 4, "dp": 4, "schedule": "zero-bubble", "sequence_parallel": True, "zero": 1},
    ),
    "zero 2": (
        "llama-3-8b",
        "b200-sxm",
        96,
        8192,
        {"dp": 12, "zero": 2, "overlap_dp": 0.5, "micro_batch": 2, "attention": "flash"},
    ),
    "ring": (
        "llama-3-8b",
        "h100-sxm",
        16,
        32768,
        {"tp": 2, "cp": 4, "dp": 2, "attention": "flash", "overlap_dp": 1.0},
    ),
    "one device": ("gpt-j-6b", "h100-sxm", 2, 2048, {"micro_batch": 2, "recompute": "full"}),
    "no tiles": ("llama-2-7b", "tpu-v5p", 16, 2048, {"dp": 8, "zero": 1}),
    "experts": (
        "mixtral-8x7b",
        "h100-sxm",
        64,
        4096,
        {"tp": 2, "ep": 8, "dp": 8, "overlap_dp": 0.5, "sequence_parallel": True},
    ),
    "latent, two ways": (
        "deepseek-v2",
        "h100-sxm",
        128,
        4096,
        {"pp": 4, "dp": 8, "ep": 8, "schedule": "dualpipe", "attention": "flash"},
    ),
    "recurrent": (
        "jamba-v0.1",
        "h100-sxm",
        32,
        4096,
        {"tp": 4, "dp": 4, "attention": "flash", "sequence_parallel": True},
    ),
    "low precision": ("llama-3.1-8b", "h100-sxm", 32, 4096, {"dp": 4, "precision": "fp8", "attention": "flash"}),
}
"""Model, system, batch, sequence and plan of training steps."""
INFERENCE: dict[str, tuple[str, str, str, int, int, int, dict[str, Any]]] = {
    "generation": ("llama-2-7b", "a100-80gb-sxm", "tensorrt-llm", 8, 200, 100, {}),
    "grouped heads": ("llama-2-70b", "h100-sxm", "vllm", 8, 200, 200, {"tp": 8}),
    "stages": ("llama-3.1-70b", "h100-sxm", "vllm", 4, 512, 2, {"tp": 2, "pp": 2, "dp": 2}),
    "generated experts": ("mixtral-8x7b", "h200-sxm", "vllm", 16, 1000, 50, {"tp": 2}),
    "generated latent": ("deepseek-v2-lite", "h200-sxm", "tensorrt-llm", 4, 300, 300, {}),
    "generated state": ("mamba2-codestral-7b", "h100-sxm", "vllm", 4, 300, 30, {}),
    "windows": ("mistral-7b-v0.1", "h100-sxm", "none", 1, 4000, 400, {}),
}
"""Model, system, serving software, batch, prompt, generated tokens and plan of inferences."""
SERVING: dict[str, tuple[str, str, int, int, int, dict[str, Any]]] = {
    "served": ("llama-2-70b", "h100-sxm", 1024, 256, 64, {"tp": 8}),
    "served by stages": ("mixtral-8x7b", "h100-sxm", 3000, 100, 32, {"tp": 2, "pp": 2, "dp": 2}),
    "served latent": ("deepseek-v2-lite", "h200-sxm", 200, 500, 100, {}),
}
"""Model, system, prompt, generated tokens, sequences of a replica and plan of saturated iterations."""
ALL = (*TRAINING, *INFERENCE, *SERVING)


def make(name: str) -> BaseRun:
    """A run of one structure."""
    if name in TRAINING:
        model, system, batch, sequence, plan = TRAINING[name]
        loaded = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
        return sf.training(*loaded, batch=batch, sequence=sequence)
    if name in SERVING:
        model, system, prompt, generate, concurrency, plan = SERVING[name]
        loaded = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
        return sf.serving(*loaded, prompt=prompt, generate=generate).iteration(concurrency)
    model, system, stack, batch, prompt, generate, plan = INFERENCE[name]
    loaded = sf.Model.load(model), sf.System.load(system), sf.Plan(**plan)
    return sf.inference(*loaded, batch=batch, prompt=prompt, generate=generate, stack=stack)


def moves(run: BaseRun, seed: int, count: int) -> dict[str, Any]:
    """Values of every symbol at `count` points.

    Of a third of them one symbol moves, of a third two or three, of a third any number; by little or by much, to 1, to
    0, to a multiple, a part or a neighbour, or to the value of another symbol of its kind. Each stays in its domain.
    Where that leaves less than a part of a micro-batch, in which m - 1 and 1 would cancel, nothing moves.
    """
    rng = np.random.default_rng(seed)
    names = sorted(run.compiled.program.inputs)
    base = {name: run.bound[name][0] for name in names}
    found = {name: np.full(count, base[name]) for name in names}
    for k in range(count):
        many = (1, rng.integers(2, 4), rng.integers(1, len(names) + 1))[k % 3]
        small = rng.random() < 0.5
        for name in rng.choice(names, int(many), replace=False):
            found[name][k] = _moved(name, base, rng, small=small)
    if "batch" not in found:
        return found
    empty = found["batch"] * 64 < found["dp"] * found["micro_batch"]
    return {name: np.where(empty, base[name], value) for name, value in found.items()}


def _moved(name: str, base: Mapping[str, float], rng: Any, *, small: bool) -> float:
    value, domain = base[name], SYMBOLS[name].domain
    alike = (domain, SYMBOLS[name].dimension)
    other = base[str(rng.choice([n for n in base if (SYMBOLS[n].domain, SYMBOLS[n].dimension) == alike]))]
    if domain == COUNT:
        ways = [value + 1, value - 1, 2 * value] if small else []
        ways += [1, 2 * value, 3 * value, value // 2, value + rng.integers(1, 9), rng.integers(1, 4 * value + 2), other]
        return float(min(max(1, int(rng.choice(ways))), 2**40))
    near = value * float(np.exp(rng.normal() * 10 ** rng.uniform(-6, -1)))
    if domain == FRACTION:
        return float(rng.choice([min(near, 1)] if small else [0, 0.5, 1, rng.random()]))
    far = value * float(np.exp(rng.normal() * 2))
    ways = (
        [near] if small else [far, far, 2 * value, *([other] if other > 0 else []), *([0] if domain == ZERO_UP else [])]
    )
    return float(rng.choice(ways))


def outputs_at(run: BaseRun, points: Mapping[str, Any]) -> dict[str, Any]:
    """Every output of a run's program at points."""
    program = run.compiled.program
    with np.errstate(all="ignore"):
        values = interpret(program, points, arrays())
    size = np.shape(next(iter(points.values())))
    return {name: np.broadcast_to(values[at], size) for name, at in program.outputs.items()}


def seconds_at(run: BaseRun, points: Mapping[str, Any]) -> dict[str, Any]:
    """The seconds that each term is responsible for at points, as the breakdown has them."""
    compiled = run.compiled
    program = compiled.program
    idle = {program.lets[term.path] for term in compiled.terms if term.idle}
    with np.errstate(all="ignore"):
        values = interpret(program, points, arrays())
        slopes = adjoints(program, values, program.outputs["time"], arrays(), stop=idle)
        return {
            term.path: values[program.lets[term.path]] * slopes.get(program.lets[term.path], 0.0)
            for term in compiled.terms
        }


def spent_at(run: Any, points: Mapping[str, Any]) -> dict[str, Any]:
    """Joules and dollars at points, where the system tells what they need."""
    outputs, found = outputs_at(run, points), {}
    told = told_spending(run)
    if "cost" in told:
        found["cost"] = outputs["time"] * outputs["devices"] * run.spending_figures("price_per_hour")["price_per_hour"]
    if "energy" in told and run.told_energies() is None:
        found["energy"] = outputs["time"] * outputs["devices"] * run.bound["power"][0]
    elif "energy" in told:
        program = spending_program(run.structure)
        names = [f"{each}_energy" for each in RESOURCES]
        values = {name: run.bound[name][0] for name in run.bound} | run.spending_figures("static_power", *names)
        values |= {"power_cap": 1.0} | dict(points) | {"busy_time": outputs["time"]}
        if (wide := run.wide_rate()) is not None:
            values["matrix_energy"] = values["matrix_energy"] * wide / values["matrix_rate"]
        with np.errstate(all="ignore"):
            all_values = interpret(program, values, arrays())
        parts = [f"energy/{each}" for each in run.told_energies() or ()] + ["energy/static"]
        size = np.shape(outputs["time"])
        found["energy"] = sum(np.broadcast_to(all_values[program.outputs[part]], size) for part in parts)
    return found
