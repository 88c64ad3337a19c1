"""Axes in units that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
GIB: Final = 2.0**30
WIDE: Final = 20.0
"""Ratio of the largest and the smallest from which an axis is logarithmic."""
DECADE: Final = 10.0
SHORT: Final = 500.0
"""Ratio of the ends of a logarithmic axis below which 2 and 5 have numbers too."""
LARGE: Final = 1e4
"""From here on numbers have prefixes."""


def time_unit(values: Iterable[float]) -> tuple[float, str]:
    """The seconds of the unit that suits the largest time, and the unit.

    >>> time_unit([0.02, 3e-7]), time_unit([])
    ((0.001, 'ms'), (1.0, 's'))
    """
    largest = max(values, default=1.0)
    return next(((size, unit) for size, unit in TIMES if largest >= size), TIMES[-1] if largest else TIMES[0])


def is_wide(values: Iterable[float]) -> bool:
    """Whether values are all above 0 and so far apart that their axis is logarithmic."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) > WIDE * min(found)


def prefixed(axis: Any, label: str) -> None:
    """Numbers of an axis with decimal prefixes, 10 G and not 1e10; of a short logarithmic one 2 and 5 as well."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high < SHORT * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(EngFormatter(sep=" "))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(label)


def scale(axis: Any, values: Iterable[float], label: str) -> None:
    """The scale and the label of an axis, by the values along it: logarithmic where they are far apart."""
    found = list(values)
    axis.set_label_text(label)
    if is_wide(found):
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        ends = decades(min(found), max(found), 1.2)
        getattr(axis.axes, f"set_{axis.axis_name}lim")(*ends)
        prefixed(axis, label)
    elif found and max(map(abs, found)) >= LARGE:
        prefixed(axis, label)


def decades(low: float, high: float, margin: float = 1.6) -> tuple[float, float]:
    """The ends of a logarithmic axis with room around the values, one decade apart at least."""
    low, high = low / margin, high * margin
    if high < DECADE * low:
        more = (DECADE * low / high) ** 0.5
        low, high = low / more, high * more
    return low, high
