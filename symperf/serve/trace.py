"""Requests that were recorded: JSON lines of arrival, input and output, read line by line, twice.

Once for their means, of which the closed form is made, and once to replay them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, nearest, quote
from ..common.files import open_input
from ..common.numbers import is_finite, whole_number
from ..common.system_errors import cause
from ..plans.plan import LARGEST
from .lengths import Lengths
from .mix import Kind, Mix, Sums

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

KEYS: Final = ("arrival", "input", "output")
EXPECTED: Final = '{"arrival": seconds, "input": tokens, "output": tokens}'
LONGEST_LINE: Final = 1000
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A recorded request: the moment it came, seconds, and its tokens."""

    arrival: float
    prompt: int
    generate: int


def read_trace(path: str | os.PathLike[str]) -> Iterator[Traced]:
    """The requests of a trace, in the order of their arrival.

    Raises:
        InputError: it cannot be read, or a line is none of a trace: which one, what was found, what was expected.
    """
    label, before = f"trace: {path}", 0.0
    try:
        if not Path(path).is_file():
            there = "is a folder" if Path(path).is_dir() else "is a device or a pipe"
            what = there if Path(path).exists() else "no such file"
            raise InputError(f"{label}: {what}, expected a file of JSON lines, {EXPECTED}")
        with open_input(path) as lines:
            number = 0
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{label}: line {number}"
                if len(line) > LONGEST_LINE:
                    raise InputError(f"{where}: is longer than {LONGEST_LINE} bytes, expected {EXPECTED}")
                if not line.strip():
                    continue
                found = _parse(line, where)
                if found.arrival < before:
                    raise InputError(
                        f"{where}: found arrival {found.arrival:g} after {before:g}, expected the order of arrival"
                    )
                before = found.arrival
                yield found
    except OSError as error:
        raise InputError(f"{label}: cannot be read: {cause(error)}") from None
    except InputError:
        raise
    except ValueError as error:  # a null character in the name
        raise InputError(f"{quote(label)}: cannot be read: {error}") from None


def _parse(line: bytes, where: str) -> Traced:
    try:
        found = json.loads(line, object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not valid JSON, expected {EXPECTED}") from None
    if not (isinstance(found, list) and found and all(isinstance(each, tuple) for each in found)):
        raise InputError(f"{where}: found {quote(line.decode().strip())}, expected {EXPECTED}")
    values: dict[str, Any] = {}
    for name, value in found:
        if name not in KEYS:
            raise InputError(f"{where}: found the key {quote(name)}, expected {', '.join(KEYS)}{nearest(name, KEYS)}")
        if name in values:
            raise InputError(f"{where}: {name} comes twice, expected it once")
        values[name] = value
    if missing := [name for name in KEYS if name not in values]:
        raise InputError(f"{where}: {missing[0]} is missing, expected {EXPECTED}")
    arrival = values["arrival"]
    if not (is_finite(arrival) and arrival >= 0):
        raise InputError(f"{where}: arrival: found {quote(arrival)}, expected seconds, 0 or more")
    return Traced(float(arrival), *(_tokens(values[name], name, where) for name in KEYS[1:]))


def _tokens(value: Any, name: str, where: str) -> int:
    if (found := whole_number(value, 1, LARGEST)) is None:
        raise InputError(f"{where}: {name}: found {quote(value)}, expected a whole number from 1 to {LARGEST}")
    return found


@dataclass(frozen=True)
class Moments:
    """The first two moments of recorded lengths; in place of a law."""

    expected: float
    squared: float

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return math.sqrt(max(0.0, self.squared - self.expected**2))


@dataclass(frozen=True)
class Trace:
    """What the closed form needs to know of recorded requests.

    Attributes:
        path: of the file.
        count: requests.
        first: arrival of the first one, seconds.
        last: of the last one.
        prompts: how many have each number of tokens.
        generates: what they generate.
        longest_prompt: tokens.
        longest: prompt and output together.
    """

    path: str
    count: int
    first: float
    last: float
    prompts: Mapping[int, int]
    generates: Moments
    longest_prompt: int
    longest: int

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a trace for its means.

        Raises:
            InputError: as of `read_trace`, or there is no request in it.
        """
        prompts: Counter[int] = Counter()
        generated, count, first, last, longest = [0, 0], 0, 0.0, 0.0, 0
        for each in read_trace(path):
            first, last, count = (first if count else each.arrival), each.arrival, count + 1
            prompts[each.prompt] += 1
            generated[0] += each.generate
            generated[1] += each.generate**2
            longest = max(longest, each.prompt + each.generate)
        if not count:
            raise InputError(f"trace: {path}: is empty, expected lines of {EXPECTED}")
        moments = Moments(generated[0] / count, generated[1] / count)
        return cls(str(path), count, first, last, prompts, moments, max(prompts), longest)

    def mix(self, chunk: int) -> Mix:
        """Its prompts, where an iteration may process so many of their tokens."""
        weighted = (
            [count / self.count * mean for mean in astuple(Kind(1.0, Lengths(length), 0.0).sums(chunk))]
            for length, count in self.prompts.items()
        )
        return Mix(Sums(*map(math.fsum, zip(*weighted, strict=True))), chunk)

    @property
    def prompt_tokens(self) -> float:
        """Mean tokens of a prompt."""
        return sum(length * count for length, count in self.prompts.items()) / self.count

    @property
    def rate(self) -> float | None:
        """Requests that arrive in a second; None where all arrive at once."""
        span = self.last - self.first
        return (self.count - 1) / span if span > 0 else None

    @property
    def prompt(self) -> int:
        """Mean tokens of a prompt, to the whole one."""
        return max(1, round(self.prompt_tokens))

    @property
    def generate(self) -> int:
        """Mean tokens generated, to the whole one."""
        return max(1, round(self.generates.expected))

    @property
    def spread(self) -> float:
        """The ratio of a uniform law of as great a variance as what is generated has, where there is one."""
        return min(0.999, math.sqrt(3) * self.generates.deviation / self.generates.expected)
