"""The page of architecture: its paths exist, and its drawing shows every room above all that it imports."""

from __future__ import annotations

import re

from support.paths import ROOT
from support.rooms import DOOR, arrows_of

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWING = PAGE.split("```")[1].partition("├")[0]


def test_every_path_that_the_page_names_exists() -> None:
    """Whole ones from the top, others inside a package or anywhere as the end of one path."""
    named = set(re.findall(r"`([\w/.-]+\.(?:py|toml)|[\w/-]+/)`", PAGE))
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in ("symperf", "formulas", "codegen", "tests", "docs")
        for path in (ROOT / folder).rglob("*")
    }
    assert len(named) > 30
    missing = {
        name
        for name in named
        if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in files | {"symperf", "formulas", "codegen"})
    }
    assert missing == set()


def test_the_drawing_shows_each_room_above_what_it_imports() -> None:
    """By the lines on which their names stand."""
    rows = {}
    for row, line in enumerate(DRAWING.splitlines()):
        for name in line.strip(" │").split("│")[0].split():
            if name not in DOOR:
                assert rows.setdefault(name, row) == row
    arrows = {room: rooms for room, rooms in arrows_of("symperf").items() if room not in DOOR}
    for room, rooms in arrows.items():
        for other in rooms:
            assert rows[room] < rows[other], f"{room} imports {other}"
