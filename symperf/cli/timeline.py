"""`--timeline FILE` of `symperf train`, `infer` and `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.outputs import check_file, write_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..timeline.chrome import Timeline

TOLD = "{verb}: --timeline {{}}: cannot be written"


def check_timeline(options: argparse.Namespace) -> None:
    """Refuse a file that cannot be written, before the work whose timeline it is to hold.

    Raises:
        InputError: it cannot be written.
    """
    if options.timeline is not None:
        check_file(options.timeline, TOLD.format(verb=options.verb))


def write_timeline(options: argparse.Namespace, build: Callable[[], Timeline]) -> None:
    """Write the timeline that is asked for, if one is: before the answer, since a command that fails prints nothing.

    Raises:
        InputError: it cannot be written, or is too long.
    """
    if options.timeline is not None:
        write_file(options.timeline, build().text(), TOLD.format(verb=options.verb))
