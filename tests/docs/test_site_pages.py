"""The pages of the site before they are built: links, navigation, examples, docstrings, and what the check finds."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

sys.path.insert(0, str(ROOT / "docs" / "site"))
import built
import gallery
import reference
import stage

NAV = yaml.safe_load((ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
PAGES = stage.sources()
REFERENCES = {"reference/command-line.md", "reference/python.md"}


def test_every_page_can_be_staged(tmp_path: Path) -> None:
    """Every link of every page leads somewhere, and what pages take along is there."""
    stage.stage(tmp_path, REFERENCES)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(PAGES)
    for path in tmp_path.rglob("*.md"):
        assert "(../symperf/" not in path.read_text(encoding="utf-8")
    assert (tmp_path / "studies" / "walk.svg").exists()
    assert "```pycon\n>>> " in (tmp_path / "tutorials" / "first-prediction.md").read_text(encoding="utf-8")


def test_the_navigation_names_pages_that_are_there_and_misses_none() -> None:
    named = stage.named(NAV)
    assert named - set(PAGES) == REFERENCES
    complete = stage.named(stage.completed(NAV, {*PAGES, "new.md"}))
    assert complete == {*PAGES, *REFERENCES, "new.md"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [a](b.md#c)", "see [a](../b.md#c)"),
        ("see [a](../CHANGELOG.md)", "see [a](../changelog.md)"),
        ("see [a](../README.md#start)", "see [a](../index.md#start)"),
        ("see [the table](../symperf/py.typed)", "see the table (`symperf/py.typed`)"),
        ("see [`symperf/py.typed`](../symperf/py.typed)", "see `symperf/py.typed`"),
        ("see [a](https://example.org/b.md)", "see [a](https://example.org/b.md)"),
        ("see [here](#there)", "see [here](#there)"),
        ("`[a](nowhere.md)`", "`[a](nowhere.md)`"),
        ("```text excerpt\n[a](nowhere.md)\n```", "```text\n[a](nowhere.md)\n```"),
        (">>> 1 + 1\n2\n\nmore", "```pycon\n>>> 1 + 1\n2\n```\n\nmore"),
    ],
)
def test_a_link_and_a_block_become_those_of_the_site(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, expected: str
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "symperf").mkdir()
    (tmp_path / "symperf" / "py.typed").touch()
    monkeypatch.setattr(stage, "ROOT", tmp_path)
    monkeypatch.setattr(stage, "DOCS", docs)
    page = docs / "page.md"
    page.write_text(text, encoding="utf-8")
    homes = {docs / "b.md": "b.md", tmp_path / "CHANGELOG.md": "changelog.md", tmp_path / "README.md": "index.md"}
    assert stage.staged(page, "deep/page.md", homes, set()) == (expected, [])


def test_a_link_that_leads_nowhere_is_told_with_its_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stage, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("[a](nowhere.md)", encoding="utf-8")
    with pytest.raises(stage.SiteError, match=r"^page\.md: a link leads to nowhere\.md, which is not there$"):
        stage.staged(page, "page.md", {}, set())


def test_every_public_name_is_in_the_reference_and_has_a_docstring() -> None:
    import symperf

    paths = [path for paths in reference.public().values() for path in paths]
    assert set(symperf.__all__) <= {path.rpartition(".")[2] for path in paths}
    assert [each for path in paths for each in reference.undocumented(path)] == []


def test_a_missing_docstring_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from symperf.runs.training_run import Run

    monkeypatch.setattr(Run.needed_alone, "__doc__", None)
    assert reference.undocumented("symperf.runs.training_run.Run") == ["symperf.runs.training_run.Run.needed_alone"]


def test_the_page_of_verbs_has_each_of_them() -> None:
    text = reference.command_line()
    for verb in ("train", "infer", "explore", "mcp"):
        assert f"\n## {verb}\n\n```text\nusage: symperf {verb}" in text


def test_blocks_of_the_gallery_are_whole_programs_that_write_a_picture() -> None:
    """They run when the site is built; here they are read."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    bodies = [match["body"] for match in gallery.BLOCK.finditer(text)]
    assert len(bodies) >= 5
    for body in bodies:
        ast.parse(body)
        assert body.startswith("import symperf as sf\n")
        assert body.rstrip().endswith('.svg")')


@pytest.mark.parametrize(
    ("code", "words"),
    [("1 / 0", "the code under 'A title' fails: ZeroDivisionError"), ("x = 1", "writes no picture")],
)
def test_a_figure_that_fails_is_told_with_its_title(tmp_path: Path, code: str, words: str) -> None:
    page = tmp_path / "gallery.md"
    page.write_text(f"# G\n\n## A title\n\n```python\n{code}\n```\n", encoding="utf-8")
    with pytest.raises(stage.SiteError, match=words):
        gallery.draw(page)


def test_a_figure_stands_below_its_code(tmp_path: Path) -> None:
    page = tmp_path / "gallery.md"
    code = 'from pathlib import Path\n\nPath("a.svg").touch()\n'
    page.write_text(f"# G\n\n## A title\n\n```python\n{code}```\n\nmore\n", encoding="utf-8")
    gallery.draw(page)
    assert page.read_text(encoding="utf-8").endswith(f"{code}```\n\n![A title](figures/a.svg)\n\nmore\n")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ('<a href="gone.html">a</a>', "a link leads to gone.html, which is not there"),
        ('<a href="#gone">a</a>', "a link leads to #gone, and there is no such place on that page"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from elsewhere"),
        ('<img src="//example.org/a.png">', "loads //example.org/a.png from elsewhere"),
        ('<link rel="stylesheet" href="a.css">', "loads a.css, which is not there"),
        ('<p id="here"></p><a href="#here">a</a><a href="https://example.org">b</a><img src="data:,">', None),
    ],
)
def test_a_built_page_that_cannot_be_is_found(tmp_path: Path, page: str, words: str | None) -> None:
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    found = built.faults(tmp_path)
    assert found == ([] if words is None else [f"index.html: {words}"])


def test_versions_lie_side_by_side_and_the_newest_is_first(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import build_site

    for name in ("0.9.0", "0.10.0", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    text = build_site.versions(tmp_path)
    assert 'url=0.10.0/index.html"' in text
    assert text.index("0.10.0") < text.index("0.9.0")
    assert "other" not in text
