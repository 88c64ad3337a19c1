"""Scans of Mamba-2 in training, where a system knows what their kernels take."""

from __future__ import annotations

import pytest

import symperf as sf


def scans(system: str) -> dict[str, float]:
    """Seconds of the scans of a step, and the bytes that they move, by pass."""
    run = sf.training("mamba2-2.7b", system, sf.Plan(micro_batch=8), batch=8, sequence=2048)
    return {row.name.rsplit("/", 1)[1]: row.time_s / row.bytes for row in run.table() if "/scan/" in row.name}


def test_scans_on_blackwell_take_the_time_of_several_passes() -> None:
    system = sf.System.load("b200-sxm")
    attained = system.value("memory_bandwidth") * system.value("memory_efficiency")
    expected = system.value("ssd_passes") / attained
    assert scans("b200-sxm") == pytest.approx({"forward": expected, "backward": expected}, rel=0.05)


def test_elsewhere_they_take_that_of_their_bytes() -> None:
    system = sf.System.load("a100-80gb-sxm")
    attained = system.value("memory_bandwidth") * system.value("memory_efficiency")
    assert "ssd_passes" not in system.quantities
    assert scans("a100-80gb-sxm")["forward"] == pytest.approx(1 / attained, rel=0.3)
