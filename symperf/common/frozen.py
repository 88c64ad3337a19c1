"""A mapping that cannot be changed, so that what holds it can be hashed, shared and copied freely."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


class HashOnce:
    """A frozen dataclass of many fields, whose hash is computed once: it says `__hash__ = HashOnce.__hash__`."""

    def __hash__(self) -> int:
        known = vars(self)
        if "_hash" not in known:
            known["_hash"] = hash(tuple(known[each.name] for each in dataclasses.fields(self)))  # type: ignore[arg-type]
        return cast("int", known["_hash"])

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash: those of texts differ from process to process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


class Frozen(Mapping[str, T]):
    """An immutable, hashable mapping from names; it is its own copy.

    >>> sizes = Frozen({"hidden_size": 4096})
    >>> sizes, sizes == {"hidden_size": 4096}
    ({'hidden_size': 4096}, True)
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, T]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)

    def __deepcopy__(self, memo: dict[int, Any]) -> Frozen[T]:
        return self

    def __reduce__(self) -> tuple[type[Frozen[T]], tuple[dict[str, T]]]:
        return Frozen, (self._items,)
