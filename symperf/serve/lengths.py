"""How the lengths of requests spread about their means, and what that makes of chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True)
class Lengths:
    """A uniform law of whole lengths from (1 - r) to (1 + r) times the mean, as benchmarks draw them.

    `vllm bench serve` calls r the range ratio (`--random-range-ratio`).

    Attributes:
        mean: tokens.
        ratio: r, from 0 (all alike) to below 1.
    """

    mean: float
    ratio: float = 0.0

    @property
    def lowest(self) -> int:
        """The shortest, at least 1."""
        return max(1, math.ceil(self.mean * (1 - self.ratio) - 1e-9))

    @property
    def highest(self) -> int:
        """The longest."""
        return max(self.lowest, math.floor(self.mean * (1 + self.ratio) + 1e-9))

    @property
    def expected(self) -> float:
        """The mean of the whole lengths."""
        return (self.lowest + self.highest) / 2

    @property
    def deviation(self) -> float:
        """Standard deviation, tokens."""
        return math.sqrt(((self.highest - self.lowest + 1) ** 2 - 1) / 12)

    @property
    def squared(self) -> float:
        """The mean of the square."""
        return self.expected**2 + self.deviation**2

    def above(self, length: int) -> float:
        """The part of the lengths that is above one."""
        count = self.highest - self.lowest + 1
        return min(max(self.highest - max(length, self.lowest - 1), 0), count) / count

    def chunks(self, chunk: int) -> tuple[float, float]:
        """Mean of the iterations that a prompt takes, and of their square: sums of P(n > k C) and (2 k + 1) P."""
        parts = [self.above(k * chunk) for k in range(math.ceil(self.highest / chunk))]
        return math.fsum(parts), math.fsum((2 * k + 1) * part for k, part in enumerate(parts))

    def draw(self, source: random.Random) -> int:
        """A length."""
        return source.randint(self.lowest, self.highest)
