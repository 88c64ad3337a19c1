"""Notebooks lie in the tree without outputs, are short, and what their cells show becomes part of a page.

They are run when the site is built; `python docs/site/notebooks.py` runs them alone.
"""

from __future__ import annotations

import ast
import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

sys.path.insert(0, str(ROOT / "docs" / "site"))
import notebooks

FOLDER = ROOT / "docs" / "notebooks"
NAMES = notebooks.names()


def test_there_are_six_and_the_page_links_to_each() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(NAMES) == 6
    assert all(f"({name}.ipynb)" in text for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_short_and_has_no_outputs(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 6000
    assert notebook["cells"][0]["cell_type"] == "markdown"
    assert notebook["cells"][0]["source"][0].startswith("# ")
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(line for line in cell["source"] if not line.startswith("%")))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"text/html": "<p>a\n\n\nb</p>", "text/plain": "c"}, '<div class="output" markdown="0">\n<p>a\nb</p>\n</div>'),
        ({"text/plain": "{'a': 1}\n"}, "```text\n{'a': 1}\n```"),
        ({}, ""),
    ],
)
def test_what_a_cell_shows_becomes_a_part_of_the_page(tmp_path: Path, data: Any, expected: str) -> None:
    assert notebooks.shown({"data": data}, tmp_path, "x") == expected


def test_a_picture_lies_beside_the_page(tmp_path: Path) -> None:
    data = {"image/png": base64.b64encode(b"picture").decode(), "text/plain": "<Figure>"}
    assert notebooks.shown({"data": data}, tmp_path, "x-1") == "![What the cell shows](x-1.png)"
    assert (tmp_path / "x-1.png").read_bytes() == b"picture"


def test_formulas_become_mathml(tmp_path: Path) -> None:
    data = {"text/latex": r"$\displaystyle \frac{a}{b}$"}
    shown = notebooks.shown({"data": data}, tmp_path, "x")
    assert "<mfrac>" in shown
    assert "$" not in shown
    data = {"text/markdown": "of $q - 1$ and [a](#ref-b)"}
    shown = notebooks.shown({"data": data}, tmp_path, "x")
    assert shown.count("<math") == 1
    assert shown.endswith("and a\n\n</div>")
