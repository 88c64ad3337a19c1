"""The time of a product, against measured layers of models that had no part in its constants."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "benchmarks" / "calibration"
NAMES = ("gemm", "bandwidth", "rows")


@pytest.fixture(scope="module")
def gemm() -> Iterator[Any]:
    """The script that fits the constants of products."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("gemm")
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


@pytest.mark.parametrize("part", ["A100-80GB-SXM4", "H100-80GB-SXM5", "A40"])
def test_median_error_on_models_that_were_not_fitted_is_at_most_12_percent(gemm: Any, part: str) -> None:
    share = gemm.memory_share(gemm.PARTS[part][5])
    assert 0 < gemm.held_out(part, share) <= 0.12
