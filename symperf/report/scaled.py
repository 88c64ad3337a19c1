"""Numbers in the units that people read."""

from __future__ import annotations

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (0.0, "ns"))
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, ""))


def seconds(value: float) -> str:
    """A time to four digits.

    >>> seconds(13.3812), seconds(0.0032), seconds(0)
    ('13.38 s', '3.2 ms', '0 s')
    """
    if value == 0:
        return "0 s"
    size, unit = next((size, unit) for size, unit in _TIMES if abs(value) >= size)
    return f"{value / (size or 1e-9):.4g} {unit}"


def quantity(value: float, unit: str) -> str:
    """A quantity to four digits with a decimal prefix.

    >>> quantity(3.12e14, "FLOP/s"), quantity(51200, "")
    ('312 TFLOP/s', '51.2 k')
    """
    size, prefix = next((size, prefix) for size, prefix in _SI if abs(value) >= size)
    return f"{value / (size or 1.0):.4g} {prefix}{unit}".strip()


def gibibytes(value: float) -> str:
    """Bytes in GiB (2^30).

    >>> gibibytes(85899345920)
    '80.00 GiB'
    """
    return f"{value / 2**30:.2f} GiB"


def percent(value: float) -> str:
    """A fraction as a percentage.

    >>> percent(0.5136)
    '51.4 %'
    """
    return f"{100 * value:.1f} %"
