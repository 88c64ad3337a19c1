"""Which kinds of layers come before which in a model: what stages of a pipeline hold follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def segments(runs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """The kinds of a model in groups: each group's layers all come before those of the next.

    Kinds whose layers interleave are of one group. Groups are as many as can be.

    Args:
        runs: the layers in order, as pairs of a kind and how many of it follow one another.

    >>> segments([(0, 3), (1, 58)])
    ((0,), (1,))
    >>> segments([(0, 1), (1, 2), (2, 1), (1, 2), (2, 1)])
    ((0,), (1, 2))
    """
    last = {kind: at for at, (kind, _) in enumerate(runs)}
    found: list[tuple[int, ...]] = []
    group: list[int] = []
    until = 0
    for at, (kind, _) in enumerate(runs):
        if kind not in group:
            group.append(kind)
        until = max(until, last[kind])
        if at == until:
            found.append(tuple(group))
            group = []
    return tuple(found)
