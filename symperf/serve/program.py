"""Compiled iterations and closed forms of serving, from the cache, and their evaluation at many points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import adjoints, floats, run
from ..codegen.program import Program
from ..common.artefacts import load_or_make

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..infer.structure import InferenceStructure

VARIABLES = ("decoding", "chunk_tokens", "step_tokens", "groups_in_flight", "prefilling_ranks")
"""Inputs that differ from iteration to iteration."""


@dataclass(frozen=True)
class Iterations:
    """A structure's iterations, compiled.

    Attributes:
        program: outputs are "decode", "mixed" and "prefill" (seconds), "memory/..." and "cache/..." (bytes).
        resources: for each input that is a rate or a latency, its resource.
    """

    program: Program
    resources: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"program": self.program.to_json(), "resources": self.resources}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Iterations:
        """What `to_json` wrote."""
        return cls(Program.from_json(data["program"]), dict(data["resources"]))


@lru_cache(maxsize=64)
def compile_iterations(structure: InferenceStructure, *, differing: bool = False) -> Iterations:
    """The compiled iterations of a structure, kept in the cache folder like those of an inference.

    Args:
        structure: of the inference.
        differing: whether prompts differ, or have cached tokens before them.
    """

    def make() -> Iterations:
        from .build import build

        return build(structure, differing=differing)

    name = "serving of differing prompts" if differing else "serving"
    return load_or_make(name, structure.key(), make, Iterations.to_json, Iterations.from_json)


@lru_cache(maxsize=1)
def _forms() -> dict[str, Program]:
    def make() -> dict[str, Program]:
        from .build import forms

        return forms()

    def to_json(programs: dict[str, Program]) -> dict[str, Any]:
        return {name: program.to_json() for name, program in programs.items()}

    def from_json(data: dict[str, Any]) -> dict[str, Program]:
        return {name: Program.from_json(program) for name, program in data.items()}

    return load_or_make("serving forms", "", make, to_json, from_json)


def form(name: str, **values: float) -> float:
    """The value of a registered formula of serving at numbers, without SymPy."""
    program = _forms()[name]
    return float(run(program, values, floats())[program.outputs[name]])


class Evaluator:
    """A program of which few inputs change: what does not depend on them is computed once.

    Args:
        program: the program.
        inputs: the value of every input; those of `VARIABLES` are replaced at each call.
    """

    def __init__(self, program: Program, inputs: Mapping[str, float]) -> None:
        self.program, self.inputs = program, dict(inputs)
        self.arithmetic = floats()
        self.start = run(program, self.inputs, self.arithmetic)
        varies = {position for name, position in program.inputs.items() if name in VARIABLES}
        for position, (operation, *operands) in enumerate(program.instructions):
            if operation not in ("input", "constant") and varies & set(operands):
                varies.add(position)
        self.varies = varies
        self.plans: dict[str, list[tuple[int, Any, tuple[int, ...]]]] = {}

    def __call__(self, output: str, **values: float) -> float:
        """The value of an output."""
        found = self.start.copy()
        for name, value in values.items():
            if name in self.program.inputs:
                found[self.program.inputs[name]] = value
        for position, function, operands in self._plan(output):
            found[position] = function(*[found[operand] for operand in operands])
        return float(found[self.program.outputs[output]])

    def _plan(self, output: str) -> list[tuple[int, Any, tuple[int, ...]]]:
        if output not in self.plans:
            needed, stack = set(), [self.program.outputs[output]]
            while stack:
                position = stack.pop()
                operation, *operands = self.program.instructions[position]
                if position in self.varies and position not in needed and operation != "input":
                    needed.add(position)
                    stack += operands
            instructions = self.program.instructions
            forward = self.arithmetic.forward
            self.plans[output] = [
                (position, forward[instructions[position][0]], tuple(instructions[position][1:]))
                for position in sorted(needed)
            ]
        return self.plans[output]

    def shares(self, output: str, resources: Mapping[str, str], **values: float) -> dict[str, float]:
        """The share of each resource in an output that is a time: its elasticities in latencies and rates."""
        inputs = self.inputs | values
        all_values = run(self.program, inputs, self.arithmetic)
        at = self.program.outputs[output]
        slopes = adjoints(self.program, all_values, at, self.arithmetic)
        found = dict.fromkeys(sorted(set(resources.values())), 0.0)
        for name, resource in resources.items():
            position = self.program.inputs[name]
            sign = 1 if "_latency" in name else -1
            found[resource] += sign * slopes.get(position, 0.0) * all_values[position] / all_values[at]
        assert math.isclose(sum(found.values()), 1, rel_tol=1e-6)
        return found
