"""Documents of which each has a sequence of its own, padded to the longest of its micro-batch: order statistics.

A micro-batch is as wide as the longest of its b documents: at most x with the probability F(x)^b, where F is the law of
their lengths (David and Nagaraja 2003, section 2.1). A replica takes m such widths one after the other, and a step what
the replica with the largest sum takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from .document_lengths import Documents

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDTHS: Final = 1024
"""Widths of a micro-batch that are told apart where sums of several are asked for."""
MOST_SUMS: Final = 2**21
"""Sums of widths that are told apart, at most."""


@dataclass(frozen=True)
class PaddedBatches(Documents):
    """Documents that are padded to the longest of their micro-batch.

    Attributes:
        packed: never: each has a sequence of its own.
        micro_batch: documents of a micro-batch.
        micro_batches: that a replica takes in a step.
        replicas: that wait for each other.
    """

    packed: bool = False
    micro_batch: int = 1
    micro_batches: int = 1
    replicas: int = 1

    @property
    def longest(self) -> int:
        """Tokens of the longest document."""
        return max(self.counts)

    def width_law(self, draws: int) -> dict[int, float]:
        """The probability of each width of the longest of some documents: F(x)^b - F(x-)^b.

        >>> PaddedBatches({1: 1, 3: 1}, sequence=3).width_law(2)
        {1: 0.25, 3: 0.75}
        """
        found: dict[int, float] = {}
        below, seen, total = 0.0, 0, self.number
        for length in sorted(self.counts):
            seen += self.counts[length]
            up_to = (seen / total) ** draws
            found[length], below = up_to - below, up_to
        return found

    @cached_property
    def mean_width(self) -> float:
        """Tokens to which a document is padded, in the mean: E[max of b]."""
        return _expected(self.width_law(self.micro_batch))

    @cached_property
    def slowest_width(self) -> float:
        """Mean width of the micro-batches of the replica that a step waits for: E[max of d of sums of m] / m.

        Exact for one micro-batch, whose longest is that of b d documents, and where lengths are at most `WIDTHS`;
        else widths lie on an even grid, with their mean as it is. Of more micro-batches than `MOST_SUMS` has room for,
        what the slowest has above the mean falls with the square root of their number, as means of draws do.
        """
        if self.replicas == 1:
            return self.mean_width
        if self.micro_batches == 1:
            return _expected(self.width_law(self.micro_batch * self.replicas))
        number = min(self.micro_batches, MOST_SUMS // 2)
        points = max(2, min(WIDTHS, MOST_SUMS // number, self.longest))
        unit = self.longest / points
        up_to = _at_most(_on_grid(self.width_law(self.micro_batch), unit, points), number)
        above = unit * float((1 - up_to**self.replicas).sum()) / number - self.mean_width
        return self.mean_width + above * math.sqrt(number / self.micro_batches)

    @property
    def tokens(self) -> int:
        """Tokens of a sequence as it is computed: the mean of the replica that a step waits for, in whole ones."""
        return round(self.slowest_width)

    @property
    def useful_share(self) -> float:
        """Part of the tokens of a step that are no padding."""
        return self.mean / self.mean_width


def _expected(law: Mapping[int, float]) -> float:
    return math.fsum(width * part for width, part in law.items())


def _on_grid(law: Mapping[int, float], unit: float, points: int) -> Any:
    """A law on whole multiples of a unit: each width is dealt to its two neighbours, so that the mean stays."""
    import numpy as np

    widths = np.fromiter(law, float) / unit
    parts = np.fromiter(law.values(), float)
    below = np.minimum(widths.astype(int), points - 1)
    found = np.zeros(points + 1)
    np.add.at(found, below, parts * (below + 1 - widths))
    np.add.at(found, below + 1, parts * (widths - below))
    return found


def _at_most(law: Any, number: int) -> Any:
    """The probability that the sum of some draws from a law on 0, 1, 2, ... is at most each whole number.

    Their generating function is that of one, to the power of their number.
    """
    import numpy as np

    size = (len(law) - 1) * number + 1
    folded = 1 << (size - 1).bit_length()
    sums = np.fft.irfft(np.fft.rfft(law, folded) ** number, folded)[:size]
    return np.clip(np.cumsum(sums), 0.0, 1.0)
