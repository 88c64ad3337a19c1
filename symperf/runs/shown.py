"""A run as a notebook shows it: what was asked, the answer, and what the time is due to."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from ..analysis.spelling import percent, spell
from ..analysis.strips import shares_strip

if TYPE_CHECKING:
    from .full_run import FullRun

HEADLINE = {
    "training": {"step time": "time", "tokens/s": "tokens_per_s", "MFU": "mfu"},
    "inference": {
        "prefill": "prefill",
        "time per token": "time_per_token",
        "in all": "time",
        "tokens/s": "tokens_per_s",
    },
}
"""What of each kind of run stands first, and the name of the quantity."""


def as_html(run: FullRun) -> str:
    """A run in HTML; where symbols are free, what was asked alone."""
    title = f"<p><strong>{html.escape(repr(run))}</strong></p>"
    if run.free_names:
        return f"{title}\n<p>free: {html.escape(', '.join(sorted(run.free_names)))}</p>"
    cells = {
        head: _spelled(run, name)
        for head, name in HEADLINE["training" if run.kind == "training" else "inference"].items()
    }
    memory, capacity = spell("memory", run.needed_bytes), spell("memory", run.value("capacity_bytes"))
    cells["memory"] = f"{memory} of {capacity}: {'fits' if run.fits else 'does not fit'}"
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{html.escape(head)}</th><td {left}>{html.escape(text)}</td></tr>"
        for head, text in cells.items()
    )
    return f"{title}\n<table>{rows}</table>\n{shares_strip(run.shares())}"


def _spelled(run: FullRun, name: str) -> str:
    value = run.value(name)
    if name == "mfu":
        return percent(value)
    return f"{value:,.0f}" if name == "tokens_per_s" else spell("time", value)
