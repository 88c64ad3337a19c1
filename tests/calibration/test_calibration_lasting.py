"""What long products and prompts reach on Blackwell, in the catalogue and in the tables of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.calibration_scripts import script

from symperf.validation.kernels.formats import system_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def lasting() -> Iterator[Any]:
    """The script that computes them."""
    with script("lasting") as found:
        yield found


@pytest.mark.parametrize("device", ["b200_sxm", "gb200", "b300_sxm", "gb300"])
@pytest.mark.parametrize("name", ["sustained", "attention", "fp8", "fp4"])
def test_the_catalogue_says_what_the_script_computes(lasting: Any, device: str, name: str) -> None:
    found = lasting.narrow(device, name) if name in lasting.NARROW else getattr(lasting, name)(device)
    stated = system_of(device).quantities[f"{name}_efficiency"]
    assert (stated.value, stated.low, stated.high) == pytest.approx((found.value, found.low, found.high), abs=0.001)
    assert f"lasting.py, {found.rows} " in stated.source


@pytest.mark.parametrize("device", ["b200_sxm", "b300_sxm"])
def test_a_rack_at_its_clock_reaches_what_a_board_does(lasting: Any, device: str) -> None:
    """FLOP/s of the same chip: the peak of a GB200 is 11 % above a B200's, what power leaves is not."""
    rack = device[:-4].replace("b", "gb")
    reached = [lasting.sustained(each).value * system_of(each).matrix_rate("bf16").value for each in (device, rack)]
    assert 0.95 < reached[1] / reached[0] < 1.4


def test_scans_of_the_catalogue_take_what_the_script_computes(lasting: Any) -> None:
    """Mamba-2's kernels take the time of almost three times the bytes that they move, on all of Blackwell."""
    found = lasting.scans()
    for device in ("b200_sxm", "gb200", "b300_sxm", "gb300"):
        stated = system_of(device).quantities["ssd_passes"]
        assert (stated.value, stated.low, stated.high) == pytest.approx((found.value, found.low, found.high), abs=0.01)
