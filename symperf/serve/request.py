"""What is asked of a serving system, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from ..infer.binding import CHUNK as CHUNK
from ..plans.plan import positive_integer
from .speculation import checked_acceptance
from .workload import Workload

if TYPE_CHECKING:
    from ..models.sounds import Sound
    from ..models.towers import Image

LONGEST_DRAFT = 64


@dataclass(frozen=True)
class ServingRequest:
    """The requests, their targets and the policy.

    Attributes:
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        ttft: longest mean time to the first token, in seconds; None: any.
        tpot: longest mean time of each later token, in seconds; None: any.
        load: requests that arrive in a second, at all replicas; None: the largest is sought.
        chunk: prompt tokens that an iteration may process; None: the default of the serving software.
        acceptance: probability that a drafted token is accepted once those before it are; or one for each position,
            of which the last holds from there on.
        draft_length: tokens drafted for each step.
        images: of each request, and recordings, whose tokens join those of the prompt.
        workload: how else requests come, and how they differ.
    """

    prompt: int
    generate: int
    ttft: float | None = None
    tpot: float | None = None
    load: float | None = None
    chunk: int | None = None
    acceptance: float | tuple[float, ...] | None = None
    draft_length: int | None = None
    images: tuple[Image | Sound, ...] = ()
    workload: Workload = field(default_factory=Workload)

    def __post_init__(self) -> None:
        for name in ("prompt", "generate", *(() if self.chunk is None else ("chunk",))):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name in ("ttft", "tpot"):
            if (value := getattr(self, name)) is not None and not (is_finite(value) and value > 0):
                raise InputError(f"{name}: found {quote(value)}, expected seconds above 0")
        if self.load is not None and not (is_finite(self.load) and self.load >= 0):
            raise InputError(f"load: found {quote(self.load)}, expected requests a second, 0 or more")
        self.workload.check(self.prompt, self.generate, self.load)

    def check_draft(self, *, drafted: bool) -> None:
        """Refuse half of a question about speculative decoding.

        Raises:
            InputError: acceptance or draft length is missing, out of range, or there is no draft model.
        """
        given = [name for name in ("acceptance", "draft_length") if getattr(self, name) is not None]
        if not drafted:
            if given:
                raise InputError(
                    f"{given[0]}: means something with a draft model only, found none (draft or speculate)"
                )
            return
        object.__setattr__(self, "acceptance", checked_acceptance(self.acceptance))
        if self.draft_length is not None and positive_integer("draft_length", self.draft_length) > LONGEST_DRAFT:
            raise InputError(f"draft_length: found {self.draft_length}, expected 1 to {LONGEST_DRAFT}")
