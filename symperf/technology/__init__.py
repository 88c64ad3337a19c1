"""Technology pathfinding: logic nodes, memories and networks; chips from budgets; what chips and their use cost.

Imports `common`, `systems`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazy_names

if TYPE_CHECKING:
    from .chip import Chip as Chip
    from .technology import Technology as Technology
    from .technology import set_names as set_names

_HOMES = {"Chip": "chip", "Technology": "technology", "set_names": "technology"}

__all__ = [*_HOMES]

__getattr__ = lazy_names(__name__, _HOMES)
