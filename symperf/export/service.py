"""What a server serves, beside its plan: options that only servers have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROLES: Final = ("prefill", "decode")
"""Of a server that does one of the two."""
HALF: Final = ("bf16", "fp16")
"""Formats of a cache that a server has by default."""


@dataclass(frozen=True)
class Service:
    """The requests of a server and how it runs them.

    Attributes:
        model: as the server is told it: an id of the hub, or a path.
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        sequences: that a replica may hold at once.
        decoding: of them decode in the mean, beside a chunk of prompts.
        chunk: prompt tokens of an iteration.
        kv_precision: format of the cache; None: the server's choice.
        role: "prefill" or "decode" of a server that does this alone.
        routed: whether the model has experts.
        utilization: part of the memory that the server takes, as it counts it; None: its default.
    """

    model: str
    prompt: int
    generate: int
    sequences: int
    decoding: int
    chunk: int
    kv_precision: str | None = None
    role: str | None = None
    routed: bool = False
    utilization: float | None = None

    @property
    def length(self) -> int:
        """Tokens of a whole sequence."""
        return self.prompt + self.generate

    @property
    def budget(self) -> int:
        """Tokens of an iteration, where those of sequences that decode are counted with the chunk's."""
        if self.role == "decode":
            return self.sequences
        return self.chunk if self.role else self.chunk + self.decoding

    @property
    def running(self) -> int:
        """Sequences at once, where a budget of tokens holds at least one of each."""
        return min(self.sequences, self.budget)
