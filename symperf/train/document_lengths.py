"""The lengths of documents that are trained on: read from a file or as a uniform law, and what follows for a step.

A step takes what its tokens take; of the lengths it knows three numbers (`symbols`): the length of the document of the
mean token, and how much the attention of sequences, and of their parts, varies.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, quote
from ..common.files import open_input
from ..common.numbers import numeral
from ..common.system_errors import cause

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

LONGEST_LINE: Final = 200
"""Bytes of a line."""
MOST: Final = 10**12
"""Documents of one length."""
POINTS: Final = 65_536
"""Lengths of a law at most; of one with more, as many of them evenly."""
COPIES: Final = 1_000
"""Of every document, where it is asked how well they pack: what is known is their law, not how many there are."""


@dataclass(frozen=True)
class Documents:
    """The law of the lengths of documents, and how they are put into sequences.

    Attributes:
        counts: documents of each length.
        sequence: tokens of a sequence.
        packed: several share a sequence, as many as fit; else each has one of its own, filled with padding.
        sharded: context parallelism cuts each document for all devices, and not the sequence.
    """

    counts: Mapping[int, int]
    sequence: int
    packed: bool = True
    sharded: bool = False

    @property
    def number(self) -> int:
        """Of documents."""
        return sum(self.counts.values())

    def _mean(self, power: int) -> float:
        return math.fsum(count * float(length) ** power for length, count in self.counts.items()) / self.number

    @cached_property
    def mean(self) -> float:
        """Tokens of a document."""
        return self._mean(1)

    @cached_property
    def token_length(self) -> float:
        """Tokens of the document of a token, the mean over tokens (`token_document_length`)."""
        return self._mean(2) / self.mean

    @cached_property
    def squared_excess(self) -> float:
        """Mean square of l (l + 1) beyond what a mean document has for l tokens."""
        pairs = self.token_length + 1
        squares = (count * (length * (length + 1 - pairs)) ** 2 for length, count in self.counts.items())
        return math.fsum(squares) / self.number

    @cached_property
    def useful_share(self) -> float:
        """Part of the tokens of a step that are no padding."""
        if not self.packed:
            return self.mean / self.sequence
        copies = {length: COPIES * count for length, count in self.counts.items()}
        return COPIES * self.number * self.mean / (pack(copies, self.sequence) * self.sequence)

    @property
    def tokens(self) -> int:
        """Tokens of a sequence as it is computed."""
        return self.sequence

    @property
    def a_sequence(self) -> float:
        """Documents of a sequence."""
        return self.useful_share * self.sequence / self.mean if self.packed else 1.0

    @cached_property
    def variation(self) -> float:
        """Relative standard deviation of the attention of a sequence (`attention_variation`)."""
        tokens = self.useful_share * self.sequence
        return math.sqrt(self.squared_excess / (self.mean * tokens)) / (self.token_length + 1)

    def symbols(self) -> dict[str, float]:
        """Values of the symbols of a training step; none where documents are padded, whose padding is computed.

        Padding behind documents that share a sequence has no attention, so that the mean token has less.
        """
        if not self.packed:
            return {}
        length = max(1.0, self.useful_share * (self.token_length + 1) - 1)
        shards = 0.0 if self.sharded else self.variation
        found = {"document_length": length, "document_variation": self.variation, "shard_variation": shards}
        return {name: value for name, value in found.items() if value > 0}


def uniform(mean: float, spread: float, sequence: int) -> dict[int, int]:
    """One document of each whole length from (1 - r) to (1 + r) times the mean.

    Raises:
        InputError: a mean or a spread out of range, or documents that are longer than a sequence.
    """
    if not (math.isfinite(mean) and 1 <= mean <= sequence):
        raise InputError(f"length_mean: found {mean:g}, expected 1 to the {sequence} tokens of a sequence")
    if not 0 <= spread < 1:
        raise InputError(f"length_spread: found {spread:g}, expected 0 to below 1")
    lowest = max(1, math.ceil(mean * (1 - spread) - 1e-9))
    highest = max(lowest, math.floor(mean * (1 + spread) + 1e-9))
    if highest > sequence:
        up_to = f"documents of up to {highest} tokens, expected at most the {sequence} of a sequence"
        raise InputError(f"length_spread: found {spread:g}, {up_to}")
    return dict.fromkeys(range(lowest, highest + 1, -(-(highest - lowest + 1) // POINTS)), 1)


def read_lengths(path: str | os.PathLike[str], sequence: int) -> dict[int, int]:
    """Documents of each length: lines of a length, or of a length, a comma and how many documents have it.

    Raises:
        InputError: it cannot be read, a line is none of these, a length is above the sequence, or there is none.
    """
    label = f"lengths: {path}"
    expected = f"tokens of a document, 1 to the {sequence} of a sequence, or that, a comma and how many documents"
    counts: Counter[int] = Counter()
    for number, text in _lines(path, label, expected):
        parts = [numeral(part.strip(), int) for part in text.split(",")]
        length, count = parts[0], parts[1] if len(parts) > 1 else 1
        if len(parts) > 2 or length is None or count is None or not length >= 1 or not 1 <= count <= MOST:
            raise InputError(f"{label}: line {number}: found {quote(text)}, expected {expected}")
        if length > sequence:
            raise InputError(
                f"{label}: line {number}: found a document of {length} tokens, expected at most the {sequence} of a "
                "sequence; cut it before, or give a longer sequence"
            )
        counts[int(length)] += int(count)
    if not counts:
        raise InputError(f"{label}: is empty, expected lines of {expected}")
    return dict(counts)


def _lines(path: str | os.PathLike[str], label: str, expected: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers, as they are read."""
    try:
        if not Path(path).is_file():
            what = "is a folder" if Path(path).is_dir() else "no such file"
            raise InputError(f"{label}: {what}, expected lines of {expected}")
        with open_input(path) as lines:
            number = 0
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(
                        f"{label}: line {number}: is longer than {LONGEST_LINE} bytes, expected {expected}"
                    )
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").strip():
                    yield number, text
    except OSError as error:
        raise InputError(f"{label}: cannot be read: {cause(error)}") from None
    except InputError:
        raise
    except ValueError as error:  # a null character in the name
        raise InputError(f"{quote(label)}: cannot be read: {error}") from None


def pack(counts: Mapping[int, int], sequence: int) -> int:
    """Sequences that documents take, the longest first, each where it leaves the least (best fit decreasing).

    Documents of one length are dealt together: a sequence into which several fit is filled with them, as the least is
    left where one is already.

    >>> pack({3: 2, 2: 3}, 4), pack({3: 10, 1: 10}, 4)
    (4, 10)
    """
    left: list[int] = []
    number: dict[int, int] = {}
    total = 0

    def open_(free: int, many: int) -> None:
        if many and free:
            if free not in number:
                insort(left, free)
            number[free] = number.get(free, 0) + many

    for length in sorted(counts, reverse=True):
        documents = counts[length]
        while documents:
            at = bisect_left(left, length)
            new = at == len(left)
            free = sequence if new else left[at]
            each = free // length
            many = -(-documents // each) if new else min(number[free], -(-documents // each))
            if new:
                total += many
            else:
                number[free] -= many
                if not number[free]:
                    del number[free], left[at]
            placed = min(documents, many * each)
            short = many * each - placed
            open_(free - each * length, many - bool(short))
            open_(free - (each - short) * length, int(bool(short)))
            documents -= placed
    return total
