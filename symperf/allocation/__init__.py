"""The best split of a chip's area, power and perimeter for a workload, as a geometric program."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answer import Allocation as Allocation
    from .search import allocate as allocate

_HOMES = {"Allocation": "answer", "allocate": "search"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
