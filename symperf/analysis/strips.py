"""Parts of a whole as a strip of colours in HTML, with a legend below: what notebooks show of shares and regimes."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..pictures.style import colour_of
from .spelling import percent, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .regimes_answer import Regimes

LEAST = 0.0005
"""The share below which a resource is not shown."""


@dataclass(frozen=True)
class Part:
    """One stretch of a strip: what it is of, its length against the others', and what is said of it."""

    name: str
    length: float
    words: str


def strip(parts: Iterable[Part]) -> str:
    """A strip of stretches, which are named below it in their order."""
    every = list(parts)
    names = list(dict.fromkeys(part.name for part in every))
    colours = {name: colour_of(name, place) for place, name in enumerate(names)}
    told = html.escape("; ".join(f"{part.name} {part.words}" for part in every))
    bars = "".join(
        f'<div title="{html.escape(f"{part.name} {part.words}")}" '
        f'style="flex:{part.length:.6f} 1 0;background:{colours[part.name]}"></div>'
        for part in every
    )
    legend = " ".join(
        f'<span style="white-space:nowrap;margin-right:1em"><span style="color:{colours[part.name]}">&#9632;</span> '
        f"{html.escape(part.name)} {html.escape(part.words)}</span>"
        for part in every
    )
    return (
        f'<div role="img" aria-label="{told}" style="display:flex;height:1.2em;max-width:46em">{bars}</div>'
        f"<div>{legend}</div>"
    )


def shares_strip(shares: Mapping[str, float]) -> str:
    """Shares of resources, the largest first; what has next to none is left out."""
    largest = sorted(shares.items(), key=lambda item: -item[1])
    return strip(Part(name, share, percent(share)) for name, share in largest if share >= LEAST)


def regime_strip(regimes: Regimes) -> str:
    """The stretches of a symbol, each as long as its range is on a logarithmic axis, coloured by what binds."""

    def length(low: float, high: float) -> float:
        return math.log(high / low) if 0 < low < high else 0.0

    ends = [*(span.low for span in regimes.spans[1:]), regimes.spans[-1].high]
    every = [
        Part(
            span.bound or "no resource",
            length(span.low, end),
            f"from {spell(regimes.symbol, span.low)} to {spell(regimes.symbol, span.high)}",
        )
        for span, end in zip(regimes.spans, ends, strict=True)
    ]
    return strip(every)
