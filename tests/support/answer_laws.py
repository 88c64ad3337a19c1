"""Runs drawn at random over the whole catalogue, and which way their answers may move with a system and with work."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import symperf as sf
from support.effort import NIGHTLY
from symperf.codegen.interpret import arrays
from symperf.codegen.interpret import run as interpret
from symperf.common.errors import InputError
from symperf.formulas.language.symbols import SYMBOLS

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from symperf.runs.full_run import FullRun

FACTORS = np.array([1.0, 1.01, 1.3, 2.0, 7.0, 100.0])
"""How much more of something, each against the one before."""
ROUNDING = 1e-12
TRAINED = ("time", "memory")
SERVED = ("time", "prefill", "decode", "memory")
FEW = ("gpt2", "mixtral-8x7b", "mamba2-2.7b")
MODELS = FEW if not NIGHTLY else (
    "llama-2-7b", "llama-3.1-70b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gemma-2-27b",
    "mamba2-2.7b", "gpt2", "qwen2.5-vl-7b",
)  # fmt: skip
"""Of every kind of layer."""
SYSTEMS = ("h100-sxm", "a100-80gb-sxm", "b200-sxm", "tpu-v5p", "mi300x", "gb200-nvl72", "rtx-4090")


def direction(name: str) -> int:
    """Which way the time may move as a number of the system grows: -1 falls, 1 rises, 0 either."""
    entry = SYMBOLS.get(name)
    if entry is None or entry.group not in ("device", "efficiency"):
        return 0
    if name.endswith("_latency"):
        return 1
    if entry.resource is not None or name.endswith("_efficiency") or name == "l2_capacity":
        return -1
    return 0


def moved(run: FullRun, name: str, outputs: tuple[str, ...]) -> dict[str, Any]:
    """The answers as one symbol grows by each of `FACTORS`."""
    program = run.compiled.program
    inputs = {each: value for each, (value, _) in run.bound.items()}
    start = inputs[name] if inputs[name] else 1e-6 * (FACTORS > 1)
    values = interpret(program, inputs | {name: start * FACTORS}, arrays())
    return {each: np.broadcast_to(values[program.outputs[each]], FACTORS.shape) for each in outputs}


def worst_step(values: Any, way: int) -> float:
    """By how much a series goes the wrong way in its worst step, of its value."""
    values = np.asarray(values, dtype=float)
    with np.errstate(invalid="ignore"):
        against = -way * np.diff(values) / np.maximum(np.abs(values[:-1]), 1e-300)
    return float(np.nanmax(against, initial=0.0))


def draw_run(rng: random.Random, kind: str) -> FullRun | None:
    """A run of the catalogue with a plan of random degrees; None where it cannot be."""
    tp, pp, dp = (rng.choice((1, 1, 2, 4, 8)) for _ in range(3))
    model, system = load_model(rng.choice(MODELS)), load_system(rng.choice(SYSTEMS))
    fields: dict[str, Any] = {"tp": tp, "pp": pp, "dp": dp}
    try:
        if kind == "infer":
            work = {"batch": rng.choice((1, 8, 64)), "prompt": rng.choice((1, 128, 2048)), "generate": 64}
            return sf.inference(model, system, sf.Plan(tp=tp, pp=pp), **work)
        fields |= {
            "micro_batch": rng.choice((1, 2)),
            "zero": rng.choice((0, 1, 3)),
            "recompute": rng.choice(("none", "full")),
            "sequence_parallel": rng.random() < 0.3 and tp > 1,
            "overlap_dp": rng.choice((0.0, 0.5, 1.0)),
        }
        return sf.training(model, system, sf.Plan(**fields), batch=32 * dp, sequence=rng.choice((128, 2048, 8192)))
    except InputError:
        return None


@cache
def load_model(name: str) -> sf.Model:
    """A model of the catalogue, read once."""
    return sf.Model.load(name)


@cache
def load_system(name: str) -> sf.System:
    """A system of the catalogue, read once."""
    return sf.System.load(name)


def against_system(run: FullRun) -> Iterator[tuple[str, str, float]]:
    """What gets worse as the system gets better: the symbol, the answer, and by how much."""
    outputs = SERVED if "prefill" in run.compiled.program.outputs else TRAINED
    for name in run.compiled.program.inputs:
        if way := direction(name):
            for output, values in moved(run, name, outputs).items():
                if (wrong := worst_step(values, way)) > ROUNDING:
                    yield name, output, wrong


def against_work(run: FullRun, names: tuple[str, ...]) -> Iterator[tuple[str, str, float]]:
    """What gets better as there is more to do: the work, the answer, and by how much."""
    outputs = SERVED if "prefill" in run.compiled.program.outputs else TRAINED
    for name in names:
        if name not in run.bound:
            continue
        try:
            more = run.bind(**{name: 2 * int(run.bound[name][0])})
        except InputError:
            continue
        for output in outputs:
            before, after = run.value(output), more.value(output)
            if before > after * (1 + ROUNDING):
                yield name, output, before / after - 1
