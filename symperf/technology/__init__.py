"""Technology pathfinding: logic nodes, memories and networks; chips from budgets; what chips and their use cost."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chip import Chip as Chip
    from .technology import Technology as Technology
    from .technology import set_names as set_names

_HOMES = {"Chip": "chip", "Technology": "technology", "set_names": "technology"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
