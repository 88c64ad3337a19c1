from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symperf.common.errors import InputError
from symperf.systems import units
from symperf.systems.units import UnitKind, parse, spell

DIMENSIONS = [
    units.RATE,
    units.BANDWIDTH,
    units.BYTES,
    units.TIME,
    units.POWER,
    units.PRICE,
    units.FRACTION,
    units.COUNT,
]
PAIRS = [(dimension, unit) for dimension in DIMENSIONS for unit in dimension.units]
NUMBERS = st.floats(1e-6, 1e9, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("2039 GB/s", units.BANDWIDTH, 2039e9),
        ("4.8 TB/s", units.BANDWIDTH, 4.8e12),
        ("200 Gb/s", units.BANDWIDTH, 25e9),
        ("400Gbps", units.BANDWIDTH, 50e9),
        ("1 GiB/s", units.BANDWIDTH, 2.0**30),
        ("312 TFLOP/s", units.RATE, 312e12),
        ("312TFLOPS", units.RATE, 312e12),
        ("624 TOP/s", units.RATE, 624e12),
        ("5 us", units.TIME, 5e-6),
        ("5 µs", units.TIME, 5e-6),
        ("80 GB", units.BYTES, 80e9),
        ("40 MiB", units.BYTES, 40 * 2.0**20),
        (" 400  W ", units.POWER, 400),
        ("25000 USD", units.PRICE, 25000),
        ("0.8", units.FRACTION, 0.8),
        ("80 %", units.FRACTION, 0.8),
        ("1.5e-6 s", units.TIME, 1.5e-6),
        ("108", units.COUNT, 108),
    ],
)
def test_reads(text: str, dimension: UnitKind, value: float) -> None:
    assert parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        ("80 GB", units.BANDWIDTH, "one of a size"),
        ("80 GB/s", units.BYTES, "one of a bandwidth"),
        ("2039", units.BANDWIDTH, "no unit"),
        ("2039 gb/s", units.BANDWIDTH, "case matters: GB/s or Gb/s"),
        ("80 gb", units.BYTES, "case matters: GB"),
        ("80 Gb", units.BYTES, "case matters: GB"),
        ("5 MS", units.TIME, "case matters: ms"),
        ("5 sec", units.TIME, "unknown"),
        ("312 TFLOP", units.RATE, "did you mean"),
        ("fast", units.RATE, "does not begin with a plain number"),
        ("", units.RATE, "does not begin with a plain number"),
        ("nan GB/s", units.BANDWIDTH, "does not begin with a plain number"),
        ("inf s", units.TIME, "does not begin with a plain number"),
        ("2,039 GB/s", units.BANDWIDTH, "unknown"),
        ("1e999 GB", units.BYTES, "beyond the range"),
        ("80 %", units.COUNT, "one of a fraction"),
    ],
)
def test_refuses(text: str, dimension: UnitKind, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, dimension)
    line = str(caught.value)
    assert says in line
    assert dimension.example in line
    assert "\n" not in line


@given(st.sampled_from(PAIRS), NUMBERS)
def test_every_unit_is_its_factor(pair: tuple[UnitKind, str], number: float) -> None:
    dimension, unit = pair
    expected = number * dimension.units[unit]
    assert math.isclose(parse(f"{number!r} {unit}", dimension), expected, rel_tol=1e-12)


@given(st.sampled_from(DIMENSIONS), NUMBERS)
def test_what_is_written_reads_back(dimension: UnitKind, number: float) -> None:
    assert math.isclose(parse(spell(number, dimension), dimension), number, rel_tol=1e-3)


@given(st.text(max_size=20), st.sampled_from(DIMENSIONS))
def test_any_text_is_a_finite_number_or_one_clear_line(text: str, dimension: UnitKind) -> None:
    try:
        value = parse(text, dimension)
    except InputError as error:
        line = str(error)
    else:
        line = repr(value)
        assert math.isfinite(value)
    assert "\n" not in line
