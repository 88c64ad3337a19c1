"""The curves of equal time and of equal cost as a picture: tokens over numbers of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spent import IsoPoint

DAY = 86400.0
COLORS = ("#4477aa", "#ee6677")


@dataclass(frozen=True)
class IsoCurves:
    """What each number of devices trains on within a time, and for a sum.

    Attributes:
        points: of each number of devices.
        title: of the picture.
    """

    points: list[IsoPoint]
    title: str

    def curves(self) -> list[tuple[str, list[tuple[int, int]]]]:
        """Each curve with its name, and its devices and tokens; where no plan fits, there is no point."""
        seconds, dollars = self.points[0].seconds, self.points[0].dollars
        asked = []
        if seconds is not None:
            asked.append((f"in {seconds / DAY:.4g} days", [each.tokens_in_time for each in self.points]))
        if dollars is not None:
            asked.append((f"for {dollars:,.0f} dollars", [each.tokens_for_cost for each in self.points]))
        devices = [each.point.devices for each in self.points]
        return [
            (name, [(n, count) for n, count in zip(devices, tokens, strict=True) if count]) for name, tokens in asked
        ]

    def draw(self, axes: Any) -> None:
        """Draw the curves into axes of matplotlib."""
        for (name, places), color in zip(self.curves(), COLORS, strict=False):
            axes.plot(
                [n for n, _ in places], [count for _, count in places], "o-", markersize=4, color=color, label=name
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.legend(fontsize="small")
        axes.set_xlabel("devices")
        axes.set_ylabel("tokens trained on")
        axes.set_title(self.title, fontsize="medium")
