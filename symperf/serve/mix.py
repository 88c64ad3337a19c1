"""Prompts that differ: in length, and in what of them is found in the cache.

All that the steady state needs of them are means: of the tokens that are prefilled, of the iterations that these take
and of their square, of the context that a chunk and a step attend to.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .lengths import Lengths

if TYPE_CHECKING:
    import random

    from .workload import Workload

NEGLIGIBLE = 1e-12
SELDOM = 1e-3
"""Part of the packs that may hold a prompt more or less and leave requests in step."""


@dataclass(frozen=True)
class Sums:
    """Means over the prompts.

    Attributes:
        tokens: that are prefilled.
        squares: of their number.
        cached: tokens before them, which are in the cache.
        products: of both numbers.
        chunks: iterations that a prompt takes.
        chunk_squares: of their number.
        whole: prompts that need no cut.
        whole_tokens: tokens of those, the others counted as none.
        whole_squares: likewise of their squares.
    """

    tokens: float
    squares: float
    cached: float
    products: float
    chunks: float
    chunk_squares: float
    whole: float
    whole_tokens: float
    whole_squares: float


@dataclass(frozen=True)
class Kind:
    """Prompts of one kind.

    Attributes:
        weight: part of the requests.
        new: tokens that are prefilled.
        cached: tokens before them, which are in the cache.
    """

    weight: float
    new: Lengths
    cached: float

    def sums(self, chunk: int) -> Sums:
        """Its means, where an iteration may prefill so many tokens."""
        new, part = self.new, 1 - self.new.above(chunk)
        high = min(new.highest, chunk)
        low = min(new.lowest, high)
        middle = (low + high) / 2
        square = middle**2 + ((high - low + 1) ** 2 - 1) / 12
        products = new.expected * self.cached
        means = new.expected, new.squared, self.cached, products, *new.chunks(chunk), part, part * middle, part * square
        return Sums(*means)


@dataclass(frozen=True)
class Mix:
    """Prompts in any order.

    Attributes:
        sums: means over them.
        chunk: tokens that an iteration may prefill.
        kinds: of which they are, with weights that are 1 together; none where only the means are known.
    """

    sums: Sums
    chunk: int
    kinds: tuple[Kind, ...] = field(default=())

    @property
    def tokens(self) -> float:
        """Mean tokens that are prefilled."""
        return self.sums.tokens

    @property
    def cached(self) -> float:
        """Mean tokens that are in the cache."""
        return self.sums.cached

    @property
    def chunks(self) -> float:
        """Mean iterations that a prompt takes."""
        return self.sums.chunks

    @property
    def variation(self) -> float:
        """Squared coefficient of variation of the iterations that a prompt fills, those that it shares in part."""
        sums = self.sums
        each = 1 / self._packed_whole if sums.whole > NEGLIGIBLE else 0.0
        filled = sums.chunks - sums.whole + sums.whole * each
        square = sums.chunk_squares - sums.whole + sums.whole * each**2
        return max(0.0, square / filled**2 - 1)

    @property
    def chunk_context(self) -> float:
        """Tokens in the cache before the first chunk of a prompt of mean length that has as many pairs to attend to.

        A prompt of n tokens after h cached ones has n (h + n / 2) pairs, in the mean over prompts.
        """
        pairs = self.sums.products + self.sums.squares / 2
        return max(0.0, pairs / self.tokens - self.tokens / 2)

    @cached_property
    def packed(self) -> float:
        """J, prompts that an iteration prefills where many wait: the iterations of a prompt over those it fills.

        Whole prompts are packed in order, j of them where all are whole and together within the chunk; the sum of
        their lengths is taken as normal. A prompt that is cut has its iterations to itself.
        """
        whole = self.sums.whole
        if whole < NEGLIGIBLE:
            return 1.0
        return self.chunks / (self.chunks - whole + whole / self._packed_whole)

    @property
    def order_lost(self) -> float:
        """Iterations by which packs that now and then hold a prompt more or less displace the requests behind them."""
        part = abs(self.packed - round(self.packed))
        return math.sqrt(part * (1 - part)) if self.packed > 1 and part > SELDOM else 0.0

    @cached_property
    def _packed_whole(self) -> float:
        """Whole prompts in an iteration that begins with one."""
        whole = self.sums.whole
        mean = self.sums.whole_tokens / whole
        deviation = math.sqrt(max(self.sums.whole_squares / whole - mean**2, 0.0))
        found, chance, count = 1.0, 1.0, 2
        while count * mean <= self.chunk + 0.5 + 8 * deviation * math.sqrt(count) and chance > 1e-6:
            chance = whole ** (count - 1) * _normal(self.chunk + 0.5 - count * mean, deviation * math.sqrt(count))
            found, count = found + chance, count + 1
        return found

    def draw(self, source: random.Random) -> tuple[int, float]:
        """Tokens of a prompt that are prefilled, and those before them that are in the cache."""
        kind = self.kinds[0]
        if len(self.kinds) > 1:
            kind = source.choices(self.kinds, [each.weight for each in self.kinds])[0]
        return kind.new.draw(source), kind.cached


def _normal(distance: float, deviation: float) -> float:
    """The chance of a normal deviate below a distance from its mean."""
    if deviation < NEGLIGIBLE:
        return 1.0 if distance >= 0 else 0.0
    return math.erfc(-distance / deviation / math.sqrt(2)) / 2


def mix_of(workload: Workload, prompt: int, generate: int, chunk: int) -> Mix | None:
    """The prompts of a workload; None where all are alike and nothing is cached.

    The i-th request of a conversation sends its own tokens after all that was sent and generated before. One that
    hits finds that, and the prefix, in the cache, and prefills what is left, a token at least.
    """
    if not (workload.prompt_spread or workload.prefix or workload.turns > 1):
        return None
    own, hits = prompt - workload.prefix, workload.hits
    spread = workload.prompt_spread * prompt
    kinds = []
    for turn in range(workload.turns):
        whole = prompt + turn * (own + generate)
        if hits:
            new = max(own, 1)
            kinds.append(Kind(hits / workload.turns, Lengths(new, spread / new), float(whole - new)))
        if hits < 1:
            kinds.append(Kind((1 - hits) / workload.turns, Lengths(whole, spread / whole), 0.0))
    each = [astuple(kind.sums(chunk)) for kind in kinds]
    sums = (
        math.fsum(kind.weight * mean for kind, mean in zip(kinds, means, strict=True))
        for means in zip(*each, strict=True)
    )
    return Mix(Sums(*sums), chunk, tuple(kinds))
