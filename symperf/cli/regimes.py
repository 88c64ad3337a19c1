"""`symperf regimes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import deliver
from .question import build_run, value_of

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print what binds along a symbol."""
    from ..analysis.regimes import regimes
    from ..analysis.spans import BAND

    name = options.over.replace("-", "_")
    answer = regimes(
        build_run(options),
        name,
        value_of("regimes: --from", name, options.from_),
        value_of("regimes: --to", name, options.to),
        options.of,
        options.view,
        band=0.0 if options.all else BAND if options.band is None else options.band,
    )
    return deliver(answer, options)
