"""`symperf limits`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import deliver
from .question import build_run

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print where a quantity goes at the ends of a symbol."""
    from ..analysis.asymptotics import asymptotics

    return deliver(asymptotics(build_run(options), options.over.replace("-", "_"), options.of), options)
