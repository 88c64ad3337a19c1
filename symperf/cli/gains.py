"""`symperf gains`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import deliver
from .question import build_run

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print what to buy or tune next, or whose the time is."""
    asked = build_run(options)
    return deliver(asked.attribution() if options.by_term else asked.gains(options.of), options)
