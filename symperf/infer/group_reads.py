"""How many query heads of a group the attention kernel of a serving software computes in one pass over their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..common.errors import InputError, quote
from .profile_table import table_of

if TYPE_CHECKING:
    from ..models.model import Model

ANY: Final = "any"
KEYS: Final = ("groups", "head_sizes", "cut", "source")


@dataclass(frozen=True)
class GroupReads:
    """The query heads that share one pass over their keys, in attention of new tokens to a cache.

    Attributes:
        groups: sizes of groups that are computed in one pass; None: any size.
        head_sizes: widths of heads for which that holds; None: any width. Others have a pass for each query head.
        cut: a group of another size is computed in parts of the largest size in `groups` that divides it; otherwise it
            has a pass for each query head.
        source: where it is read.
    """

    groups: tuple[int, ...] | None = None
    head_sizes: tuple[int, ...] | None = None
    cut: bool = False
    source: str = ""

    def together(self, group: int, head_size: int) -> int:
        """Query heads of a group that are computed in one pass.

        >>> GroupReads((8,), (128,)).together(8, 128), GroupReads((8,), (128,)).together(16, 128)
        (8, 1)
        >>> GroupReads((2, 4), (128,), cut=True).together(8, 128)
        4
        """
        if self.head_sizes is not None and head_size not in self.head_sizes:
            return 1
        if self.groups is None or group in self.groups:
            return group
        return max((size for size in self.groups if self.cut and group % size == 0), default=1)

    def apart(self, model: Model, tp: int) -> tuple[tuple[str, int], ...]:
        """The counts of the kinds of layers whose groups take several passes on a device, with the heads of a pass.

        >>> from symperf import Model
        >>> GroupReads((8,), (128,)).apart(Model.load("mistral-7b-v0.1"), 1)
        (('num_layers', 1),)
        >>> GroupReads((8,), (128,)).apart(Model.load("llama-2-70b"), 2)
        ()
        """
        found = {}
        for kind in model.architecture.kinds:
            if kind.mixer not in ("attention", "local_attention"):
                continue
            units = -(-model.sizes[kind.size("num_key_value_heads")] // tp)
            group = -(-model.sizes[kind.size("num_attention_heads")] // (tp * units))
            together = self.together(group, model.sizes[kind.size("head_dim")])
            if together < group:
                found[kind.count] = together
        return tuple(sorted(found.items()))


def read(table: object, label: str) -> GroupReads:
    """The table `[group_reads]` of a stack's file.

    Raises:
        InputError: one line with the file, the key, what was found and what was expected.
    """
    from ..systems.quantities import text_of

    known = table_of(table, KEYS, f"{label}: group_reads")
    cut = known.get("cut", False)
    if not isinstance(cut, bool):
        raise InputError(f"{label}: group_reads.cut: found {quote(cut)}, expected true or false")
    groups, head_sizes = (_numbers(known.get(key, ANY), f"{label}: group_reads.{key}") for key in KEYS[:2])
    return GroupReads(groups, head_sizes, cut, text_of(known, "source", f"{label}: group_reads"))


def _numbers(entry: Any, where: str) -> tuple[int, ...] | None:
    if entry == ANY:
        return None
    whole = isinstance(entry, list) and all(type(number) is int and 1 <= number <= 1_000_000 for number in entry)
    if not whole:
        raise InputError(f'{where}: found {quote(entry)}, expected a list of whole numbers of at least 1, or "{ANY}"')
    return tuple(sorted(set(entry)))
