"""`symperf measure`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from .output import write, write_error, write_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ..measuring.measure import Measured

QUIET = 10.0
"""Seconds between lines of progress where no terminal shows them."""


def run(options: argparse.Namespace) -> int:
    """Measure, and write each row as it comes."""
    from ..measuring.bench import NoDeviceError
    from ..measuring.columns import COLUMNS
    from ..measuring.measure import measure
    from ..measuring.writer import Writer, as_line

    kinds = _kinds(options.only)
    if not 1 <= options.seconds <= 86400:
        raise InputError(f"measure: --seconds: found {options.seconds:g}, expected 1 to 86400")
    writer = Writer(options.output) if options.output is not None else None
    kept: list[Measured] = []
    began = time.monotonic()
    stopped = False
    if writer is None and not options.json:
        take: Callable[[dict[str, Any]], None] | None = _printer(as_line, ",".join(COLUMNS) + "\n")
    else:
        take = writer.add if writer else None
    try:
        measure(options.seconds, kinds, take=take, progress=_progress(began), found=kept.append)
    except NoDeviceError as error:
        write_error(f"measure: {error}")
        return 1
    except KeyboardInterrupt:
        stopped = True
    finally:
        if writer:
            writer.finish()
    measured = kept[0] if kept else None
    seconds = time.monotonic() - began
    if measured is not None:
        _tell(measured, seconds, options.output, options.json)
    if stopped:
        write_error("interrupted: rows measured so far are kept")
        return 130
    return 0


def _kinds(text: str | None) -> tuple[str, ...]:
    from ..measuring.columns import KINDS

    if text is None:
        return KINDS
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in KINDS:
            raise InputError(
                f"measure: --only: found {quote(name)}, expected {' or '.join(KINDS)}{nearest(name, KINDS)}"
            )
    return names


def _printer(as_line: Callable[[dict[str, Any]], str], header: str) -> Callable[[dict[str, Any]], None]:
    heads = [header]

    def take(row: dict[str, Any]) -> None:
        while heads:
            write(heads.pop())
        write(as_line(row))

    return take


def _progress(began: float) -> Callable[[str, int, int, str], None]:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    last = [0.0]

    def tell(kind: str, done: int, planned: int, label: str) -> None:
        now = time.monotonic()
        if sys.stderr is None or now - last[0] < (0.1 if terminal else QUIET):
            return
        last[0] = now
        line = f"{now - began:6.1f} s  {kind} {done} of at most {planned}: {label}"
        with contextlib.suppress(OSError):
            print(
                f"\r\x1b[K{line[:118]}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
            )

    return tell


def _tell(measured: Measured, seconds: float, output: str | None, as_json: bool) -> None:
    counts = Counter(row["kind"] for row in measured.rows)
    if sys.stderr is not None and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if as_json:
        write_json(
            {
                "device": measured.device,
                "torch": measured.torch,
                "output": output,
                "rows": dict(counts),
                "left_out": measured.left,
                "skipped": dict(measured.skipped),
                "seconds": seconds,
                "measurements": None if output else measured.rows,
            }
        )
        return
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    line = f"{measured.device}: {len(measured.rows)} rows ({parts or 'none'}) in {seconds:.0f} s"
    lines = [line + (f", in {output}" if output else "")]
    lines += [f"  {count} {kind} rows left out: the time was over" for kind, count in measured.left.items()]
    lines += [f"  {count} not measured: {why}" for why, count in measured.skipped.items()]
    if output:
        write("\n".join(lines) + "\n")
    elif sys.stderr is not None:
        print("\n".join(lines), file=sys.stderr)
