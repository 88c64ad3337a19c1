"""Measurement against prediction, on logarithmic axes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from ..common.extras import import_extra
from ..common.pictures import own_style, write_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .case import Scored

KINDS = {
    "times in seconds": ("time_s", "prefill_s", "decode_s", "time_per_token_s", "layer_time_s"),
    "tokens/s": ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s"),
    "TFLOP/s a device": ("tflops_per_device",),
    "bytes a device": ("memory_bytes",),
}
"""What is drawn together -> the quantities of it."""
FORMATS = ("png", "svg")


def check_format(path: str) -> str:
    """The type of a figure's file, by the end of its name.

    Raises:
        InputError: it is not one that can be drawn, or matplotlib is not installed.
    """
    found = Path(path).suffix.lower().removeprefix(".")
    if found not in FORMATS:
        raise InputError(f"plot: found {quote(path)}, expected a file that ends in {' or '.join(FORMATS)}")
    import_extra("matplotlib", "plot", "plot")
    return found


def draw(scored: Sequence[Scored], path: str) -> bytes:
    """The figure: one panel for each kind of quantity, one colour for each family.

    Args:
        scored: what to draw.
        path: of its file; the end of its name says the type.

    Raises:
        InputError: another type, nothing to draw, or matplotlib is not installed.
    """
    suffix = check_format(path)
    panels = [(title, found) for title, names in KINDS.items() if (found := [r for r in scored if r.quantity in names])]
    if not panels:
        raise InputError("plot: no row is scored, so there is nothing to draw")
    with own_style() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(6.5 * min(len(panels), 2), 5.5 * -(-len(panels) // 2)))
        for number, (title, rows) in enumerate(panels):
            _panel(figure.add_subplot(-(-len(panels) // 2), min(len(panels), 2), number + 1), title, rows, matplotlib)
        write_plain(figure)
        figure.tight_layout()
        out = io.BytesIO()
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        figure.savefig(out, format=suffix, dpi=120, metadata=metadata)
    return out.getvalue()


def _panel(axes: Any, title: str, rows: Sequence[Scored], matplotlib: Any) -> None:
    families = list(dict.fromkeys(row.source for row in rows))
    colours = matplotlib.colormaps["tab20"]
    for number, family in enumerate(families):
        own = [row for row in rows if row.source == family]
        axes.plot(
            [row.measured for row in own],
            [row.predicted for row in own],
            marker="osD^v<>"[number // 20 % 7],
            linestyle="",
            markersize=3,
            alpha=0.7,
            color=colours(number % 20),
            label=f"{family} ({len(own)})",
        )
    ends = [
        min(min(r.measured, r.predicted) for r in rows) / 1.3,
        max(max(r.measured, r.predicted) for r in rows) * 1.3,
    ]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.fill_between(ends, [end * 0.9 for end in ends], [end * 1.1 for end in ends], color="black", alpha=0.1, lw=0)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, title=f"{title}; grey: within 10 %")
    axes.set(xlabel="measured", ylabel="predicted")
    axes.legend(fontsize="x-small", frameon=False)
