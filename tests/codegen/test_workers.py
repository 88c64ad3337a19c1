"""Boxes in threads: each once, and a failure in any of them is raised."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from symperf.codegen.workers import boxes, run_boxes


@pytest.mark.parametrize(
    ("sizes", "grains", "most"), [((7, 5, 3), (1, 1, 1), 10), ((3, 1000), (1, 64), 100), ((9,), (4,), 1)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_boxes_cover_the_grid_once(sizes: Any, grains: Any, most: int, threads: int) -> None:
    count = np.zeros(sizes, int)

    def work(_: int, box: Any) -> None:
        assert all(start % grain == 0 for (start, _), grain in zip(box, grains, strict=True))
        count[tuple(slice(*part) for part in box)] += 1

    run_boxes(boxes(sizes, grains, most), work, threads)
    assert (count == 1).all()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_in_any_thread_is_raised(failing: int) -> None:
    """Also by the threads beside the caller's, and the others end."""

    def work(thread: int, box: Any) -> None:
        time.sleep(0.001)
        if thread == failing:
            raise OSError(f"box {box}")

    with pytest.raises(OSError, match="box"):
        run_boxes(boxes([10_000], [1], 10), work, 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_ends_all(threads: int) -> None:
    """What is in progress is done, no box is begun after it."""
    done = []
    before = threading.active_count()

    def work(thread: int, box: Any) -> None:
        if thread == 0 and len(done) > 5:
            raise KeyboardInterrupt
        time.sleep(0.001)
        done.append(box)

    with pytest.raises(KeyboardInterrupt):
        run_boxes(boxes([10_000], [1], 1), work, threads)
    assert len(done) < 10_000
    assert threading.active_count() == before
