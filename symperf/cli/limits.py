"""`symperf limits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import deliver
from .question import build_run

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print where a quantity goes at the ends of a symbol."""
    return deliver(build_run(options).asymptotics(options.over, options.of), options)
