"""The best split of a chip's area, power and perimeter for a workload, as a geometric program.

Imports `common`, `derive`, `runs`, `systems`, `technology`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.lazy import lazy_names

if TYPE_CHECKING:
    from .answer import Allocation as Allocation
    from .search import allocate as allocate

_HOMES = {"Allocation": "answer", "allocate": "search"}

__all__ = [*_HOMES]

__getattr__ = lazy_names(__name__, _HOMES)
