"""`symperf cross`: where one thing passes another along a symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import check_output, deliver
from .question import build_run, value_of

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print where A passes B."""
    from ..analysis.cross import cross

    check_output(options)
    over = options.over.replace("-", "_")
    symbol = over.removeprefix("a.").removeprefix("b.")
    ends = [
        value_of(flag, symbol, text) for flag, text in (("cross: --from", options.from_), ("cross: --to", options.to))
    ]
    return deliver(cross(build_run(options), options.a, options.b, over, *ends, of=options.of), options)
