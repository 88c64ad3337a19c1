"""What one look at an installation gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["fine", "missing", "slow", "fault"]
"""Missing is what only some verbs need; slow is what works at the price of time; a fault stops the program."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: of the thing.
        state: whether it is as it should be.
        found: what is there.
        remedy: what helps; empty where it is fine.
    """

    name: str
    state: State
    found: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data; None where nothing has to be done."""
        return asdict(self) | {"remedy": self.remedy or None}
