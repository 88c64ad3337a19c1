"""What a finished file of a sweep says of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

RECORD = "symperf_sweep"
"""The attribute of a whole file that holds its `SweepRecord`."""


@dataclass(frozen=True)
class SweepRecord:
    """What a whole file says of itself, so that nothing is computed when it is asked for again.

    Attributes:
        identity: of the sweep.
        counts: points by reason.
    """

    identity: dict[str, str]
    counts: dict[str, int]

    def text(self) -> str:
        """The record as JSON."""
        return json.dumps({"identity": self.identity, "counts": self.counts})

    @classmethod
    def read(cls, text: Any) -> SweepRecord | None:
        """What `text` was of, or None where it is of nothing."""
        try:
            found = json.loads(text)
            return cls(dict(found["identity"]), {str(name): int(n) for name, n in found["counts"].items()})
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
