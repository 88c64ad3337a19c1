"""Loads of experts by a power law, against loads that are drawn; and the limits of the kernels' time."""

from __future__ import annotations

import numpy as np
import pytest

from symperf.formulas.kernels.grouped_experts import fused_experts_time, load_variance, skewed_imbalance
from symperf.formulas.language import symbols as sym

TOKENS, EXPERTS, DEVICES = (256, 1024, 8192), (32, 128, 256), (1, 2, 4, 8, 16, 32)


def drawn_imbalance(tokens: int, experts: int, devices: int, skew: float, draws: int = 300) -> float:
    """Rows of the fullest device over the mean, for loads from 1 to T with the density x^-(1 + skew)."""
    u = np.random.default_rng(0).random((draws, experts))
    loads = ((tokens**-skew - 1) * u + 1) ** (-1 / skew)
    of_devices = loads.reshape(draws, devices, -1).sum(2)
    return float(np.mean(of_devices.max(1) / of_devices.mean(1)))


@pytest.mark.parametrize("skew", [0.01, 0.2])
def test_the_fullest_device_is_that_of_drawn_loads(skew: float) -> None:
    """Over 54 sizes; power laws of 1.01 and 1.2 are those of which kernels are measured."""
    errors = [
        float(skewed_imbalance(tokens, experts, devices, skew)) / drawn_imbalance(tokens, experts, devices, skew) - 1
        for tokens in TOKENS
        for experts in EXPERTS
        for devices in DEVICES
    ]
    assert np.median(np.abs(errors)) < 0.04
    assert np.mean(np.abs(errors)) < 0.06


@pytest.mark.parametrize("skew", [0.05, 0.2, 0.5])
def test_the_variance_is_that_of_the_moments(skew: float) -> None:
    """Integrals of x, x^2 and the density over 1 to T, on a fine grid of ln x."""
    tokens = 1e5
    x = np.geomspace(1, tokens, 200_001)
    density = x**-skew
    weight, mean, square = (np.trapezoid(density * x**power, np.log(x)) for power in (0, 1, 2))
    assert float(load_variance(tokens, skew)) == pytest.approx(square * weight / mean**2 - 1, rel=0.02)


def test_many_rows_run_at_the_attained_rate() -> None:
    """The time of many rows tends to work over rate and what passes beside it; that of none is the start."""
    values = {
        sym.expert_latency: 3e-5,
        sym.grouped_efficiency: 0.5,
        sym.expert_memory_efficiency: 0.8,
        sym.expert_passes: 4,
        sym.choice_latency: 0,
        sym.matrix_rate: 1e15,
        sym.memory_bandwidth: 3e12,
        sym.ridge_efficiency: 1,
        sym.activation_bytes: 2,
        sym.tile_thin: 16,
        sym.flop: 1,
    }
    rows = 10**9
    found = float(fused_experts_time(rows, 8, 4096, 4096, 2048, 2, 2, rows).subs(values))
    expected = rows * (2 * 4096 * 6144 / (1e15 * 0.5) + 4 * (4096 + 2048) * 2 / 3e12)
    assert found == pytest.approx(expected, rel=1e-4)
    assert float(fused_experts_time(0, 0, 4096, 4096, 2048, 2, 2, 0).subs(values)) == 3e-5
