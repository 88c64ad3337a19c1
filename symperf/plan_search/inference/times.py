"""Times of iterations for many numbers of sequences at once: a search asks for nearly all of them.

The same instructions as those of `batching.engine`, on a block of whole numbers of sequences instead of one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...codegen.interpret import arrays
from ...infer.room import parts_program
from ...serve.engine import ModelTimes
from ...serve.program import compile_iterations
from ...serve.serving import Serving
from .shared import SharedSteady

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...infer.room import Room
    from ...runs.inference_run import InferenceRun
    from ...serve.program import Evaluator
    from .shared import Shared, SharedEvaluator

Held = TypeVar("Held")
BLOCK = 256
"""Whole numbers of sequences that are computed together."""
SINGLE = 6
"""Iterations that are computed one by one before blocks pay."""


@dataclass(frozen=True)
class BlockTimes(ModelTimes):
    """Iterations of a model, and of what drafts for it."""

    blocks: dict[tuple[float, int, float], list[float]] = field(default_factory=dict)

    def _of(self, kind: str, sequences: float, tokens: float, ranks: float) -> float:
        if not sequences or sequences % 1:
            return super()._of(kind, sequences, tokens, ranks)
        if (sequences, tokens, ranks) in self.known or len(self.known) < SINGLE:
            return super()._of(kind, sequences, tokens, ranks)
        number, place = divmod(int(sequences), BLOCK)
        if (tokens, number, ranks) not in self.blocks:
            some = np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=float)
            some = np.maximum(some, 1.0)
            groups = np.minimum(float(self.groups), some)
            values = {"decoding": some / groups, "chunk_tokens": tokens, "groups_in_flight": groups}
            values["prefilling_ranks"] = ranks
            found = block(self.target, kind, **values, step_tokens=self.draft_length + 1.0)
            if self.draft is not None:
                found = found + block(self.draft, kind, **values, step_tokens=self.draft_reads)
                found = found + (self.draft_length - 1) * block(self.draft, "decode", **values)
            self.blocks[tokens, number, ranks] = np.broadcast_to(found, some.shape).tolist()
        return self.blocks[tokens, number, ranks][place]


class SearchedServing(Serving):
    """A serving system whose iterations are computed by blocks, and shared with equal replicas."""

    def __init__(self, shared: Shared, *arguments: Any, **options: Any) -> None:
        self.shared = shared
        super().__init__(*arguments, **options)

    def _evaluator(self, run: InferenceRun) -> SharedEvaluator:
        inputs = self._inputs(run)
        return self.shared.evaluator(compile_iterations(run.structure).program, inputs)

    @property
    def _key(self) -> tuple[Any, ...]:
        keys = (each.key for each in self.evaluators)  # type: ignore[attr-defined]
        return (*keys, self.draft_length, self.run.stack.apart)

    def times(self, length: int) -> ModelTimes:
        """The iterations with a draft length, by blocks."""
        usual = super().times(length)
        assert isinstance(usual, ModelTimes)
        fields = {each.name: getattr(usual, each.name) for each in dataclasses.fields(usual) if each.name != "known"}
        return get_or_make(self.shared.times, (*self._key, length, self.plan.pp), lambda: BlockTimes(**fields))

    def room(self, length: int, **values: float) -> Room:
        """What fits on the devices of a replica, as `Serving` tells it: memory has symbols that times have not."""
        program, bound = parts_program(self.run.structure), self.run.bound
        read = (bound[name][0] for name in (*program.inputs, "memory_capacity", "memory_utilization") if name in bound)
        capped = self.asked.workload.max_num_seqs, length
        key = (self.run.structure, self.plan.micro_batch, self.chunk, capped, *read, *values.items())
        return get_or_make(self.shared.rooms, key, lambda: super(SearchedServing, self).room(length, **values))

    @cached_property
    def steady(self) -> SharedSteady | None:
        """The steady states of a replica; None where not one sequence fits."""
        if not self.fits:
            return None
        engine = self.engine(self.draft_length)
        request = engine.prompt, engine.generate, engine.chunks, engine.chunk_prompts
        numbers = (*request, engine.steps, engine.groups, engine.limit, engine.limited_by, engine.ranks)
        return get_or_make(self.shared.states, (*self._key, *numbers), lambda: SharedSteady(engine))


def get_or_make(held: dict[Any, Held], key: Any, make: Callable[[], Held]) -> Held:
    """What is held under a key, made where it is not there yet."""
    if key not in held:
        held[key] = make()
    return held[key]


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
