"""What requests that differ from one another are to the iterations and to the memory of a replica.

Decoding sequences are met in proportion to the steps that they take, so that the mean context of a step weighs each
request by its own length: with G generated tokens it is that of a request of E[G (G - 1)] / E[G - 1]. A chunk attends
to what is cached before its prompt; `Mix.chunk_context` gives prompts of one length as many pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..common.errors import InputError
from .lengths import Lengths
from .mix import Mix, mix_of
from .request import CHUNK

if TYPE_CHECKING:
    from .request import ServingRequest
    from .trace import Moments, Trace


@dataclass(frozen=True)
class Differing:
    """The requests of a workload.

    Attributes:
        asked: the question.
        trace: recorded requests, of whose means the question is.
    """

    asked: ServingRequest
    trace: Trace | None = None

    @cached_property
    def mix(self) -> Mix | None:
        """Its prompts; None where all are alike and nothing is cached."""
        asked = self.asked
        if self.trace is not None:
            return self.trace.mix(asked.chunk or CHUNK)
        return mix_of(asked.workload, asked.prompt, asked.generate, asked.chunk or CHUNK)

    @property
    def generates(self) -> Lengths | Moments:
        """What is generated."""
        if self.trace is not None:
            return self.trace.generates
        return Lengths(self.asked.generate, self.asked.workload.generate_spread)

    @property
    def alike(self) -> bool:
        """Whether all requests are alike, and memory is reserved for what they come to."""
        return self.mix is None and not self.generates.deviation and self.asked.workload.max_generate is None

    @property
    def sent(self) -> float:
        """Mean tokens of a prompt, cached or not."""
        return self.asked.prompt if self.mix is None else self.mix.tokens + self.mix.cached

    @property
    def longest(self) -> tuple[int, int]:
        """Tokens by which the longest prompt passes the given one, and tokens that are generated, reserved ones too."""
        asked, load = self.asked, self.asked.workload
        if self.trace is not None:
            return self.trace.longest_prompt - asked.prompt, max(1, self.trace.longest - self.trace.longest_prompt)
        before = (load.turns - 1) * (asked.prompt - load.prefix + asked.generate)
        spread = Lengths(asked.prompt, load.prompt_spread).highest - asked.prompt
        drawn = Lengths(asked.generate, load.generate_spread)
        return before + spread, max(drawn.highest, load.max_generate or 0)

    def iteration_inputs(self) -> dict[str, float]:
        """Inputs of the iterations."""
        asked, mix, drawn = self.asked, self.mix, self.generates
        steps = drawn.expected - 1
        seen = (drawn.squared - drawn.expected) / steps if steps else 1.0
        if mix is None:
            return {"generate": seen, "context_before": 0.0, "chunk_context": 0.0, "prompt": asked.prompt}
        return {
            "prompt": mix.tokens,
            "chunks": mix.chunks,
            "generate": seen,
            "context_before": mix.cached,
            "chunk_context": mix.chunk_context,
        }

    def memory_inputs(self) -> dict[str, float]:
        """Inputs of the memory of a sequence: what it holds for itself, and what is reserved for it."""
        load = self.asked.workload
        own = max(1.0, self.sent - load.hits * load.prefix)
        return {"prompt": own, "generate": float(load.max_generate or self.asked.generate)}


def check_images(asked: ServingRequest) -> None:
    """Refuse images whose place among the turns of a conversation is not told.

    Raises:
        InputError: images and turns.
    """
    if asked.images and asked.workload.turns > 1:
        raise InputError("turns: images are of a request alone, expected 1 with images")
