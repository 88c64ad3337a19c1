"""`symperf gains`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import deliver
from .question import build_run

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print what to buy or tune next, or whose the time is."""
    from ..analysis.attribution import attribution
    from ..analysis.gains import gains

    asked = build_run(options)
    return deliver(attribution(asked) if options.by_term else gains(asked, options.of), options)
