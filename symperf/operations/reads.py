"""What is made of a structure, made once for all structures that agree in what was read of it.

Structures of a search differ in a few choices, and most that is made of them depends on fewer: the passes of a layer
on no schedule, the state of the optimizer on no recomputation. While a function that is `remembered` runs, the
structure it is given notes what is read of it, in order. What was read first says what is read next; so the results of
a function are the leaves of a tree, whose branches are the values read, and a structure that takes the same branches
has the same result.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..formulas.language.formula import is_memoizing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..plans.structure import Structure

Made = TypeVar("Made")
MOST = 20_000
"""Results that are kept; then all are forgotten."""
_known: dict[tuple[Any, ...], _Node] = {}
_count = 0
_lock = threading.RLock()
"""Of all trees while one grows: structures may be built in several threads."""


class _Node:
    """Of a tree: either the result, or what is read next, and by its value the next nodes."""

    __slots__ = ("found", "made", "name", "next")

    def __init__(self) -> None:
        self.name: str | None = None
        self.next: dict[Any, _Node] = {}
        self.made = False
        self.found: Any = None


class _Reader:
    """Stands for a structure, and notes what is read of it.

    It may be used while the function runs that it was given to, and no longer: later reads would not be noted.
    """

    def __init__(self, structure: Any, changed: dict[str, Any] | None = None) -> None:
        self._structure, self._changed = structure, changed or {}
        self._reads: dict[str, Any] | None = {}

    def __getattr__(self, name: str) -> Any:
        if self._reads is None:
            raise RuntimeError(f"{name} of a structure is read after what is made of it was remembered")
        if name in self._reads:
            return self._reads[name]
        if name in self._changed:
            return self._changed[name]
        computed = inspect.getattr_static(class_of(self), name, None)
        if isinstance(computed, property) and self._changed:  # of fields, of which some are changed
            assert computed.fget is not None
            return computed.fget(self)
        if inspect.isfunction(computed):
            return functools.partial(computed, self)
        found = self._reads[name] = getattr(self._structure, name)
        return found


def class_of(structure: Any) -> type:
    """The class of a structure, or of that which a reader stands for."""
    while isinstance(structure, _Reader):
        structure = structure._structure
    return type(structure)


def changed(structure: Structure, **fields: Any) -> Structure:
    """A structure with other values of some fields; what is read of one that notes its reads is noted still."""
    if isinstance(structure, _Reader):
        return cast("Structure", _Reader(structure, fields))
    import dataclasses

    return dataclasses.replace(structure, **fields)


def remembered(function: Callable[..., Made]) -> Callable[..., Made]:
    """A function of a structure, and of arguments that can be hashed, whose result holds no structure.

    While formulas are memoized (`memoize_formulas`) it is made once for what is read of structures.
    """

    @functools.wraps(function)
    def call(structure: Structure, *given: Any) -> Made:
        if not is_memoizing():
            return function(structure, *given)
        root = _root((function, *given))
        node: _Node | None = root
        while node is not None and node.name is not None:
            node = node.next.get(getattr(structure, node.name))
        if node is not None and node.made:
            return cast("Made", node.found)
        reader = _Reader(structure)
        found = function(cast("Structure", reader), *given)
        reads, reader._reads = reader._reads, None
        assert reads is not None
        _keep(root, reads, structure, found)
        return found

    return call


def _root(key: tuple[Any, ...]) -> _Node:
    """The tree of a function and its other arguments."""
    global _count
    with _lock:
        if _count >= MOST:
            _known.clear()
            _count = 0
        return _known.setdefault(key, _Node())


def _keep(root: _Node, reads: dict[str, Any], structure: Structure, found: Any) -> None:
    """Put a result where what was read leads.

    The tree is walked anew: while the result was made, another thread may have let it grow.
    """
    global _count
    left, node = dict(reads), root
    with _lock:
        while node.name is not None or left:
            if node.name is None:
                node.name = next(iter(left))
            value = left.pop(node.name) if node.name in left else getattr(structure, node.name)
            node = node.next.setdefault(value, _Node())
        node.found, node.made = found, True
        _count += 1
