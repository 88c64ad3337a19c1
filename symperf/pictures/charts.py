"""Kinds of charts, made of plain numbers; each draws itself and tells its numbers as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from .scales import GIB, time_unit
from .style import EDGE, PARTS, REST, RULE, SMALL, colour_of, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


NAMES: Final = {"kv_cache": "KV cache", "beside": "beside tensors"}
"""Parts of memory whose names are no words."""


class Numbers(NamedTuple):
    """The numbers of a chart.

    Attributes:
        title: of the chart.
        columns: their names, with units.
        rows: of values.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Chart(Protocol):
    """What is drawn into one pair of axes."""

    @property
    def title(self) -> str:
        """What it shows."""
        ...

    @property
    def height(self) -> float:
        """Inches."""
        ...

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        ...

    def finish(self, axes: Any) -> None:
        """Add what needs to know where everything has come to lie."""
        ...

    def table(self) -> Numbers:
        """Its numbers."""
        ...


class Bar(NamedTuple):
    """A term of a time.

    Attributes:
        name: of the term.
        seconds: of it.
        share: of the whole.
        bound: the resource that sets it; empty where there is none.
    """

    name: str
    seconds: float
    share: float
    bound: str


@dataclass(frozen=True)
class TimeBars:
    """Terms of a time as bars, the first on top, in the colours of what binds them."""

    title: str
    bars: Sequence[Bar]

    @property
    def height(self) -> float:
        """Inches."""
        return 0.75 + 0.21 * max(len(self.bars), 2)

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        size, unit = time_unit(bar.seconds for bar in self.bars)
        places = range(len(self.bars))
        lengths = [bar.seconds / size for bar in self.bars]
        colours = [colour_of(bar.bound, place) for place, bar in enumerate(self.bars)]
        axes.barh(places, lengths, color=colours, height=0.72, **EDGE)
        for place, bar in enumerate(self.bars):
            told = f"{100 * bar.share:.1f} %  {bar.bound.replace('_', ' ')}".rstrip()
            axes.annotate(
                told, (lengths[place], place), (4, 0), textcoords="offset points", va="center", fontsize=SMALL
            )
        axes.set_yticks(places, labels=[shorten(bar.name) for bar in self.bars])
        axes.set_ylim(max(len(self.bars), 2) - 0.4, -0.6)
        axes.set_xlim(0, 1.24 * max(lengths, default=1.0) or 1.0)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"time ({unit})")

    def finish(self, axes: Any) -> None:
        """Nothing more."""

    def table(self) -> Numbers:
        """Its numbers."""
        rows = [(bar.name, bar.seconds, bar.share, bar.bound) for bar in self.bars]
        return Numbers(self.title, ("term", "seconds", "share", "bound"), rows)


@dataclass(frozen=True)
class StageBars:
    """Memory of each stage of a pipeline by part, against what a device has.

    Attributes:
        title: of the chart.
        parts: bytes of each stage by name of the part, in the order in which they are stacked.
        capacity: bytes of a device.
        height: inches.
    """

    title: str
    parts: Mapping[str, Sequence[float]]
    capacity: float
    height: float = field(default=2.6, kw_only=True)

    @property
    def stages(self) -> int:
        """How many there are."""
        return len(next(iter(self.parts.values())))

    def draw(self, axes: Any) -> None:
        """Draw into axes of matplotlib."""
        from matplotlib.ticker import FixedLocator, MaxNLocator

        numbers = range(1, self.stages + 1)
        below = [0.0] * self.stages
        few = self.stages <= 48
        edge = EDGE if few else {"linewidth": 0}
        for name, sizes in self.parts.items():
            if not any(sizes):
                continue
            heights = [size / GIB for size in sizes]
            colour = PARTS.get(name, REST)
            axes.bar(
                numbers, heights, bottom=below, width=0.72 if few else 1.0, color=colour,
                label=NAMES.get(name, name.replace("_", " ")), **edge,
            )  # fmt: skip
            below = [low + more for low, more in zip(below, heights, strict=True)]
        axes.axhline(self.capacity / GIB, **RULE)
        top = 1.16 * max(*below, self.capacity / GIB)
        axes.annotate(
            "capacity", (1, self.capacity / GIB), (-2, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", fontsize=SMALL,
        )  # fmt: skip
        axes.set_ylim(0, top)
        room = max(0.6, 0.02 * self.stages) if self.stages > 1 else 1.6
        axes.set_xlim(1 - room, self.stages + room)
        axes.xaxis.set_major_locator(
            MaxNLocator(nbins=12, integer=True, min_n_ticks=1) if self.stages > 1 else FixedLocator([1])
        )
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("stage of the pipeline" if self.stages > 1 else "device")
        axes.set_ylabel("memory of a device (GiB)")
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))

    def finish(self, axes: Any) -> None:
        """Nothing more."""

    def table(self) -> Numbers:
        """Its numbers."""
        rows = [(stage + 1, *(sizes[stage] for sizes in self.parts.values())) for stage in range(self.stages)]
        return Numbers(self.title, ("stage", *(f"{name.replace('_', ' ')} (B)" for name in self.parts)), rows)
