"""The book as a site: links lead somewhere, nothing is loaded from elsewhere, and the search finds each formula."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any

import pytest
from support.tools import tool

from symperf.book import site
from symperf.book.chapters import CHAPTERS
from symperf.book.titles import title_of
from symperf.cli.formulas import SITE_MARK
from symperf.common.errors import InputError
from symperf.formulas.registry import load

if TYPE_CHECKING:
    from pathlib import Path

FORMULAS = load()
XHTML = "{http://www.w3.org/1999/xhtml}"
FEW = ["work_time", "ring_all_reduce_time", "roofline_time"]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return site()


@pytest.fixture(scope="module")
def trees(files: dict[str, str]) -> dict[str, ElementTree.Element]:
    return {name: ElementTree.fromstring(text) for name, text in files.items() if name.endswith(".html")}


@pytest.fixture(scope="module")
def index(files: dict[str, str]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(files["index.js"].removeprefix("const BOOK = ").removesuffix(";\n"))
    return found


def test_it_has_a_page_for_each_chapter(files: dict[str, str]) -> None:
    further = {"index.html", "notation.html", "symbols.html", "sources.html", "index.js", "search.js", "site.css"}
    assert set(files) == {f"{chapter.name}.html" for chapter in CHAPTERS} | further


def test_every_link_leads_somewhere(trees: dict[str, ElementTree.Element]) -> None:
    """To a page of the site, and to a place that is there once."""
    places: dict[str, set[str]] = {}
    for name, tree in trees.items():
        found = [str(e.get("id")) for e in tree.iter() if e.get("id")]
        assert len(found) == len(set(found))
        places[name] = set(found)
    for name, tree in trees.items():
        for link in tree.iter(f"{XHTML}a"):
            file, _, place = str(link.get("href")).partition("#")
            assert (file or name) in trees
            assert not place or place in places[file or name], link.get("href")


def test_a_docstring_leads_to_formulas_and_pages(trees: dict[str, ElementTree.Element]) -> None:
    links = {(a.get("href"), a.get("title"), "".join(a.itertext())) for a in trees["pipelines.html"].iter(f"{XHTML}a")}
    assert ("pipelines.html#page-zero_bubble", "Zero-bubble pipelines", "zero_bubble") in links
    assert ("pipelines.html#formula-gpipe_time", "Time of GPipe", "gpipe_time") in links


def test_it_loads_nothing_from_elsewhere(files: dict[str, str], trees: dict[str, ElementTree.Element]) -> None:
    for tree in trees.values():
        loaded = {e.get("src") for e in tree.iter() if "src" in e.attrib} | {
            e.get("href") for e in tree.iter(f"{XHTML}link")
        }
        assert loaded == {"index.js", "search.js", "site.css"}
    for name in ("site.css", "search.js"):
        assert not re.search(r"https?:|@import|url\(|fetch|XMLHttp", files[name])


def test_every_formula_is_on_its_page_with_its_title(trees: dict[str, ElementTree.Element]) -> None:
    titles = {}
    for name, tree in trees.items():
        for heading in tree.iter(f"{XHTML}h3"):
            if str(heading.get("id")).startswith("formula-"):
                titles[str(heading.get("id")).removeprefix("formula-")] = (name, "".join(heading.itertext()))
    assert set(titles) == set(FORMULAS)
    for key, (_, words) in titles.items():
        assert words.split(" ", 1)[1] == title_of(FORMULAS[key])


def test_the_index_has_everything_at_its_place(
    index: list[dict[str, str]], trees: dict[str, ElementTree.Element]
) -> None:
    ids = {name: {e.get("id") for e in tree.iter()} for name, tree in trees.items()}
    assert set(FORMULAS) <= {entry["name"] for entry in index if entry["kind"][0].isdigit()}
    assert {"chapter", "section", "symbol", "source"} <= {entry["kind"] for entry in index}
    for entry in index:
        file, _, place = entry["place"].partition("#")
        assert file in ids
        assert not place or place in ids[file]


QUESTIONS = """
const fs = require("fs"), vm = require("vm");
const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const code = fs.readFileSync("index.js", "utf8") + fs.readFileSync("search.js", "utf8");
vm.runInThisContext(code + "; globalThis.answers = (all) => all.map((q) => search(BOOK, q, 12).map((e) => e.name));");
console.log(JSON.stringify(answers(asked)));
"""


def test_the_search_finds_each_formula(files: dict[str, str], tmp_path: Path) -> None:
    """By its name first of all, by the words of its name and by its title; nonsense finds nothing."""
    for name in ("index.js", "search.js"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")

    def answers(questions: list[str]) -> Any:
        done = subprocess.run(
            [tool("node"), "-e", QUESTIONS],
            cwd=tmp_path,
            input=json.dumps(questions),
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    names = list(FORMULAS)
    for asked in (names, [name.replace("_", " ") for name in names]):
        assert [found[0] for found in answers(asked)] == names
    by_title = answers([title_of(formula) for formula in FORMULAS.values()])
    assert [name for name, found in zip(names, by_title, strict=True) if name not in found] == []
    assert answers(["zzzz", "", "kundu2024", "hidden_size"])[:2] == [[], []]
    assert "kundu2024" in answers(["kundu"])[0]
    assert answers(["hidden_size"])[0][0] == "hidden_size"


def test_a_site_of_a_few_formulas() -> None:
    found = site(FEW)
    assert {"compute.html", "collectives.html", "symbols.html"} <= set(found)
    assert "pipelines.html" not in found
    assert found["compute.html"].count("<article>") == 2


def output(call: Any, *arguments: str) -> tuple[int, str, str]:
    code, out, err = call(["formulas", *arguments])
    return code, out, err


def test_a_site_is_written_and_replaced(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert output(call, "work_time", "--site", str(folder)) == (0, f"wrote {folder / 'index.html'}\n", "")
    first = {path.name for path in folder.iterdir()}
    assert {"index.html", "compute.html", SITE_MARK} <= first
    code, out, _ = output(call, "ring_all_reduce_time", "--site", str(folder), "--json")
    told = json.loads(out)
    assert code == 0
    assert told["written"] == str(folder)
    assert told["files"] == len(list(folder.iterdir())) - 1
    assert not (folder / "compute.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_an_empty_folder_becomes_a_site(call: Any, tmp_path: Path) -> None:
    assert output(call, "work_time", "--site", str(tmp_path / "."))[0] == 0
    assert (tmp_path / "index.html").exists()


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda folder: folder.write_text("mine"), "found a file, expected a folder or nothing"),
        (lambda folder: (folder.mkdir(), (folder / "a").touch()), "the folder holds 'a' and is no such site"),
        (lambda _: None, ""),
    ],
    ids=["a file", "another folder", "no parent"],
)
def test_what_is_no_site_is_left_alone(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "site"
    made = make(folder)
    target = "site" if line else "no/site"
    before = sorted(path.name for path in tmp_path.rglob("*"))
    code, out, err = output(call, "work_time", "--site", target)
    assert (code, out) == (2, "")
    assert err.startswith(f"symperf: formulas: --site: cannot write '{target}': {line or 'No such file'}")
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert made is None or folder.exists()


def test_a_site_with_a_file_of_its_reader_is_left_alone(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    output(call, "work_time", "--site", str(folder))
    (folder / "notes.txt").write_text("mine")
    code, _, err = output(call, "work_time", "--site", str(folder))
    assert code == 2
    assert "holds 'notes.txt', which is no part of the site" in err
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_half_written_site_never_stays(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is full in the middle, the old site is as it was and nothing else is left."""
    from pathlib import Path as AnyPath

    folder = tmp_path / "site"
    output(call, "work_time", "--site", str(folder))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write, count = AnyPath.write_text, [0]

    def full(self: Path, *arguments: Any, **named: Any) -> int:
        count[0] += 1
        if count[0] > 3:
            raise OSError(28, "No space left on device")
        return write(self, *arguments, **named)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(AnyPath, "write_text", full)
    code, out, err = output(call, "ring_all_reduce_time", "--site", "site")
    monkeypatch.undo()
    assert (code, out) == (2, "")
    assert err.startswith("symperf: formulas: --site: cannot write 'site': No space left on device, free some")
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_bad_input_of_a_site(call: Any, tmp_path: Path) -> None:
    code, out, err = output(call, "work_tme", "--site", str(tmp_path / "x"))
    assert (code, out) == (2, "")
    assert err.startswith("symperf: formulas: unknown formula 'work_tme'; did you mean work_time")
    code, _, err = output(call, "--site", str(tmp_path / "x"), "--md", str(tmp_path / "y"))
    assert code == 2
    assert "not allowed with argument" in err
    assert list(tmp_path.iterdir()) == []


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    with pytest.raises(InputError, match=r"needs latex2mathml, .*symperf\[book\]"):
        site(["work_time"])
