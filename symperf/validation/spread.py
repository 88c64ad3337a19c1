"""How sure a prediction is: all ends of all spreads in one pass over the program, as an array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import arrays, floats
from ..evaluation.causes import group_name, whole
from ..evaluation.uncertainty import causes_of, kind_of, spreads
from .chosen import chosen_symbols, goes_with_chosen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..codegen.program import Program
    from ..evaluation.base_run import BaseRun
    from ..evaluation.causes import Steps

RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu")
"""Keys of what is compared and falls as the time grows."""
OUTPUTS = {"prefill_s": "prefill", "time_per_token_s": "time_per_token"}
"""Keys of what is compared -> output of the program whose interval it has; of all others that of the time."""
NUDGE = 1.01
"""Times that a symbol grows to see with what power a time goes with it."""
WITHOUT = ("memory_bytes", "share_of_activations")
"""Keys of what no efficiency changes."""


@dataclass(frozen=True)
class Spread:
    """How sure a prediction is.

    Attributes:
        low: the lower end of its 90 % interval.
        high: the upper end.
        causes: how far each cause moves the logarithm of the time, downwards and upwards.
        chosen: with what power the time goes with constants that were chosen when errors of steps were known.
    """

    low: float
    high: float
    causes: Mapping[str, Steps]
    chosen: float


def spread_of(run: BaseRun, quantity: str, predicted: float, kind: str = "") -> Spread | None:
    """How sure a prediction is, by the mechanism of `BaseRun.interval`; None of memory, which no efficiency changes.

    What is no time has the interval of the time, a rate the other way round.

    Args:
        run: that predicts.
        quantity: the JSON key of what is predicted.
        predicted: in the unit of the quantity.
        kind: of the answer, where it is not that of the output.
    """
    if quantity in WITHOUT:
        return None
    name = OUTPUTS.get(quantity, "time")
    name = name if name in run.compiled.program.outputs else "time"
    kind = kind or kind_of(run, name)
    moved, power = responses(run, name, chosen_symbols(run))
    causes = causes_of(run, moved, kind, group_of(run))
    down, up = (math.exp(step) for step in whole(causes))
    low, high = (predicted / up, predicted * down) if quantity in RATES else (predicted / down, predicted * up)
    return Spread(low, high, causes, 1.0 if goes_with_chosen(kind) else power)


def group_of(run: BaseRun) -> str:
    """The name of the group of calibration rows that a run would be of."""
    return group_name(getattr(getattr(run, "stack", None), "name", ""), run.system.name, run.model.name)


def responses(run: BaseRun, name: str, also: Sequence[str] = ()) -> tuple[dict[str, Steps], float]:
    """How far each symbol with a spread moves the logarithm of an output, and with what power it goes with others.

    Args:
        run: of which the output is.
        name: of the output.
        also: symbols whose powers are summed: what part of the output goes with them.
    """
    import numpy as np

    program, moved = run.compiled.program, spreads(run)
    columns = 1 + 2 * len(moved) + len(also)
    inputs: dict[str, Any] = {symbol: value for symbol, (value, _) in run.bound.items()}
    for number, (symbol, far) in enumerate(moved.items()):
        values = np.full(columns, inputs[symbol], dtype=np.float64)
        values[1 + 2 * number : 3 + 2 * number] = far
        inputs[symbol] = values
    for number, symbol in enumerate(also):
        values = np.array(np.broadcast_to(inputs[symbol], (columns,)), dtype=np.float64)
        values[1 + 2 * len(moved) + number] *= NUDGE
        inputs[symbol] = values
    found = np.broadcast_to(evaluate_instruction(program, inputs, program.outputs[name]), (columns,))
    logs = np.log(found[1:] / found[0])
    steps = logs[: 2 * len(moved)].reshape(-1, 2)
    power = float(np.sum(np.abs(logs[2 * len(moved) :]))) / math.log(NUDGE)
    both = {
        symbol: (max(0.0, -float(min(pair))), max(0.0, float(max(pair))))
        for symbol, pair in zip(moved, steps, strict=True)
    }
    return both, power


def evaluate_instruction(program: Program, inputs: dict[str, Any], output: int) -> Any:
    """The value of one instruction; arrays only where an array goes in."""
    plain, wide = floats().forward, arrays().forward
    values: dict[int, Any] = {}
    for position in needed_positions(_Identity(program), output):
        operation, *operands = program.instructions[position]
        if operation == "input":
            values[position] = inputs[operands[0]]
        elif operation == "constant":
            values[position] = float(operands[0])
        else:
            parts = [values[operand] for operand in operands]
            forward = plain if all(isinstance(part, int | float) for part in parts) else wide
            values[position] = forward[operation](*parts)
    return values[output]


class _Identity:
    """A program as a key: by what it is, not by what it holds."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __hash__(self) -> int:
        return id(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.program is self.program


@lru_cache(maxsize=256)
def needed_positions(key: _Identity, output: int) -> tuple[int, ...]:
    """The positions that an instruction depends on, in order."""
    wanted, stack = {output}, [output]
    while stack:
        operation, *operands = key.program.instructions[stack.pop()]
        if operation not in ("input", "constant"):
            fresh = set(operands) - wanted
            wanted |= fresh
            stack += fresh
    return tuple(sorted(wanted))
