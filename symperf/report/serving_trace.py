"""A replayed trace beside the closed form of its means, as a terminal table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.table import Table
from .scaled import quantity, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from ..serve.limits import Targets
    from ..serve.point import LoadPoint
    from ..serve.replay import Replay


def missed(found: Replay, targets: Targets) -> list[str]:
    """The targets that the means of a trace miss, by name."""
    late = targets.ttft is not None and found.ttft_s["mean"] > targets.ttft
    slow = targets.tpot is not None and found.tpot_s is not None and found.tpot_s["mean"] > targets.tpot
    return [name for name, misses in (("ttft", late), ("tpot", slow)) if misses]


def warnings(found: Replay, answer: LoadPoint | None, targets: Targets) -> list[str]:
    """What a trace misses, and that it has no steady state."""
    lines = [f"the trace misses its target of {name}" for name in missed(found, targets)]
    if answer is not None and answer.saturated:
        lines.append(
            f"the rate of the trace, {answer.load:.4g} requests/s, has no steady state: what it measures grows with it"
        )
    return lines


def show(found: Replay, answer: LoadPoint | None, console: Console) -> None:
    """Print the measured times of a trace, and those of the closed form beside them."""
    rate = "all at once" if found.rate is None else f"{found.rate:.5g} requests/s"
    console.print("\nthe trace, event by event", style="bold")
    console.print(
        f"{found.requests:,} requests, {rate}, in the mean {found.input_tokens:.5g} tokens in and "
        f"{found.output_tokens:.5g} out; done after {seconds(found.duration_s)}: output "
        f"{quantity(found.output_tokens_per_s, 'token/s')}, {found.decoding:.4g} sequences decode in the mean"
    )
    table = Table(("time", "mean", "closed form", "p50", "p90", "p99"))
    rows = (
        ("TTFT", found.ttft_s, getattr(answer, "ttft_s", None)),
        ("TPOT", found.tpot_s, getattr(answer, "tpot_s", None)),
        ("ITL", found.itl_s and {"mean": found.itl_s}, getattr(answer, "itl_s", None)),
        ("e2e", found.e2e_s, getattr(answer, "e2e_s", None)),
    )
    for name, times, form in rows:
        if times:
            cells = [seconds(times[each]) if each in times else "" for each in ("p50", "p90", "p99")]
            table.add_row(name, seconds(times["mean"]), "" if form is None else seconds(form), *cells)
    console.print(table)
