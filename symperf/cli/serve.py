"""`symperf serve`."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from ..common.table import show_lines
from ..infer.stack import DEFAULT
from ..models.draft_heads import draft_of
from ..models.model import Model
from ..models.sounds import parse_media
from ..serve.question import build_request
from ..serve.serving import Serving
from ..serve.workload import NAMES
from ..systems.system import System
from .output import console, write_error, write_json
from .plots import check_plot, show_bars, write_plot
from .settings import longest_of, lora_of, plan_of, run_values
from .timeline import check_timeline, write_timeline

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..pictures.figure import Sheet
    from ..timeline.chrome import Timeline

PAUSE = 0.2
"""Seconds between two lines of progress."""
WORK = ("prompt", "generate", "ttft", "tpot", "load", "chunk", "acceptance", "draft_length")


def run(options: argparse.Namespace) -> int:
    """Print the answers for one serving system; 1 where it does not fit, or cannot serve what is asked."""
    from ..report import bars, interval
    from ..report import serving as report
    from ..serve.interval import served_intervals

    check_timeline(options)
    check_plot(options)
    answer = build_serving(options)
    if answer.trace is not None and answer.fits:
        answer.replay(_progress(answer.trace.count))
    ends = served_intervals(answer) if options.interval else {}
    if report.can(answer):
        write_timeline(options, lambda: _timeline(answer))
    if options.json:
        told = {"interval": interval.served_json(ends) if options.interval else None}
        write_json(report.as_json(answer, longest_of(options)) | told)
    else:
        with console() as out:
            report.show(answer, out, longest_of(options))
            show_lines(out, interval.served_lines(ends))
    show_bars(options, lambda: bars.of_serving(answer))
    write_plot(options, lambda: _picture(answer))
    if not report.can(answer):
        if options.timeline is not None:
            write_error("serve: --timeline: there is no steady state of which iterations could be drawn")
        return 1
    return 0


def _timeline(answer: Serving) -> Timeline:
    from ..timeline.serving import serving_timeline

    return serving_timeline(answer)


def _picture(answer: Serving) -> Sheet:
    from ..report.picture_serving import sheet

    return sheet(answer)


def _progress(count: int) -> Callable[[int], None] | None:
    """Tells on a terminal's standard error how much of a trace has ended."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    last = time.monotonic()

    def tell(ended: int) -> None:
        nonlocal last
        now, whole = time.monotonic(), ended == count
        if whole or now - last > PAUSE:
            last = now
            line = "" if whole else f"{ended:,} of {count:,} requests"
            with contextlib.suppress(OSError):
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    return tell


def build_serving(options: argparse.Namespace) -> Serving:
    """The system that the options ask for.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """
    values = run_values(options)
    plan = plan_of(options, values)
    work = {name: values.pop(name, getattr(options, name)) for name in WORK}
    model = Model.load(options.model, options.ignore_key)
    load = {name: values.pop(name, getattr(options, name)) for name in NAMES}
    media = parse_media(options.images, options.frames, options.sounds)
    asked, trace = build_request(work, load, options.trace, media)
    return Serving(
        model,
        System.load(options.system),
        plan,
        asked,
        draft=draft_of(model, options.draft, options.speculate),
        trace=trace,
        stack=DEFAULT if options.stack is None else options.stack,
        kv_precision=options.kv_precision,
        adapters=lora_of(options, model),
        values=values,
        prefill=options.prefill,
    )
