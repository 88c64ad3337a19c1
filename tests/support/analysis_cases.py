"""What tests of the analysis share: subjects at random points, and a dense scan that knows nothing of exact pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from support.points import STRUCTURES, points
from support.run_cases import RUNS
from symperf.analysis.subject import Subject
from symperf.codegen.builder import eliminate_dead_code
from symperf.codegen.interpret import adjoints, arrays, run
from symperf.codegen.lower import lower
from symperf.formulas.language.symbols import strip_units
from symperf.train.compile import compile_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    import symperf as sf

REAL = (
    "memory_bandwidth",
    "matrix_rate",
    "vector_rate",
    "l2_bandwidth",
    "l2_capacity",
    "scale_up_bandwidth",
    "scale_up_latency",
    "scale_up_half_bytes",
    "scale_out_bandwidth",
    "scale_out_latency",
    "launch_latency",
    "activation_bytes",
    "weight_bytes",
    "matrix_efficiency",
)
WHOLE = ("sequence", "batch", "tp", "dp", "pp", "micro_batch", "hidden_size", "num_layers", "vocab_size")


@cache
def made(name: str) -> sf.Run:
    """A run that no test changes."""
    return RUNS[name]()


def subject_at(name: str, seed: int, regime: str = "even", of: str = "time") -> Subject:
    """The output of a structure at one random point."""
    structure = STRUCTURES[name]
    whole = compile_step(structure)
    batch = points(seed, regime, size=1, interleaved=structure.schedule == "interleaved")
    position = whole.program.outputs[of]
    alone = eliminate_dead_code(whole.program, {of: position})
    values = {symbol: float(batch[symbol][0]) for symbol in alone.inputs}
    return Subject(alone, of, values, {n: r for n, r in whole.resources.items() if n in alone.inputs})


def subject_of_formula(expr: Any, values: Mapping[str, float], resources: Mapping[str, str] | None = None) -> Subject:
    """A formula as a subject."""
    program = lower([], {"time": strip_units(expr)})
    return Subject(program, "time", {name: float(values[name]) for name in program.inputs}, dict(resources or {}))


@dataclass(frozen=True)
class Flip:
    """A maximum or minimum that is seen to switch."""

    position: int
    x: float


def scan(subject: Subject, symbol: str, low: float, high: float, count: int = 1501) -> list[Flip]:
    """Every switch of a maximum or minimum that matters, as floats on a dense grid show it, bisected to the last bit.

    Branches that agree to 1e-10 at a grid point are left aside: floats cannot tell which of them wins.
    """
    xs = np.geomspace(low, high, count)
    values = evaluated(subject, symbol, xs)
    slopes = adjoints(subject.program, values, subject.position, arrays())
    found = []
    for position, (operation, *operands) in enumerate(subject.program.instructions):
        if operation not in ("max", "min") or position not in slopes:
            continue
        first, second = (np.broadcast_to(values[operand], xs.shape) for operand in operands)
        clear = np.abs(first - second) > 1e-10 * np.maximum(np.abs(first), np.abs(second))
        matters = np.broadcast_to(slopes[position] != 0, xs.shape)
        side = first < second
        flips = (side[1:] != side[:-1]) & clear[1:] & clear[:-1] & (matters[1:] & matters[:-1])
        for k in np.flatnonzero(flips):
            x = bisected(subject, symbol, operands, xs[k], xs[k + 1])
            if matters_beside(subject, symbol, position, x):
                found.append(Flip(position, x))
    return found


def matters_beside(subject: Subject, symbol: str, position: int, x: float) -> bool:
    """Whether the output depends on an instruction a billionth to both sides of a point.

    Between two points of the grid at which it matters, others may switch it off and on again.
    """
    values = evaluated(subject, symbol, np.array([x * (1 - 1e-9), x * (1 + 1e-9)]))
    slopes = adjoints(subject.program, values, subject.position, arrays())
    return bool(np.all(slopes.get(position, 0.0) != 0))


def bisected(subject: Subject, symbol: str, operands: Any, low: float, high: float) -> float:
    """Where two operands change their order."""
    for _ in range(8):
        xs = np.linspace(low, high, 65)
        values = evaluated(subject, symbol, xs)
        side = np.broadcast_to(values[operands[0]] < values[operands[1]], xs.shape)
        k = int(np.flatnonzero(side != side[0])[0])
        low, high = float(xs[k - 1]), float(xs[k])
        if high - low <= 1e-15 * high:
            break
    return high


def evaluated(subject: Subject, symbol: str, xs: Any) -> list[Any]:
    """Every instruction at values of a symbol."""
    return run(subject.program, subject.values | {symbol: xs}, arrays())


def output_at(subject: Subject, symbol: str, xs: Any) -> Any:
    """The output at values of a symbol."""
    return np.broadcast_to(evaluated(subject, symbol, np.asarray(xs, dtype=float))[subject.position], np.shape(xs))
