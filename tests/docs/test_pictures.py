"""The gallery shows what its commands draw today."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
from support.effort import NIGHTLY
from support.paths import ROOT

pytest.importorskip("matplotlib")
CHEAP = ("regimes",)
"""Pictures that are drawn anew in every run; `nightly` and `python docs/pictures.py --check` draw all."""
LARGEST = 250_000
"""Bytes of a picture."""


def script() -> Any:
    found = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "pictures.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


GALLERY = script()
PICTURES = GALLERY.pictures()


def test_every_picture_has_its_command_and_is_small() -> None:
    files = {file.stem: file.stat().st_size for file in (ROOT / "docs" / "pictures").iterdir()}
    assert set(files) == set(PICTURES)
    assert max(files.values()) < LARGEST
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(pictures/(\w+)\.svg\)", page)) == set(PICTURES)
    verbs = {command.split()[1] for command in PICTURES.values()}
    assert verbs >= {"train", "infer", "serve", "search", "regimes", "phase", "validate"}


@pytest.mark.parametrize("name", PICTURES if NIGHTLY else CHEAP)
def test_a_picture_is_current(name: str) -> None:
    drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert GALLERY.texts(drawn) == GALLERY.texts(GALLERY.draw(PICTURES[name]))
    assert len(GALLERY.texts(drawn)) > 15
