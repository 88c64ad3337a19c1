"""`symperf phase`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .answer import deliver
from .question import build_run, value_of

if TYPE_CHECKING:
    import argparse

POINTS = {False: 33, True: 65}
"""Of the grid along each symbol, without and with a picture."""


def run(options: argparse.Namespace) -> int:
    """Print what binds over two symbols."""
    from ..analysis.phase import phase

    x, y = options.over.replace("-", "_"), options.and_.replace("-", "_")
    first = _range(x, "", options.from_, options.to)
    second = _range(y, "and-", options.and_from_, options.and_to)
    points = POINTS[options.plot is not None] if options.points is None else options.points
    return deliver(phase(build_run(options), x, first, y, second, options.of, points), options)


def _range(name: str, prefix: str, low: str | None, high: str | None) -> tuple[float, float] | None:
    """The ends of a range, or nothing where neither is given.

    Raises:
        InputError: only one is given, or no value of the symbol.
    """
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise InputError(f"phase: --{prefix}from and --{prefix}to go together")
    ends = (value_of(f"phase: --{prefix}{end}", name, text) for end, text in (("from", low), ("to", high)))
    first, last = ends
    assert first is not None
    assert last is not None
    return first, last
