"""One plan has one number, whichever surface is asked: command line, Python, grids, searches, derivations, C, pages."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from support import surfaces
from support.answer_laws import draw_run
from support.effort import NIGHTLY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from symperf import Run

SEEDS = range(1, 200 if NIGHTLY else 2)
ROUNDING = 1e-12


def drawn(seed: int) -> Run:
    """The first run that can be, of a seed's draws."""
    rng = random.Random(f"surfaces {seed}")
    while (run := draw_run(rng, "train")) is None:
        pass
    return run  # type: ignore[return-value]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_surface_gives_the_same_number(seed: int, call: Callable[[Any], Any], tmp_path: Path) -> None:
    run = drawn(seed)
    expected = surfaces.of_run(run)
    found = {
        "command": surfaces.of_command(run, call),
        "sweep": surfaces.of_sweep(run),
        "best": surfaces.of_best(run),
        "search": surfaces.of_search(run),
        "bind": surfaces.of_bind(run),
        "derive": surfaces.of_derivation(run),
        "c": surfaces.of_c([run], tmp_path)[0],
    }
    ((found["javascript"], found["explorer"]),) = surfaces.of_javascript([run], tmp_path)
    for surface, pair in found.items():
        assert pair == pytest.approx(expected, rel=ROUNDING), surface
