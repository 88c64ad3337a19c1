"""A mapping that cannot be changed, so that what holds it can be hashed, shared and copied freely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


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
