"""The time of a product, against measured layers of models that had no part in its constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.calibration_scripts import script

import symperf as sf

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


SYSTEMS = {
    "A100-80GB-SXM4": ("a100-80gb-sxm", "a100-40gb-sxm", "a100-80gb-pcie"),
    "H100-80GB-SXM5": ("h100-sxm", "h100-pcie", "h100-nvl", "h800-sxm"),
    "A40": ("a40",),
}


@pytest.mark.parametrize("part", SYSTEMS)
def test_the_catalogue_has_the_start_that_fits_products_of_few_rows(gemm: Any, part: str) -> None:
    share = gemm.memory_share(gemm.PARTS[part][5])
    everything = gemm.products(part)[0] > 0
    low, high = np.percentile(gemm.thinnest(part, everything, share).excess(), [10, 90])
    for name in SYSTEMS[part]:
        stated = sf.System.load(name).quantities["launch_latency"]
        assert stated.value == pytest.approx(gemm.start(part, everything, share).launch, abs=0.005e-6)
        assert (stated.low, stated.high) == pytest.approx((low, high), abs=0.051e-6)


def test_split_latency_is_the_median_of_three_parts(gemm: Any) -> None:
    found = gemm.second_kernels()
    assert set(found) == {"A100-80GB-SXM4", "H100-80GB-SXM5", "NVIDIA H200"}
    stated = sf.System.load("h100-sxm").quantities["split_latency"]
    wanted = (min(found.values()), np.median(list(found.values())), max(found.values()))
    assert (stated.low, stated.value, stated.high) == pytest.approx(wanted, abs=0.005e-6)


@pytest.mark.parametrize(("part", "most"), [("A100-80GB-SXM4", 0.03), ("H100-80GB-SXM5", 0.036)])
def test_products_of_few_rows_are_met_better_with_the_second_kernel(gemm: Any, part: str, most: float) -> None:
    """Without it, by the same start alone."""
    share, (m, n, k, t) = gemm.memory_share(gemm.PARTS[part][5]), gemm.products(part)
    few, everything = m <= 8, m > 0
    system = sf.System.load("a100-80gb-sxm" if part.startswith("A100") else "h100-sxm")
    efficiency, ridge = system.value("matrix_efficiency"), system.value("ridge_efficiency")
    found = gemm.start(part, everything, share)
    errors = [
        float(np.median(np.abs(gemm.kernel(part, m, n, k, efficiency, share, starts, ridge) / t - 1)[few]))
        for starts in (found, found._replace(second=0.0))
    ]
    assert errors[0] <= most
    assert errors[0] < errors[1]
