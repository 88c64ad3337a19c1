"""The section of `docs/accuracy.md` on servers with requests in flight: by system, software, model and concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symperf.validation.report import share
from symperf.validation.serving import CLASSES, SOURCES, class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symperf.validation.case import Scored
    from symperf.validation.score import Report

PLACES = {"software": 0, "model": 1, "system": 2}
"""Places of these in the text of a case, behind its id."""
HEADS = ("rows", "TPOT median", "mean", "bias", "TTFT median", "mean", "bias")


def section(found: Report) -> list[str]:
    """The lines of the section; none without a row."""
    rows = [row for row in found.scored if row.source in SOURCES.values()]
    if not rows:
        return []
    lines = ["## Servers with requests in flight", ""]
    lines += [
        "Mean time to the first token (TTFT) and of each later one (TPOT) of whole servers, mostly of InferenceX,"
    ]
    lines += [
        "which holds a number of requests in flight. Rows of `use` = calibration set constants of the profiles and are"
    ]
    lines += [
        "left out; so are two pools whose numbers of instances are not told. Of two pools TTFT is that of a router that"
    ]
    lines += ["sends each prompt on at once.", ""]
    for title, kind in kinds().items():
        names = [name for _, name in CLASSES] if title == "in flight" else sorted({kind(row) for row in rows})
        lines += [f"| {title} | {' | '.join(HEADS)} |", "|---|" + "---:|" * len(HEADS)]
        for name in names:
            some = [row for row in rows if kind(row) == name]
            lines += [f"| {name} | {' | '.join(numbers(some))} |"] if some else []
        lines.append("")
    every = f"| all | {' | '.join(numbers(rows))} |"
    return [*lines[:-1], every]


def kinds() -> dict[str, Callable[[Scored], str]]:
    """What rows are told apart by."""

    def part(place: int) -> Callable[[Scored], str]:
        return lambda row: words(row)[place]

    found = {title: part(place) for title, place in PLACES.items()}
    return {**found, "layout": layout, "in flight": lambda row: class_of(int(words(row)[-1].split()[0]))}


def layout(row: Scored) -> str:
    """How the devices of a row are dealt."""
    said = words(row)
    if "two pools" in said:
        return "two pools"
    return "replicas of attention" if any(word.endswith(" replicas") for word in said) else "one group"


def words(row: Scored) -> list[str]:
    """What the text of a case says behind its id."""
    return row.case.partition(": ")[2].split(", ")


def numbers(rows: Sequence[Scored]) -> list[str]:
    """The cells of some rows."""
    cells = [str(max(sum(row.source == source for row in rows) for source in SOURCES.values()))]
    for source in reversed(SOURCES.values()):
        errors = sorted((row.error for row in rows if row.source == source), key=abs)
        if not errors:
            cells += ["", "", ""]
            continue
        middle = (abs(errors[(len(errors) - 1) // 2]) + abs(errors[len(errors) // 2])) / 2
        mean, bias = sum(map(abs, errors)) / len(errors), sum(errors) / len(errors)
        cells += [share(middle), share(mean), share(bias, sign=True)]
    return cells
