"""Cuts a grid into boxes and runs them in threads, so that a sweep can be stopped."""

from __future__ import annotations

import os
import threading
from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Box = tuple[tuple[int, int], ...]

ALONE = 100_000
"""Points that are computed before another thread has started."""
TICK = 0.1
"""Seconds between two looks for an interrupt."""


def default_threads(points: int | None = None) -> int:
    """The processors that this process may use, or of them as many as are worth it for so many points."""
    if points is not None and points < 2 * ALONE:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def boxes(sizes: Sequence[int], grains: Sequence[int], most: int) -> Iterator[Box]:
    """Boxes of about `most` points that together are the grid, cut along the first dimensions.

    Args:
        sizes: points by dimension, in the order in which to cut.
        grains: a cut along a dimension is at a multiple of its grain.
        most: points of a box where that can be.
    """
    pieces = max(1, -(-prod(sizes) // most))
    cuts = []
    for size, grain in zip(sizes, grains, strict=True):
        grained = -(-size // grain)
        count = min(pieces, grained)
        step = -(-grained // count) * grain
        cuts.append([(start, min(start + step, size)) for start in range(0, size, step)])
        pieces = -(-pieces // len(cuts[-1]))
    return product(*cuts)


def run_boxes(todo: Iterator[Box], work: Callable[[int, Box], None], threads: int) -> None:
    """Call `work(number of the thread, box)` for each box. The calling thread is one of them, number 0.

    Raises:
        BaseException: what `work` or a signal raised, after the boxes in progress are done.
    """
    lock = threading.Lock()
    stopped = threading.Event()
    failures: list[BaseException] = []

    def take_boxes(thread: int) -> None:
        while not stopped.is_set():
            with lock:
                box = next(todo, None)
            if box is None:
                return
            work(thread, box)

    def take_safely(thread: int) -> None:
        try:
            take_boxes(thread)
        except BaseException as failure:
            failures.append(failure)
            stopped.set()

    others = [threading.Thread(target=take_safely, args=(thread,)) for thread in range(1, threads)]
    try:
        for other in others:
            other.start()
        take_boxes(0)
        for other in others:
            while other.is_alive():
                other.join(TICK)  # a join without end would not see Ctrl-C
    finally:
        stopped.set()
        for other in others:
            if other.ident is not None:
                other.join()
    if failures:
        raise failures[0]
