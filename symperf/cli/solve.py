"""`symperf solve`: the value of a symbol that meets every target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from .answer import check_output, deliver
from .output import write_json
from .question import build_run, value_of
from .settings import split_settings

if TYPE_CHECKING:
    import argparse

    from ..evaluation.base_run import BaseRun


def run(options: argparse.Namespace) -> int:
    """Print the value that meets every target.

    Raises:
        InputError: no target, one that is given twice, or bad input of the run.
        Unreachable: no value meets them.
    """
    from ..analysis import Unreachable
    from ..analysis.solution import out_of_reach
    from ..analysis.solve import solve

    check_output(options)
    symbol, texts = options.for_.replace("-", "_"), _texts(options)
    low, high = (value_of(f"solve: --{name}", symbol, getattr(options, name)) for name in ("low", "high"))
    answer = build_run(options)
    targets = {name: _target(answer, name, text) for name, text in texts.items()}
    try:
        return deliver(solve(answer, symbol, low=low, high=high, **targets), options)
    except Unreachable as error:
        if options.json:
            write_json(out_of_reach(symbol, targets, error))
        raise


def _texts(options: argparse.Namespace) -> dict[str, str]:
    """The target of each quantity, as it is written."""
    texts = {name: getattr(options, name) for name in ("time", "memory") if getattr(options, name) is not None}
    for name, text in split_settings(options.of, "--of", "QUANTITY=VALUE").items():
        if name in texts:
            raise InputError(f"solve: {name} has two targets, expected one")
        texts[name] = text
    if not texts:
        raise InputError(
            'solve: no target, expected --time T, --memory M or --of QUANTITY=VALUE, such as --time "20 ms"'
        )
    return texts


def _target(run: BaseRun, name: str, text: str) -> float:
    """The target of a quantity; of one that the run does not have, that is the error, and not its unit."""
    from ..analysis.subject import subject_of

    try:
        return float(value_of("solve: target", name, text) or 0.0)
    except InputError:
        subject_of(run, name, "solve")
        raise
