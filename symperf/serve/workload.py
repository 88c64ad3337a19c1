"""How requests come, and how they differ from one another, checked."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from ..common.errors import InputError, quote
from ..common.numbers import is_finite
from ..plans.plan import positive_integer

WHOLE = ("concurrency", "requests", "burst", "max_generate", "turns")
SPREADS = ("prompt_spread", "generate_spread")


@dataclass(frozen=True)
class Workload:
    """What else is said of the requests; without any of it they are all alike and arrive at random.

    Attributes:
        concurrency: requests in flight at all replicas, of which each is replaced as it ends; None: no such loop.
        requests: requests of the whole run of such a loop, which begins with a burst; None: it goes on for ever.
        burst: requests that arrive at once, and none after them.
        max_num_seqs: sequences that a replica may run at once; None: the default of the software; 0: as many as memory
            holds.
        prompt_spread: r of the prompts' lengths, uniform over (1 - r) to (1 + r) times the mean.
        generate_spread: likewise of what is generated.
        max_generate: tokens for which memory is reserved in advance; None: each takes what it comes to.
        prefix: first tokens of each prompt that all requests share; once in the cache they are not prefilled again.
        turns: requests of a conversation, each of which sends all that came before it again.
        hit_rate: part of the requests that find their prefix, and what came before, in the cache.
    """

    concurrency: int | None = None
    requests: int | None = None
    burst: int | None = None
    max_num_seqs: int | None = None
    prompt_spread: float = 0.0
    generate_spread: float = 0.0
    max_generate: int | None = None
    prefix: int = 0
    turns: int = 1
    hit_rate: float | None = None

    def __post_init__(self) -> None:
        for name in WHOLE:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name in ("prefix", "max_num_seqs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_integer(name, getattr(self, name), lowest=0))
        for name in SPREADS:
            if not (is_finite(value := getattr(self, name)) and 0 <= value < 1):
                raise InputError(f"{name}: found {quote(value)}, expected a part of the mean, from 0 to below 1")
        self._check_load()

    def _check_load(self) -> None:
        """Refuse loads that contradict one another.

        Raises:
            InputError: more than one load, or half of one.
        """
        if self.concurrency is not None and self.burst is not None:
            raise InputError(f"burst: found together with concurrency, {ONE_LOAD}")
        if self.requests is None:
            return
        if self.concurrency is None:
            raise InputError("requests: the length of a run with a number in flight, expected concurrency beside it")
        if self.requests < self.concurrency:
            raise InputError(
                f"requests: found {self.requests} with concurrency {self.concurrency}, expected as many or more"
            )

    @property
    def loop(self) -> str | None:
        """The load that is no rate of arrivals, by name."""
        return next((name for name in ("concurrency", "burst") if getattr(self, name) is not None), None)

    def check(self, prompt: int, generate: int, load: float | None) -> None:
        """Refuse what does not go with the rest of a question.

        Args:
            prompt: tokens of each prompt, the first of a conversation.
            generate: tokens generated for each.
            load: requests in a second.

        Raises:
            InputError: another load, a prefix longer than the prompt, a hit rate out of range or without a cache.
        """
        if load is not None and self.loop is not None:
            raise InputError(f"{self.loop}: found together with load, {ONE_LOAD}")
        shortest = math.ceil(prompt * (1 - self.prompt_spread) - 1e-9)
        if self.prefix > shortest:
            raise InputError(
                f"prefix: found {self.prefix}, expected at most the {shortest} tokens of the shortest prompt"
            )
        if self.max_generate is not None and self.max_generate < generate * (1 + self.generate_spread):
            longest = int(generate * (1 + self.generate_spread))
            raise InputError(f"max_generate: found {self.max_generate}, expected at least the longest, {longest}")
        if self.hit_rate is None:
            return
        if not (is_finite(self.hit_rate) and 0 <= self.hit_rate <= 1):
            raise InputError(f"hit_rate: found {quote(self.hit_rate)}, expected a part of the requests from 0 to 1")
        if not self.prefix and self.turns == 1:
            raise InputError("hit_rate: nothing is there to be found again, expected prefix or turns beside it")

    @property
    def hits(self) -> float:
        """The hit rate: all, unless another is given."""
        return 1.0 if self.hit_rate is None else float(self.hit_rate)


ONE_LOAD = "expected one load: requests a second (load), a number in flight (concurrency) or a number at once (burst)"
NAMES = tuple(field.name for field in dataclasses.fields(Workload))
