"""What a host takes for the products of single experts, in the profiles of Megatron and in the script it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.calibration_scripts import script

from symperf.systems.software import Software

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def grouped() -> Iterator[Any]:
    """The script that computes them."""
    with script("grouped") as found:
        yield found


@pytest.mark.parametrize("profile", ["megatron-bridge-2026", "megatron-core-2026", "megatron-core-2024"])
def test_profiles_say_what_the_script_computes(grouped: Any, profile: str) -> None:
    stated = Software.load(profile).values
    experts, casts = stated["expert_operations"], stated["expert_cast_operations"]
    assert (experts.value, experts.high) == pytest.approx((grouped.experts(), grouped.experts(grouped.ALL)), abs=0.01)
    found = grouped.casts(grouped.BLOCKS), grouped.casts(grouped.TENSORS)
    assert (casts.value, casts.high) == pytest.approx(found, abs=0.01)
