"""A value with its source and spread, and what values a symbol may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from .units import UnitKind


@dataclass(frozen=True)
class Quantity:
    """A value in SI units with where it comes from and, where the data has a spread, its low and high ends."""

    value: float
    source: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Limits:
    """What values a symbol may take: outside `low` to `high` a file has most likely mixed up units."""

    dimension: UnitKind
    low: float
    high: float
    needs: str = ""
    """The symbol without which this one has no meaning; several with `or` between them, of which one is enough."""
    zero: bool = False
    """Whether zero is a meaningful ideal, as for a latency."""

    def meant(self, given: Container[str]) -> bool:
        """Whether the symbol has a meaning beside those that are given."""
        return not self.needs or any(name in given for name in self.needs.split(" or "))
