"""`--plot FILE` of every verb that draws, and the bars that a terminal gets below the tables."""

from __future__ import annotations

import importlib.util
import os
import shlex
from typing import TYPE_CHECKING

from ..common.errors import InputError, quote
from ..common.outputs import check_file
from .output import can_print, console, given_words, is_terminal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ..pictures.figure import Drawable, Sheet
    from ..report.bars import Line

TOLD = "plot: {} cannot be written"


def check_plot(options: argparse.Namespace) -> None:
    """Refuse a picture that cannot be drawn or written, before the work that it is to show.

    Raises:
        InputError: another suffix, matplotlib is not installed, or the file cannot be written, or is written already.
    """
    if options.plot is None:
        return
    from ..pictures.figure import check_suffix

    check_suffix(options.plot)
    check_file(options.plot, TOLD)
    for flag in ("output", "timeline"):
        other = getattr(options, flag, None)
        if other is not None and os.path.realpath(other) == os.path.realpath(options.plot):
            raise InputError(f"plot: {quote(options.plot)} is what --{flag} writes, expected another file")
    if not _is_installed("matplotlib"):
        raise InputError("plot: needs matplotlib, which is not installed: pip install 'symperf[plot]'")


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # it is there, but as nothing
        return False


def write_plot(options: argparse.Namespace, build: Callable[[], Drawable | Sheet]) -> None:
    """Write the picture that is asked for, if one is.

    Raises:
        InputError: there is nothing to draw, or the file cannot be written.
    """
    if options.plot is None:
        return
    from ..pictures.figure import picture

    picture(build(), options.plot, command_of(given_words()))


def command_of(words: Sequence[str]) -> str:
    """The command line of some words, without the file of the picture.

    >>> command_of(("train", "a b", "--plot", "x.svg", "--tp=8", "--plot=y.svg"))
    "symperf train 'a b' --tp=8"
    """
    kept, skipped = ["symperf"], False
    for word in words:
        if skipped or word == "--plot" or word.startswith("--plot="):
            skipped = word == "--plot" and not skipped
            continue
        kept.append(word)
    return shlex.join(kept)


def show_bars(options: argparse.Namespace, build: Callable[[], Sequence[Line]]) -> None:
    """Print bars below the tables, to a person at a terminal who has not turned them off."""
    if not options.bars or options.json or not is_terminal():
        return
    from ..report import bars

    with console() as out:
        bars.show(build(), out, blocks=can_print(bars.EIGHTHS))
