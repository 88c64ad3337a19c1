"""The power limit as a bound of lasting products: in 16 bits, on systems that tell what their power sustains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calibrate_cases import write

import symperf as sf
from symperf.codegen.kernel import GridKernel
from symperf.codegen.store import Store
from symperf.common.errors import InputError
from symperf.formulas.kernels import matmul
from symperf.formulas.language.symbols import SYMBOLS
from symperf.systems.system_symbols import Quantity

if TYPE_CHECKING:
    from pathlib import Path

NAME = "sustained_efficiency"
SIZES = st.integers(1, 2**16)
TIMES = st.floats(0.0, 10.0)
STARTS = st.floats(0.0, 1e-3)
PEAK = 989e12


def limited(time: float, start: float, m: int, n: int, k: int, groups: int, share: float) -> float:
    found = matmul.power_limited_time(time, start, m, n, k, groups)
    values = {"matrix_rate": PEAK, NAME: share, "flop": 1.0}
    return float(found.subs({SYMBOLS[name].symbol: value for name, value in values.items()}))


@given(time=TIMES, start=STARTS, m=SIZES, n=SIZES, k=SIZES, groups=st.integers(1, 64), share=st.floats(0.05, 1.0))
def test_the_slower_of_the_product_and_its_energy(
    time: float, start: float, m: int, n: int, k: int, groups: int, share: float
) -> None:
    bound = start + 2.0 * m * n * k * groups / (PEAK * share)
    found = limited(time, start, m, n, k, groups, share)
    assert found == pytest.approx(max(time, bound), rel=1e-12)
    assert limited(2 * time, 2 * start, m, n, k, 2 * groups, share) == pytest.approx(2 * found, rel=1e-12)
    assert limited(time, start, m, n, k, groups, share / 2) >= found


def told(share: float | None) -> sf.System:
    """An H200 whose power sustains this share of the peak, or that does not tell one."""
    system = sf.System.load("h200-sxm")
    kept = {name: quantity for name, quantity in system.quantities.items() if name != NAME}
    if share is not None:
        kept[NAME] = Quantity(share, "a test", None, None)
    return replace(system, quantities=kept)


def times(system: sf.System, precision: str = "bf16") -> dict[str, float]:
    plan = sf.Plan(tp=8, precision=precision)
    run = sf.training(sf.Model.load("llama-2-70b"), system, plan, batch=8, sequence=4096)
    return {row.name: row.each_s for row in run.table()}


def test_a_system_that_tells_nothing_is_as_one_whose_power_sustains_the_peak() -> None:
    assert told(0.5).power_limited
    assert not told(None).power_limited
    assert times(told(None)) == pytest.approx(times(told(1.0)), rel=1e-12)


def test_only_products_pay_and_all_large_ones_do() -> None:
    free, bound = times(told(None)), times(told(0.3))
    slower = {name for name in free if bound[name] > free[name] * (1 + 1e-9)}
    assert {"layer/mlp/up/forward", "layer/mlp/down/forward", "layer/attention/qkv/forward"} <= slower
    assert not {name for name in slower if "norm" in name or "flash" in name or "reduce" in name}
    assert all(bound[name] >= free[name] for name in free)


def test_products_in_eight_bits_have_their_own_sustained_share() -> None:
    """`fp8_efficiency` is a sustained one: linear layers do not pay twice, what stays in 16 bits does."""
    free, bound = times(told(None), "fp8"), times(told(0.3), "fp8")
    slower = {name for name in free if bound[name] > free[name] * (1 + 1e-9)}
    assert not any(name.startswith("layer/mlp") for name in slower)
    assert any("head" in name for name in slower)


def test_a_decode_step_has_too_few_flops_to_notice() -> None:
    runs = [
        sf.inference("llama-2-70b", told(share), sf.Plan(tp=8, precision="fp16"), batch=4, prompt=2048, generate=8)
        for share in (None, 0.3)
    ]
    prompts, tokens = ([run.value(name) for run in runs] for name in ("prefill", "time_per_token"))
    assert prompts[1] > 1.2 * prompts[0]
    assert tokens[1] == pytest.approx(tokens[0], rel=1e-12)


def test_all_back_ends_agree_on_both_sides_of_the_limit(tmp_path: Path) -> None:
    run = sf.training("gpt-22b", told(0.6), sf.Plan(tp=8), batch=8, sequence=2048)
    shares = np.linspace(0.2, 1.0, 33)
    exact = np.array([run.bind(**{NAME: float(share)}).value("time") for share in shares])
    assert np.all(np.diff(exact) <= 0)
    assert exact[0] > exact[-1] == pytest.approx(exact[-2], rel=1e-12)
    np.testing.assert_allclose(run.sweep(**{NAME: shares})["time"].to_numpy(), exact, rtol=1e-12)
    kernel = GridKernel(run.compiled.program, (NAME,), ["time"], store=Store(tmp_path / "kernels"))
    others = {name: value for name, (value, _) in run.bound.items() if name != NAME}
    for tier in ("numpy", "numba"):
        np.testing.assert_allclose(kernel.run({NAME: shares}, others, tier=tier)["time"], exact, rtol=1e-12)


def test_calibrate_finds_what_power_sustains(tmp_path: Path) -> None:
    """From lasting products alone; other loads, few rows and systems without the symbol are left out with a reason."""
    random = np.random.default_rng(3)
    rows = [
        {"kind": "power", "name": "gemm", "dtype": "bf16", "mode": "sustained", "m": m, "n": n, "k": k}
        | {"seconds": 2.0 * m * n * k / (0.66 * PEAK) * random.lognormal(0, 0.03)}
        for m in (4096, 8192)
        for n, k in ((4096, 4096), (6144, 4096), (8192, 8192), (28672, 8192))
    ]
    others = [
        {"kind": "power", "name": "idle", "mode": "sustained", "seconds": 0.02},
        {"kind": "power", "name": "gemm", "dtype": "bf16", "mode": "sustained", "m": 16, "n": 8192, "k": 8192}
        | {"seconds": 1e-4},
    ]
    file = write(tmp_path / "power.csv", [*rows, *others])
    found = sf.calibrate(file, told(0.5), prior=["10"])
    assert found.values == pytest.approx({NAME: 0.66}, rel=0.03)
    assert found.used == len(rows)
    assert set(found.left_out) == {"power rows other than products in 16 bits or fp8", "power rows of few rows"}
    with pytest.raises(InputError, match="the system has no sustained_efficiency"):
        sf.calibrate(file, "a100-80gb-sxm")


def test_lasting_products_in_fp8_set_their_own_share_and_short_ones_do_not(tmp_path: Path) -> None:
    """A product of a few microseconds runs at a clock that no lasting one keeps."""
    launch = sf.System.load("h200-sxm").value("launch_latency")
    rows = [
        {"kind": kind, "name": "gemm", "dtype": "fp8", "mode": mode, "m": 8192, "n": n, "k": k}
        | {"seconds": launch + 2.0 * 8192 * n * k / (share * 1979e12)}
        for kind, mode, share in (("power", "sustained", 0.64), ("gemm", "stream", 0.9))
        for n, k in ((4096, 2048), (2048, 4096), (4096, 1024), (1024, 4096), (2048, 2048), (3072, 2048))
    ]
    found = sf.calibrate(write(tmp_path / "fp8.csv", rows), "h200-sxm", fit=["fp8_efficiency"], prior=["10"])
    assert found.values == pytest.approx({"fp8_efficiency": 0.64}, rel=0.01)
    assert found.used == 6
    assert set(found.left_out) == {"gemm rows in fp8 under 150 us: they are over before power bounds them"}


@pytest.mark.parametrize("precision", ["fp8", "int8"])
def test_no_narrow_format_outruns_what_power_sustains(precision: str) -> None:
    """Prompts in 8 bits take at least the FLOPs over the sustained share of the peak in 8 bits."""
    run = sf.inference("llama-2-7b", "h200-sxm", sf.Plan(precision=precision), batch=8, prompt=4096, generate=2)
    linear = 2.0 * 8 * 4096 * 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert run.value("prefill") > linear / (1979e12 * run.system.value("fp8_efficiency"))


def test_a_generated_chip_that_is_like_another_has_its_limit() -> None:
    made, real = sf.System.from_technology(sf.Technology.load("h100")), sf.System.load("h100-sxm")
    assert made.power_limited
    for name in (NAME, "matrix_efficiency", "attention_efficiency"):
        assert made.value(name) == real.value(name)


@pytest.mark.parametrize("name", ["h100-sxm", "h200-sxm", "h100-96gb-sxm"])
def test_a_step_of_products_draws_what_the_board_may(name: str) -> None:
    """The limit and the energies say the same: a step that products fill draws the board's power within 5 %."""
    plan = sf.Plan(attention="flash", dropout=False, recompute="none")
    energy = sf.training("llama-2-7b", name, plan, batch=8, sequence=4096).energy()
    assert energy.power is not None
    assert 0.85 * energy.power < energy.mean_power < 1.05 * energy.power


def test_rows_that_contradict_themselves(tmp_path: Path) -> None:
    row = {"kind": "power", "name": "gemm", "dtype": "bf16", "m": 8192, "n": 4096, "k": 4096, "seconds": 4e-4}
    with pytest.raises(InputError, match=r"line 2: flops: found 7, expected 2 m n k = 274877906944"):
        sf.calibrate(write(tmp_path / "flops.csv", [row | {"flops": 7}]), "h200-sxm")
    rows = [row | {"mode": "graph", "n": 4096 + 128 * at} for at in range(6)]
    with pytest.raises(InputError, match="power rows of mode graph"):
        sf.calibrate(write(tmp_path / "mode.csv", rows), "h200-sxm")
