"""The interval of a prediction: all ends of all spreads in one pass over the program, as an array."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import arrays, floats
from ..evaluation.uncertainty import spreads

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..evaluation.base_run import BaseRun

RATES = ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "tflops_per_device", "mfu")
"""Keys of what is compared and falls as the time grows."""
OUTPUTS = {"prefill_s": "prefill", "time_per_token_s": "time_per_token"}
"""Keys of what is compared -> output of the program whose interval it has; of all others that of the time."""
WITHOUT = ("memory_bytes", "share_of_activations")
"""Keys of what no efficiency changes."""


def ends(run: BaseRun, quantity: str, predicted: float) -> tuple[float, float] | None:
    """The ends of the 90 % interval of a prediction; None of memory, which no efficiency changes.

    What is no time has the interval of the time, a rate the other way round.
    """
    if quantity in WITHOUT:
        return None
    name = OUTPUTS.get(quantity, "time")
    down, up = relative(run, name if name in run.compiled.program.outputs else "time")
    return (predicted / up, predicted / down) if quantity in RATES else (predicted * down, predicted * up)


def relative(run: BaseRun, name: str) -> tuple[float, float]:
    """The ends of the interval of an output over its value: those of `BaseRun.interval`."""
    import numpy as np

    program, moved = run.compiled.program, spreads(run)
    columns = 1 + 2 * len(moved)
    inputs: dict[str, Any] = {symbol: value for symbol, (value, _) in run.bound.items()}
    for number, (symbol, far) in enumerate(moved.items()):
        values = np.full(columns, inputs[symbol], dtype=np.float64)
        values[1 + 2 * number : 3 + 2 * number] = far
        inputs[symbol] = values
    found = np.broadcast_to(evaluate_instruction(program, inputs, program.outputs[name]), (columns,))
    steps = np.log(found[1:] / found[0]).reshape(-1, 2)
    up = math.sqrt(float(np.sum(np.max(steps, axis=1, initial=0.0) ** 2)))
    down = math.sqrt(float(np.sum(np.min(steps, axis=1, initial=0.0) ** 2)))
    return math.exp(-down), math.exp(up)


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
