"""The program of a real training step, and how tests run programs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from symperf import Model, Plan, System
from symperf.codegen.interpret import floats, run
from symperf.codegen.lower import lower
from symperf.runs.training_run import Run

if TYPE_CHECKING:
    from symperf.codegen.program import Program


@cache
def step() -> tuple[Program, dict[str, float]]:
    """The training step of GPT-3 on 64 devices, and the values of its inputs."""
    plan = Plan(tp=8, pp=8, vpp=3, recompute="selective", sequence_parallel=True)
    found = Run(Model.load("gpt3-175b"), System.load("a100-80gb-sxm"), plan, batch=64, sequence=2048)
    return found.compiled.program, {name: float(value) for name, (value, _) in found.bound.items()}


def values(program: Program, inputs: dict[str, float]) -> dict[str, Any]:
    """Every output in floats."""
    found = run(program, inputs, floats())
    return {name: found[position] for name, position in program.outputs.items()}


def lowered(**outputs: Any) -> Program:
    """A program of these expressions."""
    return lower([], outputs)


def operations(program: Program) -> int:
    """Instructions that compute."""
    return sum(operation not in ("input", "constant", "let") for operation, *_ in program.instructions)
