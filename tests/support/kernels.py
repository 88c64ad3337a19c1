"""What the tests of kernels share: random programs and exact evaluation."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from symperf.codegen.interpret import exact, run
from symperf.codegen.program import Program

OPERATIONS = ("add", "subtract", "multiply", "divide", "max", "min", "ceil_div", "above_one")


def random_program(seed: int, inputs: str = "abcde", size: int = 40) -> Program:
    """A random program over some inputs, positive for positive inputs; its output room may be below 0."""
    draw = random.Random(seed)
    program = Program()
    for name in inputs:
        program.inputs[name] = len(program.instructions)
        program.instructions.append(("input", name))
    program.instructions += [("constant", 2), ("constant", 3.5)]
    whole = list(program.inputs.values())
    while len(program) < size:
        operation = draw.choice(OPERATIONS)
        if operation == "subtract":  # a + b - b/2 stays positive
            a, b = draw.randrange(len(program)), draw.randrange(len(program))
            half = len(program)
            program.instructions += [("divide", b, len(inputs)), ("add", a, b), ("subtract", half + 1, half)]
        elif operation == "ceil_div":  # of whole numbers, as in a cost model
            a, b = draw.choice(whole), draw.choice(whole[: len(inputs)])
            program.instructions.append(("ceil_div", a, b))
            whole.append(len(program) - 1)
        elif operation == "above_one":
            program.instructions.append(("above_one", draw.choice(whole)))
        else:
            recent = range(max(0, len(program) - 12), len(program))
            small = len(inputs) + 2 if operation in ("multiply", "divide") else len(program)  # else values explode
            program.instructions.append((operation, draw.choice(recent), draw.randrange(small)))
    last = len(program)
    program.instructions += [("add", last - 1, last - 5), ("subtract", last - 2, last - 7)]
    program.outputs = {"y": last, "z": last - 3, "room": last + 1}
    program.check()
    return program


def values_of(program: Program, names: Any, points: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs at points by NumPy's plain interpreter, of whole arrays."""
    from symperf.codegen.interpret import arrays

    with np.errstate(all="ignore"):
        found = run(program, points, arrays())
    shape = np.broadcast_shapes(*[np.shape(value) for value in points.values()])
    return {name: np.broadcast_to(found[program.outputs[name]], shape) for name in names}


def exact_values(program: Program, name: str, points: list[dict[str, Any]]) -> list[Any]:
    """An output as exact fractions."""
    return [run(program, point, exact())[program.outputs[name]] for point in points]
