"""The time of a product, against measured layers of models that had no part in its constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from calibration_scripts import script

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def gemm() -> Iterator[Any]:
    """The script that fits the constants of products."""
    with script("gemm") as found:
        yield found


@pytest.mark.parametrize("part", ["A100-80GB-SXM4", "H100-80GB-SXM5", "A40"])
def test_median_error_on_models_that_were_not_fitted_is_at_most_12_percent(gemm: Any, part: str) -> None:
    share = gemm.memory_share(gemm.PARTS[part][5])
    assert 0 < gemm.held_out(part, share) <= 0.12
