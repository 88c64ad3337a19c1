"""Builds the site: `python docs/build_site.py FOLDER`, with `pip install -e '.[docs]'`.

The pages of `docs/`, the formula book, the reference of verbs and names, the figures of the gallery and an explorer, by
MkDocs in its strict mode, into `FOLDER/VERSION`; `FOLDER/index.html` leads to the versions that lie there. A link that
leads nowhere, an example of the gallery that fails, a public name without a docstring or anything that would be loaded
from elsewhere is an error, told in a line each: exit status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent / "site"
sys.path.insert(0, str(HERE))

import stage  # noqa: E402
from built import faults  # noqa: E402

MODEL, SYSTEMS = "llama-3.1-8b", ("h100-sxm", "h200-sxm", "b200-sxm")
EXPLORED = [
    *("explore", MODEL, "-s", *SYSTEMS, "--tp", "2", "--dp", "4", "--zero", "1", "--sequence-parallel"),
    *("--vary", "schedule=1f1b,interleaved", "--vary", "attention=flash", "--vary", "sequence_parallel=true"),
    *("--vary", "zero=0,1,3", "--batch", "256", "--sequence", "2048"),
]
"""The explorer of the start page: one model and what people choose most, so that it is made in seconds."""
MARK = "<!-- explorer -->"
LIVE = "live/explorer.html"
FRAME = f"""
Or move the sliders: this is `symperf explore {MODEL} -s {" ".join(SYSTEMS)}`, a page that computes by itself,
without a network. [The whole window]({LIVE}){{ .md-button }}

<iframe class="explorer" src="{LIVE}" title="The explorer of symperf" loading="lazy"></iframe>
"""


def make(pages: Path) -> list[Any]:
    """Write all pages into a folder; the navigation of the site.

    Raises:
        SiteError: something cannot be made.
    """
    import book_pages
    import gallery
    import notebooks
    import reference

    from symperf.cli import main as symperf

    settings = yaml.safe_load((HERE / "mkdocs.yml").read_text(encoding="utf-8"))
    chapters = book_pages.write(pages)
    made = {f"{book_pages.FOLDER}/{path.name}" for path in (pages / book_pages.FOLDER).glob("*.md")}
    references = reference.python_pages() | {"reference/command-line.md": reference.command_line()}
    made |= {f"{notebooks.FOLDER}/{name}.md" for name in notebooks.names()}
    stage.stage(pages, made | set(references))
    for name, text in references.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")
    gallery.draw(pages / "gallery.md")
    runs = notebooks.write(pages)
    (pages / LIVE).parent.mkdir()
    with contextlib.redirect_stdout(None):
        code = symperf([*EXPLORED, "-o", str(pages / LIVE)])
    if code:
        raise stage.SiteError("the explorer cannot be made")
    start = pages / "index.md"
    start.write_text(start.read_text(encoding="utf-8").replace(MARK, FRAME), encoding="utf-8")
    for name in ("site.css", "vendor/iframe-worker.js", "vendor/iframe-worker.LICENSE"):
        shutil.copyfile(HERE / name, pages / Path(name).name)
    nav = settings["nav"]
    for entry in nav:
        if "Tutorials" in entry:
            entry["Tutorials"][-1] = {"Notebooks": ["notebooks/README.md", *runs]}
        if "Formulas" in entry:
            entry["Formulas"] += chapters
        if "Reference" in entry:
            entry["Reference"] += [{"Names of Python": [name for name in references if name not in stage.named(nav)]}]
    return stage.completed(nav, set(stage.sources()))


def build(folder: Path) -> None:
    """Build the site of this version into its folder.

    Raises:
        SiteError: something is not as it must be.
    """
    try:
        from mkdocs.commands.build import build as mkdocs_build
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ImportError as error:
        raise stage.SiteError(f"{error}: pip install -e '.[docs]'") from None

    from symperf import __version__

    target = folder / __version__
    if target.exists() and not (target / "search" / "search_index.js").exists():
        raise stage.SiteError(f"{target}: found a folder that is no such site, expected one, or nothing")
    with tempfile.TemporaryDirectory() as work:
        pages, config = Path(work) / "pages", Path(work) / "mkdocs.yml"
        pages.mkdir()
        settings = yaml.safe_load((HERE / "mkdocs.yml").read_text(encoding="utf-8"))
        settings |= {"nav": make(pages), "docs_dir": str(pages), "site_dir": str(Path(work) / "site")}
        settings |= {"site_name": f"symperf {__version__}", "hooks": [str(HERE / "book_pages.py")]}
        (reader,) = [each["mkdocstrings"] for each in settings["plugins"] if "mkdocstrings" in each]
        reader["handlers"]["python"]["options"]["extensions"] = [str(HERE / "docstrings.py")]
        settings["exclude_docs"] = "*.part\n"
        config.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        try:
            mkdocs_build(load_config(str(config), strict=True))
        except MkDocsException as error:
            raise stage.SiteError(f"mkdocs: {error}") from None
        (Path(work) / "site" / "404.html").unlink()  # of a server; its paths begin at the top of one
        if wrong := faults(Path(work) / "site"):
            raise stage.SiteError("\n".join(wrong))
        if target.exists():
            shutil.rmtree(target)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(str(Path(work) / "site"), str(target))
    (folder / "index.html").write_text(versions(folder), encoding="utf-8")


def versions(folder: Path) -> str:
    """The page above the versions: it goes on to the newest, and lists all."""
    found = [
        path.parent.name for path in folder.glob("*/index.html") if re.fullmatch(r"\d+(\.\d+)+\w*", path.parent.name)
    ]
    found.sort(key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    links = "\n".join(f'<li><a href="{html.escape(name)}/index.html">{html.escape(name)}</a></li>' for name in found)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="0; url={html.escape(found[0])}/index.html">\n'
        f"<title>symperf</title>\n</head>\n<body>\n<h1>symperf</h1>\n<ul>\n{links}\n</ul>\n</body>\n</html>\n"
    )


def main() -> int:
    """Build it, and say where it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where versions of the site lie side by side")
    folder = parser.parse_args().folder.resolve()
    begin = time.monotonic()
    os.environ["NO_MKDOCS_2_WARNING"] = "true"
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        build(folder)
    except stage.SiteError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder / 'index.html'}: open it in a browser; made in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
