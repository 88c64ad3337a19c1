"""The rows of a breakdown, and how a notebook shows them."""

from __future__ import annotations

import dataclasses
import html


@dataclasses.dataclass(frozen=True)
class Row:
    """One term of the breakdown.

    Attributes:
        name: the term's path.
        time_s: seconds of the step that the term is responsible for; hidden terms have none.
        theory_s: what is left of them at data-sheet rates, every efficiency 1 and every overhead 0.
        share: of the step time.
        bound: the resource that sets the term's own time.
        flops: FLOPs executed on one device in the step.
        bytes: bytes of device memory and of messages moved by one device in the step.
        count: executions in the step.
        each_s: seconds of one execution.
    """

    name: str
    time_s: float
    theory_s: float
    share: float
    bound: str | None
    flops: float
    bytes: float
    count: float
    each_s: float

    def _repr_html_(self) -> str:
        return Rows([self])._repr_html_()


class Rows(list[Row]):
    """The rows of a breakdown: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        heads = ("term", "time", "at peak", "share", "bound", "executions", "FLOP", "bytes")
        lines = ["<table>", f"<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"]
        for row in self:
            cells = (
                f"{row.time_s:.4g}\u00a0s",
                f"{row.theory_s:.4g}\u00a0s",
                f"{100 * row.share:.1f}\u00a0%",
                html.escape(row.bound or ""),
                f"{row.count:.6g}",
                f"{row.flops:.4g}" if row.flops else "",
                f"{row.bytes:.4g}" if row.bytes else "",
            )
            name = f'<th style="text-align:left;font-weight:normal">{html.escape(row.name)}</th>'
            lines.append(f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        return "\n".join([*lines, "</table>"])
