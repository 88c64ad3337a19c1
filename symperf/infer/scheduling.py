"""What a serving software's profile says of its scheduler: its date, its chunks, and whom it sends tokens to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, quote
from .profile_table import table_of

if TYPE_CHECKING:
    from ..systems.system import System

EXCHANGES: Final = ("ranks", "replicas")
LONGEST: Final = 10**9
CHUNK_KEYS: Final = ("tokens", "from_gb", "of", "apart", "source")
DATE: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@dataclass(frozen=True)
class ChunkSizes:
    """Prompt tokens that an iteration may process, by the memory of a device.

    Attributes:
        steps: memory in bytes from which a number of tokens holds, and the number; none: the software has no default.
        others: numbers of systems by name, whatever their memory.
        source: where it is read.
    """

    steps: tuple[tuple[float, int], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    source: str = ""

    def on(self, system: System) -> int | None:
        """The default on a system; None where the software states none."""
        named = dict(self.others).get(system.name)
        if named is not None or not self.steps:
            return named
        capacity = system.quantities["memory_capacity"].value
        return [tokens for least, tokens in self.steps if capacity >= least][-1]


def read_chunk(table: object, label: str) -> ChunkSizes:
    """The table `[chunk]` of a profile.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: chunk"
    known = table_of(table, CHUNK_KEYS, where)
    if not known:
        return ChunkSizes()
    steps = read_steps(known.get("tokens"), known.get("from_gb", [0]), where, "tokens")
    others = known.get("of", {})
    if not isinstance(others, dict) or not all(is_count(each) for each in others.values()):
        raise InputError(f"{where}.of: found {quote(others)}, expected a table of systems with whole numbers")
    return ChunkSizes(steps, tuple(others.items()), text_of(known, "source", where))


def read_steps(numbers: object, least: object, where: str, key: str) -> tuple[tuple[float, int], ...]:
    """Whole numbers, each from a memory in bytes on.

    Args:
        numbers: as a profile gives them.
        least: the memory in GB from which each holds.
        where: the table that they stand in.
        key: of the numbers.

    Raises:
        InputError: one line with the key, what was found and what was expected.
    """
    if not (isinstance(numbers, list) and numbers and all(is_count(each) for each in numbers)):
        raise InputError(f"{where}.{key}: found {quote(numbers)}, expected a list of whole numbers of at least 1")
    rising = isinstance(least, list) and all(type(each) in (int, float) for each in least) and sorted(least) == least
    if not rising or len(least) != len(numbers) or least[0] != 0:  # type: ignore[arg-type,index]
        raise InputError(
            f"{where}.from_gb: found {quote(least)}, expected {len(numbers)} numbers of GB, rising from 0, "
            f"one for each of {key}"
        )
    return tuple((float(gb) * 1e9, count) for gb, count in zip(least, numbers, strict=True))  # type: ignore[call-overload]


def read_apart(table: object, label: str) -> bool:
    """The key `apart` of the table `[chunk]`: whether chunks have iterations of their own; not unless it says.

    Raises:
        InputError: it is neither true nor false.
    """
    found = table.get("apart", False) if isinstance(table, dict) else False
    if not isinstance(found, bool):
        raise InputError(f"{label}: chunk.apart: found {quote(found)}, expected true or false")
    return found


def read_exchange(table: object, label: str) -> str:
    """The table `[exchange]` of a profile: among whom tokens are sent to their experts.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: exchange"
    known = table_of(table, ("among", "source"), where)
    among = known.get("among", EXCHANGES[0])
    if among not in EXCHANGES:
        raise InputError(f"{where}.among: found {quote(among)}, expected {' or '.join(EXCHANGES)}")
    text_of(known, "source", where)
    return str(among)


def local_batch(batch: int, length: int, stages: int, tokens: int) -> int:
    """Sequences of a pipeline's micro-batch: an equal part of the batch for each stage, halved down to so many tokens.

    Args:
        batch: sequences of a replica.
        length: tokens of each in a pass.
        stages: of the pipeline; a batch that they do not divide is not cut for them.
        tokens: that a micro-batch has at most, where halving leads there; 0: the software cuts no batch.

    >>> local_batch(32, 128, 2, 1024), local_batch(7, 128, 2, 1024), local_batch(32, 128, 2, 0)
    (8, 7, 32)
    """
    if stages == 1 or not tokens:
        return batch
    found = batch if batch % stages else batch // stages
    while found * length > tokens and found % 2 == 0:
        found //= 2
    return found


def read_pipeline(table: object, label: str) -> int:
    """The table `[pipeline]` of a profile: tokens that a micro-batch has at most; 0 where it cuts no batch.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: pipeline"
    known = table_of(table, ("stage_tokens", "source"), where)
    if not known:
        return 0
    if not is_count(tokens := known.get("stage_tokens")):
        raise InputError(f"{where}.stage_tokens: found {quote(tokens)}, expected a whole number of at least 1")
    text_of(known, "source", where)
    return int(tokens)  # type: ignore[arg-type]


def read_date(table: dict[str, Any], label: str) -> str:
    """The key `date` of a profile, year and month; "" where it has none.

    Raises:
        InputError: it is something else.
    """
    found = table.get("date", "")
    if found and not (isinstance(found, str) and DATE.fullmatch(found)):
        raise InputError(f'{label}: date: found {quote(found)}, expected year and month, as in "2026-04"')
    return str(found)


def is_count(value: object) -> bool:
    """Whether a value of a profile is a whole number of at least 1."""
    return type(value) is int and 1 <= value <= LONGEST
