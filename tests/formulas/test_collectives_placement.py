"""Where the devices of a group lie: how many in the fullest domain, and in how many domains."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collective_cases import value

from symperf.formulas import collectives as c


@pytest.mark.parametrize(
    ("ranks", "stride", "inner", "outer"),
    [
        (1, 1, 1, 1),
        (8, 1, 8, 1),
        (4, 1, 4, 1),
        (16, 1, 8, 2),
        (4, 2, 4, 1),
        (8, 2, 4, 2),
        (8, 8, 1, 8),
        (4, 64, 1, 4),
        (2, 5, 2, 1),
        (2, 6, 2, 1),
        (2, 7, 2, 1),
        (4, 3, 3, 2),
        (12, 1, 8, 2),
    ],
)
def test_placement_by_hand(ranks: int, stride: int, inner: int, outer: int) -> None:
    """A group of `ranks` devices, `stride` apart, in domains of 8."""
    assert value(c.inner_ranks_of(ranks, stride)) == inner
    assert value(c.outer_ranks_of(ranks, stride)) == outer


powers = st.integers(0, 10).map(lambda exponent: 2**exponent)


@given(powers, powers, powers)
def test_placement_counts_devices(ranks: int, stride: int, size: int) -> None:
    """The two counts are those of the devices that the group really has in each domain."""
    domains = Counter(rank * stride // size for rank in range(ranks))
    assert value(c.inner_ranks_of(ranks, stride), scale_up_size=size) == max(domains.values())
    assert value(c.outer_ranks_of(ranks, stride), scale_up_size=size) == len(domains)


counts = st.integers(1, 40)


@given(counts, counts, counts)
def test_placement_of_any_group(ranks: int, stride: int, size: int) -> None:
    """The fullest domain is counted exactly; domains are at most those that the group touches, one if one holds it."""
    domains = Counter(rank * stride // size for rank in range(ranks))
    outer = value(c.outer_ranks_of(ranks, stride), scale_up_size=size)
    assert value(c.inner_ranks_of(ranks, stride), scale_up_size=size) == max(domains.values())
    assert outer <= len(domains)
    assert (outer == 1) == (len(domains) == 1)
