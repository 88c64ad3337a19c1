"""How many sequences a serving software runs at once in a replica, unless it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..common.errors import InputError, quote
from .profile_table import table_of
from .scheduling import LONGEST, is_count

if TYPE_CHECKING:
    from collections.abc import Mapping

RESERVED: Final = "reserved"
KEYS: Final = ("sequences", "of_context", "at_most", "source")


@dataclass(frozen=True)
class RunningLimit:
    """The default of a software's option: `--max-num-seqs`, `--max-running-requests`, `--max_batch_size`, `-np`.

    Attributes:
        sequences: that run at once; "reserved": those for which memory is reserved (`max_num_seqs`); None: no limit.
        of_context: sequences for each whole context that the cache holds, where these are more than `sequences`.
        at_most: of them.
        source: where it is read.
    """

    sequences: int | str | None = None
    of_context: int = 0
    at_most: int = LONGEST
    source: str = ""

    def most(self, reserved: float, tokens: int | None, context: int | None) -> int | None:
        """The sequences that run at once, at most; None where only memory limits them.

        Args:
            reserved: sequences for which memory is reserved.
            tokens: that the cache holds; None where nothing in it grows with the length.
            context: the longest that the model is made for; None where it says none.

        >>> RunningLimit(2048, 512, 4096).most(256, 600_000, 131_072)
        2343
        >>> RunningLimit("reserved").most(256, None, None), RunningLimit().most(256, None, None)
        (256, None)
        """
        if self.sequences is None:
            return None
        least = int(reserved if isinstance(self.sequences, str) else self.sequences)
        if not self.of_context or tokens is None or not context:
            return least
        return min(max(tokens * self.of_context // context, least), self.at_most)


def read_running(table: object, label: str) -> RunningLimit:
    """The table `[running]` of a profile.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    where = f"{label}: running"
    known = table_of(table, KEYS, where)
    sequences = known.get("sequences")
    if sequences is not None and sequences != RESERVED:
        _check(known, "sequences", where, f'a whole number of at least 1, or "{RESERVED}"')
    for name in KEYS[1:3]:
        if name in known:
            _check(known, name, where, "a whole number of at least 1")
    if "of_context" in known and sequences is None:
        raise InputError(f"{where}.of_context: found without sequences, expected the least number beside it")
    source = text_of(known, "source", where)
    return RunningLimit(sequences, known.get("of_context", 0), known.get("at_most", LONGEST), source)


def _check(table: Mapping[str, object], name: str, where: str, wanted: str) -> None:
    if not is_count(value := table[name]):
        raise InputError(f"{where}.{name}: found {quote(value)}, expected {wanted}")
