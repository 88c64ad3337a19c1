"""The error of a question that has no answer."""

from __future__ import annotations


class Unreachable(Exception):  # noqa: N818
    """A target that no value of the symbol reaches: not bad input, but a question without an answer (exit status 1).

    Attributes:
        limit: the value of the quantity nearest to the target; nothing where it is infinite.
        at: where it is attained or approached.
    """

    def __init__(self, message: str, limit: float | None, at: float) -> None:
        super().__init__(message)
        self.limit = limit
        self.at = at
