"""What a replica is to the steady state: the times of its iterations, the lengths of its requests, its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from .lengths import Lengths
from .program import form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .mix import Mix
    from .program import Evaluator


WAY = ("request_latency", "tokenizer_latency", "crowd_latency")
"""Symbols of a request's way outside the engine."""


class Times(Protocol):
    """Seconds of the iterations of a replica.

    Sequences and tokens are means, and need not be whole; fewer than one sequence counts as one.
    """

    def decode(self, sequences: float) -> float:
        """An iteration in which the replica decodes so many sequences."""
        ...

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        """One that processes so many prompt tokens as well, in each group of a pipeline.

        Args:
            sequences: that the replica decodes.
            tokens: of prompts.
            ranks: part of the replicas in lock step that prefill.
        """
        ...

    def prefill(self, tokens: float, ranks: float = 1.0) -> float:
        """One of prompt tokens alone."""
        ...


@dataclass(frozen=True)
class Engine:
    """A replica and its requests.

    Attributes:
        times: seconds of its iterations.
        prompt: tokens of a prompt that are prefilled; a mean.
        generate: tokens that a request generates.
        steps: decode steps that a request takes; fewer than tokens where they are drafted.
        chunks: K, iterations that a prompt takes.
        chunk_prompts: J, prompts that an iteration may prefill.
        groups: p, groups in flight of a pipeline.
        limit: N, sequences that may run at once.
        generate_ratio: r of what is generated, which is spread evenly over (1 - r) to (1 + r) times `generate`.
        mix: the prompts, where they differ; then `prompt`, `chunks` and `chunk_prompts` are means.
        limited_by: what sets N: "kv_cache" or "max_num_seqs".
        chunk: prompt tokens that an iteration may process; by default a full chunk of mean prompts.
        ranks: replicas in lock step, which pass the same experts.
        way: what a request takes outside the iterations, by the names of `WAY`.
    """

    times: Times
    prompt: float
    generate: int
    steps: float
    chunks: float
    chunk_prompts: float
    groups: int
    limit: int
    generate_ratio: float = 0.0
    chunk: float | None = None
    limited_by: str = "kv_cache"
    ranks: int = 1
    mix: Mix | None = None
    way: Mapping[str, float] = field(default_factory=dict)

    def way_time(self, present: float) -> float:
        """Seconds of a request outside the iterations, before its first token, with so many in flight."""
        if not any(self.way.values()):
            return 0.0
        return form("request_way_time", prompt=self.prompt, concurrency=present, **self.way)

    @property
    def apart(self) -> bool:
        """Whether prompts are prefilled in iterations of their own, while no sequence decodes."""
        return getattr(self.times, "apart", False)

    @property
    def generates(self) -> Lengths:
        """The law of what is generated."""
        return Lengths(self.generate, self.generate_ratio)

    @property
    def variation(self) -> float:
        """Squared coefficient of variation of the iterations that a prompt takes."""
        return 0.0 if self.mix is None else self.mix.variation

    @property
    def chunk_size(self) -> float:
        """Prompt tokens that an iteration may process."""
        return self.whole_chunk if self.chunk is None else self.chunk

    @property
    def whole_chunk(self) -> float:
        """Prompt tokens of a full chunk."""
        return self.prompt * self.chunk_prompts / self.chunks


@dataclass(frozen=True)
class ModelTimes:
    """Iterations of a model; with a draft model, each is a step that verifies, after the drafts.

    Attributes:
        target: the compiled iterations of the model.
        groups: of the pipeline.
        draft: those of the draft model.
        draft_length: k, tokens drafted for each step.
        draft_reads: tokens of a sequence that the first draft of a step processes; a head has those of the step.
        apart: prompts are prefilled in iterations of their own: one that also decodes is one of each kind.
    """

    target: Evaluator
    groups: int
    draft: Evaluator | None = None
    draft_length: int = 0
    draft_reads: float = 1.0
    apart: bool = False
    known: dict[tuple[float, float, float], float] = field(default_factory=dict)

    def decode(self, sequences: float) -> float:
        """An iteration that only decodes: k steps of the draft model, and one for k + 1 tokens of each sequence."""
        return self._between("decode", sequences, 0.0)

    def mixed(self, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        """One that prefills too; the draft model processes the chunk in its first step."""
        if self.apart:
            return self.decode(sequences) + self.prefill(tokens, ranks)
        return self._between("mixed", sequences, tokens, ranks)

    def prefill(self, tokens: float, ranks: float = 1.0) -> float:
        """One that only prefills, in both models."""
        return self._of("prefill", 0.0, tokens, ranks)

    def _between(self, kind: str, sequences: float, tokens: float, ranks: float = 1.0) -> float:
        """The time of a mean number of sequences: between whole numbers, the mean of those below and above."""
        low = max(math.floor(sequences), 1)
        part = max(sequences - low, 0.0)
        found = self._of(kind, float(low), tokens, ranks)
        return found + part * (self._of(kind, low + 1.0, tokens, ranks) - found) if part else found

    def _of(self, kind: str, sequences: float, tokens: float, ranks: float) -> float:
        if (sequences, tokens, ranks) not in self.known:
            groups = min(float(self.groups), max(1.0, sequences))
            values = {"decoding": sequences / groups, "chunk_tokens": tokens, "groups_in_flight": groups}
            values["prefilling_ranks"] = ranks
            total = self.target(kind, **values, step_tokens=self.draft_length + 1.0)
            if self.draft is not None:
                total += self.draft(kind, **values, step_tokens=self.draft_reads)
                if sequences:
                    total += (self.draft_length - 1) * self.draft("decode", **values, step_tokens=1.0)
            self.known[sequences, tokens, ranks] = total
        return self.known[sequences, tokens, ranks]
