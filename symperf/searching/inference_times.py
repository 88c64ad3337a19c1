"""Times of iterations for many numbers of sequences at once: a search asks for nearly all of them.

The same instructions as those of `batching.engine`, on a block of whole numbers of sequences instead of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..batching.engine import ModelTimes
from ..batching.program import Evaluator, compiled_iterations
from ..batching.run import Serving
from ..codegen.interpret import arrays, floats, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..generation.run import InferenceRun

BLOCK = 256
"""Whole numbers of sequences that are computed together."""
SINGLE = 6
"""Iterations that are computed one by one before blocks pay."""


@dataclass(frozen=True)
class BlockTimes(ModelTimes):
    """Iterations of a model without a draft model."""

    blocks: dict[tuple[float, int], list[float]] = field(default_factory=dict)

    def _of(self, kind: str, sequences: float, tokens: float) -> float:
        if not sequences or sequences % 1:
            return super()._of(kind, sequences, tokens)
        if (sequences, tokens) in self.known or len(self.known) < SINGLE:
            return super()._of(kind, sequences, tokens)
        number, place = divmod(int(sequences), BLOCK)
        if (tokens, number) not in self.blocks:
            some = np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=float)
            some = np.maximum(some, 1.0)
            groups = np.minimum(float(self.groups), some)
            found = block(self.target, kind, decoding=some / groups, chunk_tokens=tokens, groups_in_flight=groups)
            self.blocks[tokens, number] = np.broadcast_to(found, some.shape).tolist()
        return self.blocks[tokens, number][place]


class SharedEvaluator(Evaluator):
    """An evaluator that finds once for each program what depends on the inputs that change."""

    prepared: ClassVar[dict[int, tuple[Program, set[int], dict[str, Any]]]] = {}

    def __init__(self, program: Program, inputs: Mapping[str, float]) -> None:
        known = self.prepared.get(id(program))
        if known is None:
            super().__init__(program, inputs)
            self.prepared[id(program)] = program, self.varies, self.plans
            return
        self.program, self.inputs = program, dict(inputs)
        self.arithmetic = floats()
        self.start = run(program, self.inputs, self.arithmetic)
        _, self.varies, self.plans = known


class SearchedServing(Serving):
    """A serving system whose iterations are computed by blocks."""

    def _evaluator(self, run: InferenceRun) -> Evaluator:
        own = {"chunks": self.chunks, "chunk": self.asked.chunk, "decoding": 1, "chunk_tokens": 1, "step_tokens": 1}
        inputs = {name: value for name, (value, _) in run.bound.items()} | own | {"groups_in_flight": 1}
        return SharedEvaluator(compiled_iterations(run.structure).program, inputs)

    def times(self, length: int) -> ModelTimes:
        """The iterations; a search has no draft model."""
        assert not length
        return BlockTimes(self.evaluators[0], self.plan.pp)


def block(evaluator: Evaluator, output: str, **values: Any) -> Any:
    """An output of a program at arrays of some inputs."""
    program, forward = evaluator.program, arrays().forward
    found = evaluator.start.copy()
    for name, value in ({"step_tokens": 1.0} | values).items():
        if name in program.inputs:
            found[program.inputs[name]] = value
    for position, _, operands in evaluator._plan(output):
        operation = program.instructions[position][0]
        found[position] = forward[operation](*[found[operand] for operand in operands])
    return found[program.outputs[output]]
