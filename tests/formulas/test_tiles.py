"""Tiles of a product, whole and split along k: the closed forms against loops over tiles, and laws."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracle import evaluate

from symperf.formulas.kernels import matmul, tiles
from symperf.formulas.kernels import thin_matmul as thin
from symperf.formulas.language import symbols as sym

DEVICE = {
    sym.compute_units: 108,
    sym.matrix_rate: 312e12,
    sym.matrix_efficiency: 0.77,
    sym.memory_bandwidth: 2039e9,
    sym.memory_efficiency: 0.785,
    sym.l2_bandwidth: 7219e9,
    sym.l2_efficiency: 0.429,
    sym.l2_capacity: 40 * 2**20,
    sym.ridge_efficiency: 0.7,
    sym.launch_latency: 4.52e-6,
    sym.gap_latency: 0.0,
    sym.graph_removal: 0.0,
    sym.statistic_bytes: 4,
    sym.tile_long: 256,
    sym.tile_wide: 128,
    sym.tile_narrow: 64,
    sym.tile_thin: 16,
    sym.split_inner: 2048,
    sym.split_latency: 1.53e-6,
    sym.flop: 1,
}
"""An A100."""
SIZES = st.integers(1, 20_000)
WHOLE, SPLIT = [(128, 256), (256, 128), (128, 128)], [(128, 256), (64, 128)]


def by_hand(m: int, n: int, k: int, width: float, also: list[tuple[int, int]], second: float = 0.0) -> float:
    """Seconds of a product, tile by tile, in plain Python; `second` are those of a second kernel after a split."""
    units, rate = 108, 312e12 * 0.77
    memory, cache = 2039e9 * 0.785, 7219e9 * 0.429
    moved = max(2 * m * k + width * k * n + 2 * m * n, 2 * m * n * k * 2 * math.sqrt(2 / (40 * 2**20)))
    device = moved / memory
    found = []
    for kind, shapes in (("whole", WHOLE + also), ("split", SPLIT + also)):
        for high, wide in shapes:
            count = -(-m // high) * -(-n // wide)
            waves = -(-count // units)
            parts = max(1, units // count) if kind == "split" else 1
            compute = waves / parts * 2 * high * wide * k * units / rate
            panels = k * (width * n * -(-m // high) + 2 * m * -(-n // wide)) / cache
            sums = 2 * units * min(m, high) * min(n, wide) * 4 / cache if kind == "split" else 0.0
            found.append(max(compute, device, panels) + sums)
    split = width * k * min(n, 64 * 54) / memory + (second if k > 2048 else 0.0) if second else 0.0
    return max(min(found), (2 * m * n * k / rate + device) / 1.4, split) + 4.52e-6


def time(form: Any, **sizes: float) -> float:
    names = {symbol.name: symbol for symbol in form.free_symbols}
    return float(evaluate(form, DEVICE | {names[name]: value for name, value in sizes.items() if name in names}))


def forms() -> tuple[Any, Any]:
    """The product of training, with 16-bit factors, and that of inference, with weights of w bytes."""
    import sympy

    m, n, k, w = sympy.symbols("m n k w", positive=True)
    trained = matmul.tiled_matmul_time(m, n, k, 1, 2, matmul.matmul_bytes(m, n, k, 1, 2, 2, 2))
    served = thin.thin_matmul_time(m, n, k, 1, 2, w, matmul.matmul_bytes(m, n, k, 1, 2, w, 2))
    return trained, served


TRAINED, SERVED = forms()


@given(SIZES, SIZES, SIZES)
def test_a_product_of_training_is_that_of_a_loop_over_tiles(m: int, n: int, k: int) -> None:
    assert time(TRAINED, m=m, n=n, k=k) == pytest.approx(by_hand(m, n, k, 2.0, []), rel=1e-9)


@given(SIZES, SIZES, SIZES, st.sampled_from([0.5, 1.0, 2.0]))
def test_a_product_of_inference_is_that_of_a_loop_over_tiles(m: int, n: int, k: int, width: float) -> None:
    found = by_hand(m, n, k, width, [(16, 128)], second=1.53e-6)
    assert time(SERVED, m=m, n=n, k=k, w=width) == pytest.approx(found, rel=1e-9)


@given(SIZES, SIZES, SIZES)
def test_the_thin_tile_makes_nothing_slower(m: int, n: int, k: int) -> None:
    """Beside the second kernel of a split, which training does not count."""
    served = SERVED.subs(sym.split_latency, 0)
    assert time(served, m=m, n=n, k=k, w=2) <= time(TRAINED, m=m, n=n, k=k) * (1 + 1e-12)


@given(SIZES, SIZES, SIZES, SIZES)
def test_more_rows_never_take_less(few: int, more: int, n: int, k: int) -> None:
    few, more = sorted((few, more))
    for form in (TRAINED, SERVED):
        assert time(form, m=few, n=n, k=k, w=2) <= time(form, m=more, n=n, k=k, w=2) * (1 + 1e-12)


@given(SIZES, SIZES, SIZES)
def test_a_split_is_never_taken_where_it_costs(m: int, n: int, k: int) -> None:
    """A product is never slower than without splits, and never faster than with splits that cost nothing."""
    found = time(TRAINED, m=m, n=n, k=k) - DEVICE[sym.launch_latency]
    device = max(2 * (m * k + k * n + m * n), 2 * m * n * k * 2 * math.sqrt(2 / (40 * 2**20))) / (2039e9 * 0.785)
    corner = (2 * m * n * k / (312e12 * 0.77) + device) / 1.4
    panels = 7219e9 * 0.429
    whole = [
        max(
            float(evaluate(tiles.tiled_compute_time(m, n, k, 1, *tile), DEVICE)),
            device,
            float(evaluate(tiles.matmul_l2_bytes(m, n, k, 1, 2, 2, *tile), DEVICE)) / panels,
        )
        for tile in WHOLE
    ]
    free = float(evaluate(tiles.fewest_passes_time(m, n, k, 1), DEVICE))
    assert found <= max(min(whole), corner) * (1 + 1e-9) + 1e-15
    assert found >= max(min(free, min(whole)), corner, device) * (1 - 1e-9)


def test_partial_sums_go_through_l2_both_ways() -> None:
    """108 units hold a tile of 32-bit sums each, written and read; what is not there of a tile is not."""
    for (rows, columns), held in {(64, 500): 64 * 128, (3, 500): 3 * 128, (64, 8): 64 * 8, (1, 1): 1}.items():
        assert float(evaluate(tiles.split_sum_bytes(rows, columns, 64, 128), DEVICE)) == 2 * 108 * held * 4


@given(SIZES, SIZES, SIZES)
def test_a_product_and_its_mirror_run_on_mirrored_whole_tiles(m: int, n: int, k: int) -> None:
    """Whole tiles come with their mirrors: the fastest whole one takes as long for m x n as for n x m."""
    found = [
        min(float(evaluate(tiles.tiled_compute_time(*sizes, k, 1, *tile), DEVICE)) for tile in tiles.WHOLE)
        for sizes in ((m, n), (n, m))
    ]
    assert found[0] == found[1]
