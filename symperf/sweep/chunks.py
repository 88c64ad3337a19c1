"""How a grid is cut: into blocks that follow each other in row-major order."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Block = tuple[slice, ...]


def block_shape(shape: Sequence[int], points: int) -> tuple[int, ...]:
    """The shape of blocks of at most `points` points: whole inner axes, a part of one, single positions of the rest.

    >>> block_shape((8, 10, 100), 300)
    (1, 3, 100)
    """
    found = [1] * len(shape)
    left = max(1, points)
    for k in reversed(range(len(shape))):
        found[k] = min(shape[k], left)
        left //= shape[k]
        if found[k] < shape[k] or left < 1:
            break
    return tuple(found)


def count(shape: Sequence[int], block: Sequence[int]) -> int:
    """How many blocks a grid has."""
    return math.prod(-(-n // b) for n, b in zip(shape, block, strict=True))


def nth(shape: Sequence[int], block: Sequence[int], index: int) -> Block:
    """The block of a number, in row-major order.

    >>> nth((8, 10, 100), (1, 3, 100), 3)
    (slice(0, 1, None), slice(9, 10, None), slice(0, 100, None))
    """
    at = []
    for n, b in reversed(list(zip(shape, block, strict=True))):
        index, k = divmod(index, -(-n // b))
        at.append(slice(k * b, min((k + 1) * b, n)))
    return tuple(reversed(at))


def every(shape: Sequence[int], block: Sequence[int]) -> Iterator[Block]:
    """All blocks, in row-major order."""
    cuts = [[slice(k, min(k + b, n)) for k in range(0, n, b)] for n, b in zip(shape, block, strict=True)]
    return itertools.product(*cuts)


def size(block: Block) -> int:
    """Points of a block."""
    return math.prod(s.stop - s.start for s in block)
