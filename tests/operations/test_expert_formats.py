"""Formats in which tokens go to experts and come back: published bytes, counts of kernels, and laws of a step."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.expert_format_cases import BACK, FP8, THERE, returned, sent
from support.law_cases import few
from support.parallel_cases import parallel, parallel_points
from support.points import Values
from support.strategies import seeds

from symperf.formulas.kernels import expert_formats as fmt
from symperf.formulas.kernels import low_precision as low
from symperf.formulas.kernels import moe
from symperf.formulas.language.symbols import SYMBOLS
from symperf.formulas.parallel import expert_parallel as dealt
from symperf.operations.expert_formats import reads_arrivals
from symperf.plans.structure import SENT


def worth(form: Any, **values: float) -> float:
    """The value of a form over symbols of the vocabulary."""
    return float(
        sympy.sympify(form).xreplace({SYMBOLS[name].symbol: sympy.Float(value) for name, value in values.items()})
    )


# --- what is published


@pytest.mark.parametrize(
    ("element_bytes", "bandwidths", "latencies"),
    [
        (FP8, (98, 63, 48, 43, 39, 39), (77, 118, 155, 173, 192, 194)),
        (2, (127, 74, 53, 46, 39, 40), (114, 195, 273, 314, 369, 360)),
    ],
)
def test_bytes_that_deepep_reports(element_bytes: float, bandwidths: Any, latencies: Any) -> None:
    """DeepEP docs/legacy.md, low-latency kernels, 8 to 256 devices: bandwidth times latency is what was sent.

    128 tokens of 7168 to 8 experts each, FP8 there and BF16 back; both columns are rounded to two or three digits.
    """
    message = float(dealt.dispatch_bytes(128, 8, 7168, element_bytes, 1))
    for bandwidth, latency in zip(bandwidths, latencies, strict=True):
        assert bandwidth * latency * 1e3 == pytest.approx(message, rel=0.025)


def test_bytes_that_deepep_counts() -> None:
    """DeepEP tests/test_low_latency.py: hidden + hidden / 128 * 4 bytes there, beside 16 of a header, 2 hidden back."""
    assert float(dealt.dispatch_bytes(1, 1, 7168, FP8, 1)) == 7168 + 7168 / 128 * 4
    assert float(dealt.dispatch_bytes(1, 1, 7168, 2, 1)) == 2 * 7168
    assert 16 / (7168 * FP8) < 0.0025


@pytest.mark.parametrize(("bandwidth", "seconds"), [(50e9, 120.96e-6), (900e9, 6.72e-6)])
def test_the_speed_limit_of_expert_parallelism(bandwidth: float, seconds: float) -> None:
    """Insights into DeepSeek-V3 (arXiv 2505.09343), section 2.3.2: (1 Byte + 2 Bytes) x 32 x 9 x 7K bytes."""
    message = sum(float(dealt.dispatch_bytes(32, 9, 7000, each, 1)) for each in (1, 2))
    assert message / bandwidth == pytest.approx(seconds, rel=1e-9)


# --- formulas, counted


@given(st.integers(1, 4096), st.integers(1, 8), st.sampled_from([FP8, 0.5625, 1.0, 2.0]))
def test_kernels_that_mix_formats(tokens: int, choices: int, element_bytes: float) -> None:
    """Counted row by row; in the format of activations they are the kernels without conversions."""
    width, half = 128, {"activation_bytes": 2.0}
    rows = tokens * choices
    summed = worth(fmt.mixed_combination_bytes(tokens, choices, width, element_bytes), **half)
    assert summed == pytest.approx(rows * width * element_bytes + tokens * width * 2)
    spread = worth(fmt.mixed_combination_backward_bytes(tokens, choices, width, element_bytes), **half)
    assert spread == pytest.approx(tokens * width * 2 + rows * width * 2 + rows * width * element_bytes)
    if element_bytes == 2:
        counts = (moe.combination_bytes, moe.permutation_backward_bytes, moe.combination_backward_bytes)
        assert [float(count(tokens, choices, width, 2)) for count in counts] == [summed, summed, spread]


@pytest.mark.parametrize(("element_bytes", "there"), [(0.5625, 1), (FP8, 1), (1.99, 1), (2.0, 0), (4.0, 0)])
def test_only_narrower_formats_are_conversions(element_bytes: float, there: int) -> None:
    assert worth(fmt.is_converted(element_bytes), activation_bytes=2.0) == there


def test_what_arrives_cast_needs_one_copy_less() -> None:
    """A cast that writes n_y copies, and the same where one copy is there and the other is made of it."""
    for copies in (1.0, 2.0):
        values = {"activation_bytes": 2.0, "product_input_bytes": 1.0, "cast_copies": copies, "amax_passes": 0.0}
        whole = worth(low.cast_bytes(1000), **values)
        rest = worth(fmt.arrived_copies_bytes(1000, 1.0), **values)
        assert whole == 1000 * (2 + copies)
        assert rest == 1000 * 2 * (copies - 1)


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("layer/experts/up/forward", True),
        ("multi_token/layer/experts/up/recompute", True),
        ("layer/experts/down/backward_input", True),
        ("layer/experts/down/forward", False),
        ("layer/experts/up/backward_input", False),
        ("layer/experts/up/backward_weight", False),
        ("layer/shared/up/forward", False),
        ("layer/mlp/up/forward", False),
    ],
)
def test_which_products_read_what_arrived(path: str, reads: bool) -> None:
    assert reads_arrivals(parallel("deepseek-v3", products="fp8", sent=(THERE,)), path) is reads
    assert not reads_arrivals(parallel("deepseek-v3", products="fp8", sent=(BACK,)), path)
    assert not reads_arrivals(parallel("deepseek-v3", products="fp8"), path)


# --- laws


def case(seed: int, **formats: Any) -> Any:
    """Points of expert parallelism, some with all experts on one device."""
    size = 256
    low_symbols = {"product_input_bytes": 1.0, "cast_copies": 2.0, "amax_passes": 0.0, "weight_copies": 2.0}
    low_symbols |= {"attention_rate": 5e14, "fp8_efficiency": 0.6}
    constants = {name: np.full(size, value) for name, value in (low_symbols | formats).items()}
    return parallel_points(seed, size=size) | constants


@pytest.mark.parametrize("products", ["half", "fp8"])
@given(seed=seeds)
@few
def test_sixteen_bits_stated_are_sixteen_bits(products: str, seed: int) -> None:
    """At every point, to the last bits: conversions are nothing, and the other kernels those of activations."""
    of = parallel("mixtral-8x7b", products=products)
    batch = case(seed)
    plain = Values(of, batch)
    same = Values(dataclasses.replace(of, sent=SENT), batch | dict.fromkeys(SENT, batch["activation_bytes"]))
    assert np.allclose(plain["time"], same["time"], rtol=1e-12)
    added = set(same.operations()) - set(plain.operations())
    assert added
    assert all("/quantise" in path or "/restore" in path for path in added)
    assert not any(np.any(same[path]) for path in added)
    for path in plain.operations():
        assert np.allclose(plain[path], same[path], rtol=1e-12), path


@pytest.mark.parametrize("products", ["half", "fp8"])
@given(seed=seeds, element_bytes=st.floats(0.5, 1.9))
@few
def test_a_format_changes_its_direction_alone(products: str, seed: int, element_bytes: float) -> None:
    """Transfers there are the share of the bytes, those back as they were; and the other way round."""
    batch = case(seed, activation_bytes=2.0)
    of = parallel("mixtral-8x7b", products=products)
    plain = Values(of, batch)
    for name, changed, kept in ((THERE, sent, returned), (BACK, returned, sent)):
        found = Values(dataclasses.replace(of, sent=(name,)), batch | {name: np.full(256, element_bytes)})
        for path in found.operations(lambda path: "/experts/" in path):
            if changed(path) or kept(path):
                share = element_bytes / 2 if changed(path) else 1
                before, after = (each[f"term/{path}/bytes"] for each in (plain, found))
                assert np.allclose(after, share * before, rtol=1e-12), path
                assert np.all(found[path] <= plain[path] * (1 + 1e-12)), path


@given(seed=seeds)
@few
def test_transfers_rise_with_what_an_element_takes(seed: int) -> None:
    of = parallel("deepseek-v3", node_limited=True, products="fp8", sent=SENT)
    batch = case(seed, activation_bytes=4.0)
    found = [Values(of, batch | {name: np.full(256, each) for name in SENT}) for each in (0.5, FP8, 2.0, 3.9)]
    for path in found[0].operations(lambda path: sent(path) or returned(path)):
        for less, more in itertools.pairwise(found):
            assert np.all(less[path] <= more[path] * (1 + 1e-12)), path


@given(seed=seeds)
@few
def test_tokens_are_cast_once(seed: int) -> None:
    """In FP8 products the cast before the dispatch takes the place of one copy of every row after it.

    Where one device holds all experts no token travels, and each is cast as without a stated format.
    """
    batch = case(seed, activation_bytes=2.0)
    dealt_out = batch["ep"] > 1
    of = parallel("mixtral-8x7b", products="fp8")
    plain, found = Values(of, batch), Values(dataclasses.replace(of, sent=(THERE,)), batch | {THERE: np.full(256, 1.0)})

    def each(values: Values, name: str) -> Any:
        (path,) = [path for path in values.operations() if path.endswith(f"layer/experts/{name}")]
        return values[f"term/{path}/bytes"]

    rows = each(plain, "up/cast/forward") / (2 + 2)
    assert np.allclose(each(found, "up/cast/forward"), np.where(dealt_out, 2, 4) * rows)
    assert np.allclose(each(found, "down/cast/backward_input"), np.where(dealt_out, 2, 4) * rows)
    own = rows / batch["num_experts_per_token"] / batch["token_imbalance"] / batch["expert_tp"]
    assert np.allclose(each(found, "quantise/forward"), np.where(dealt_out, 3, 0) * own)
    for name in ("down/cast/forward", "up/cast/backward_input"):
        assert np.allclose(each(found, name), each(plain, name))
