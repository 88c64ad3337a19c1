"""Layouts of a pipeline in Megatron-LM's notation: which layers every stage has, one by one.

`E|t*3|(tt|)*4mL`: stages between bars, of which each has E (the embedding), t (a layer), m (a module for multi-token
prediction) and L (the head and the loss); `x*n` is x n times, `(...)*n` what is in parentheses, and commas mean nothing
(megatron/core/transformer/pipeline_parallel_layer_layout.py). Of p v stages, stage k is on device k mod p.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MEANINGS = {"E": "embedding", "t": "layer", "m": "module for multi-token prediction", "L": "loss"}
LONGEST = 100_000
"""Letters of a layout, and stages."""
KNOWN = "E (embedding), t (layer), m (multi-token prediction) and L (loss), | between stages, x*n and (...)*n"


def canonical(text: str) -> str:
    """A layout as it is written shortest.

    Raises:
        InputError: it is none, or no stages of a model.

    >>> canonical("E|ttt,|ttt|tL"), canonical("E|(t|)*126L")
    ('E|(t*3|)*2tL', 'E|(t|)*126L')
    """
    stages = stages_of(text)
    _check(stages)
    return spell(stages)


@lru_cache(maxsize=256)
def stages_of(text: str) -> tuple[str, ...]:
    """The letters of every stage.

    Raises:
        InputError: a letter that is none, parentheses that do not close, or a count that is none.

    >>> stages_of("Et*2|(t|)*2L")
    ('Ett', 't', 't', 'L')
    """
    return tuple(_unroll(text).split("|"))


def _unroll(text: str) -> str:
    found: list[str] = []
    plain = text.replace(",", "").replace(" ", "")
    at = length = 0
    while at < len(plain):
        if plain[at] == "(":
            end = plain.find(")", at)
            if end < 0:
                raise _unknown(text, "(", "a ) behind it")
            unit, at = _unroll(plain[at + 1 : end]), end + 1
        elif plain[at] in MEANINGS or plain[at] == "|":
            unit, at = plain[at], at + 1
        else:
            near = next((letter for letter in MEANINGS if letter.lower() == plain[at].lower()), "")
            raise _unknown(text, plain[at], KNOWN + (f" (did you mean {near}?)" if near else ""))
        if count := re.match(r"\*(\d{1,6})", plain[at:]):
            unit, at = unit * min(int(count[1]), LONGEST), at + count.end()
        elif plain[at : at + 1] == "*":
            raise _unknown(text, plain[at : at + 2], "a whole number behind *")
        length += len(unit)
        if length > LONGEST:
            raise InputError(f"layout: found more than {LONGEST} letters, expected stages of one model")
        found.append(unit)
    return "".join(found)


def _unknown(text: str, found: str, expected: str) -> InputError:
    return InputError(f"layout: found {quote(found)} in {quote(text)}, expected {expected}")


def _check(stages: Sequence[str]) -> None:
    """Refuse stages that are not those of a model in order.

    Raises:
        InputError: which letter is not where it must be.
    """
    letters = "".join(stages)
    for letter, place in (("E", 0), ("L", len(letters) - 1)):
        if letters.count(letter) != 1 or letters[place] != letter:
            where = "first" if letter == "E" else "last"
            found = letters[0 if letter == "E" else -1] if letters else ""
            raise InputError(
                f"layout: found {quote(found)} {where} and {letters.count(letter)} of {letter}, expected {letter} "
                f"({MEANINGS[letter]}) {where} and nowhere else"
            )
    modules = [k for k, stage in enumerate(stages) if "m" in stage]
    if modules and ("t" in letters[letters.index("m") :] or len(modules) > 1):
        raise InputError("layout: found m before a t or on several stages, expected all m on one stage behind every t")


def check_modules(stages: Sequence[str], pp: int) -> None:
    """Refuse modules for multi-token prediction where Megatron-LM has none: on the first device, or in no last chunk.

    Raises:
        InputError: where they are.
    """
    at = modules_at(stages)
    if at and (at - 1 < len(stages) - pp or (at - 1) % pp == 0) and pp > 1:
        raise InputError(
            f"layout: m is on stage {at} of {len(stages)}, expected one of the last pp = {pp}, not the first of them"
        )


def modules_at(stages: Sequence[str]) -> int:
    """Number of the stage with the modules for multi-token prediction; 0 where there are none.

    >>> modules_at(("E", "t", "mL")), modules_at(("E", "tL"))
    (3, 0)
    """
    return next((k + 1 for k, stage in enumerate(stages) if "m" in stage), 0)


def spell(stages: Sequence[str]) -> str:
    """Stages as a layout.

    >>> spell(("Ettt", "tt", "tt", "tmL"))
    'Et*3|(t*2|)*2tmL'
    """
    found = []
    runs = [(unit, sum(1 for _ in same)) for unit, same in itertools.groupby(map(letters_of, stages[:-1]))]
    for unit, count in runs:
        found.append(f"{unit}|" if count == 1 else f"({unit}|)*{count}" if unit else f"|*{count}")
    return "".join([*found, letters_of(stages[-1])])


def letters_of(stage: str) -> str:
    """The letters of one stage, equal ones counted.

    >>> letters_of("Ettt")
    'Et*3'
    """
    return "".join(
        letter if count == 1 else f"{letter}*{count}"
        for letter, count in ((letter, sum(1 for _ in same)) for letter, same in itertools.groupby(stage))
    )


def chunks_of(stages: Sequence[str], pp: int, segments: Sequence[int]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Layers of every segment of a model in each chunk of each device.

    Args:
        stages: letters of every stage.
        pp: devices of the pipeline.
        segments: layers of each segment of the model, in order.

    >>> chunks_of(("Et", "tt", "t", "L"), 2, (2, 2))
    (((1, 0), (0, 1)), ((1, 1), (0, 0)))
    """
    dealt = list(_deal([stage.count("t") for stage in stages], segments))
    return tuple(tuple(dealt[turn] for turn in range(device, len(stages), pp)) for device in range(pp))


def _deal(counts: Sequence[int], segments: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ends = list(itertools.accumulate(segments))
    at = 0
    for count in counts:
        yield tuple(
            max(0, min(at + count, end) - max(at, end - size)) for size, end in zip(segments, ends, strict=True)
        )
        at += count
