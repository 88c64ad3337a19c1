"""Rooms: who may import whom, between rooms and inside of one; lazy and type-only imports between rooms count."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from support.paths import ROOT
from support.rooms import DOOR, arrows_of, imports_of, room_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALLOWED = {
    "common": "",
    "installation": "common",
    "pictures": "common",
    "measuring": "common",
    "models": "common",
    "systems": "common",
    "plans": "common models systems",
    "technology": "common systems",
    "operations": "common models plans",
    "evaluation": "common models operations plans systems",
    "train.layers": "common models operations plans",
    "train.memory": "common models operations plans systems train.layers",
    "train.step": "models operations plans train.layers train.memory",
    "train": "common models operations plans systems train.layers train.memory train.step",
    "export": "common models plans systems train",
    "frameworks": "common export models plans systems",
    "infer": "common models operations plans systems train train.memory",
    "sweep": "common evaluation models plans systems train",
    "book": "common infer plans train",
    "spending": "common infer operations plans systems train",
    "validation.kernels": "common infer models operations pictures plans systems",
    "analysis": "book common evaluation pictures plans spending systems train",
    "derive": "book common evaluation infer operations pictures spending train",
    "runs": (
        "analysis common derive evaluation infer models operations plans spending sweep systems train train.memory"
    ),
    "checking": "common models runs",
    "plan_search": "analysis common models operations plans runs spending systems train train.memory train.step",
    "serve": "analysis common evaluation infer models operations plans runs systems train",
    "technology.allocation": "common derive runs systems technology",
    "plan_search.inference": "analysis common infer models plan_search plans runs serve spending systems",
    "plan_search.technologies": "common models plan_search plans runs systems train",
    "validation": "common evaluation infer models pictures plans runs serve systems",
    "calibration": "common evaluation infer measuring operations runs systems validation",
    "calibration.kernels": "calibration common infer systems validation.kernels",
    "timeline": "common evaluation infer operations plans runs serve train train.memory train.step",
    "explore": (
        "book common derive infer models operations plans runs serve spending systems timeline train train.memory "
        "train.step"
    ),
    "report": (
        "analysis common evaluation infer models pictures plan_search plan_search.inference plans runs serve spending "
        "sweep systems train"
    ),
    "cli": (
        "analysis book calibration calibration.kernels checking common derive evaluation explore export frameworks "
        "infer installation measuring models pictures plan_search plan_search.inference plans report runs serve sweep "
        "systems technology technology.allocation timeline train validation validation.kernels"
    ),
}
"""What each room of `symperf` may import of the others. All may import `codegen` and `formulas`."""
ALLOWED_FORMULAS = {
    "language": "",
    "sources": "",
    "collectives": "language sources",
    "mathematics": "language",
    "kernels": "language mathematics sources",
    "parallel": "collectives language mathematics sources",
    "technology": "language mathematics sources",
    "generation": "kernels language mathematics sources",
    "memory": "language parallel sources",
}
"""What each room of `formulas` may import of the others; the registry alone knows of all."""
LARGEST_CYCLE = 3
"""Files of one room that may import each other in a circle."""


def _circles(arrows: Mapping[object, Iterable[object]]) -> list[set[object]]:
    """Sets of nodes each of which leads to every other."""

    def reached(start: object) -> set[object]:
        seen, waiting = set(), [start]
        while waiting:
            for after in set(arrows.get(waiting.pop(), ())) - seen:
                seen.add(after)
                waiting.append(after)
        return seen

    after = {node: reached(node) for node in arrows}
    circles = {frozenset(m for m in after[node] if node in after.get(m, ())) for node in arrows if node in after[node]}
    return [set(circle) for circle in circles]


def test_the_root_of_the_package_has_no_loose_file() -> None:
    """What is not the door lies in a room."""
    loose = {path.name for path in (ROOT / "symperf").iterdir() if path.is_file()}
    assert loose == {"__init__.py", "__main__.py", "api.py", "py.typed"}


@pytest.mark.parametrize(("top", "allowed"), [("symperf", ALLOWED), ("formulas", ALLOWED_FORMULAS)])
def test_rooms_import_what_the_table_allows(top: str, allowed: dict[str, str]) -> None:
    """No arrow that the table lacks, and none in the table that nothing needs."""
    found = {room: rooms for room, rooms in arrows_of(top).items() if room not in DOOR | {"registry"}}
    assert {room: sorted(found.get(room, ())) for room in allowed} == {r: sorted(a.split()) for r, a in allowed.items()}
    assert set(found) <= set(allowed)


@pytest.mark.parametrize("top", ["symperf", "formulas"])
def test_no_rooms_import_each_other(top: str) -> None:
    """Rooms stand on floors: each above all that it imports, lazily or for types alone too."""
    assert _circles(arrows_of(top)) == []


@pytest.mark.parametrize("top", ["symperf", "formulas", "codegen"])
def test_files_of_a_room_import_each_other_in_small_circles_alone(top: str) -> None:
    """At most three files; what is imported for types alone is left out."""
    arrows: dict[object, set[object]] = {}
    for by, of, typed in imports_of(top):
        if not typed and (top == "codegen" or room_of(by) == room_of(of)):
            arrows.setdefault(by, set()).add(of)
    assert [circle for circle in _circles(arrows) if len(circle) > LARGEST_CYCLE] == []


def test_a_circle_is_found() -> None:
    """The check itself: a circle of two, and one of four beside it."""
    assert _circles({1: [2], 2: [1, 3], 3: []}) == [{1, 2}]
    assert len(_circles({1: [2], 2: [3], 3: [4], 4: [1]})[0]) == 4


@pytest.mark.parametrize(
    ("top", "room", "allowed"),
    [("symperf", *pair) for pair in ALLOWED.items()] + [("formulas", *pair) for pair in ALLOWED_FORMULAS.items()],
)
def test_a_room_says_what_it_is_for_and_what_it_imports(top: str, room: str, allowed: str) -> None:
    """The docstring of its package: a sentence or more, then the line of the table."""
    path = ROOT.joinpath(top, *room.split("."), "__init__.py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    subject, _, imports = text.rpartition("\n\n")
    names = ", ".join(f"`{name}`" for name in sorted(allowed.split()))
    assert len(subject) > 40, path
    assert " ".join(imports.split()) == (f"Imports {names}." if names else "Imports no other room.")
