"""Opens a built site from disk in headless Chromium: `python docs/site/browse.py FOLDER`, with the extra `test`.

Pages of every kind are opened at two widths, light and dark. A word on the console, a fault of a script, a request that
is not for a file of the site, or a page that is wider than its window is an error, a line each: exit status 1. Then the
way of a newcomer: the explorer on the start page answers, a search finds a formula, and a link leads to it.
"""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

PAGES = ("index", "tutorials/first-prediction", "book/collectives", "notebooks/2-bottlenecks", "gallery", "accuracy")
PAGES += ("reference/command-line", "reference/a-training-run", "studies/walk")
WIDTHS = (420, 1280)
SCHEMES: tuple[Any, ...] = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
WAIT = 30_000
"""Milliseconds for what a page computes by itself."""


def opened(context: Any, site: Path, found: list[str]) -> Any:
    """An empty page that notes what it says and asks for."""
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.on("console", lambda message: found.append(f"{page.url}: says {message.text}"))
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))

    def asked(request: Any) -> None:
        if not request.url.startswith((f"file://{site}/", "blob:", "data:", "about:")):
            found.append(f"{page.url}: asks for {request.url}")

    page.on("request", asked)
    return page


def look(browser: Any, site: Path, found: list[str]) -> int:
    """Open every page in every way; how often that was."""
    count = 0
    for width in WIDTHS:
        for scheme in SCHEMES:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = opened(context, site, found)
            for name in PAGES:
                page.goto(f"file://{site}/{name}.html")
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    found.append(f"{name}.html: is {wide} wide in a window of {width}")
                back = page.evaluate("getComputedStyle(document.body).backgroundColor")
                dark = sum(map(int, back.removeprefix("rgb(").removesuffix(")").split(","))) < 384
                if dark != (scheme == "dark"):
                    found.append(f"{name}.html: has the background {back} where {scheme} is asked for")
                count += 1
            context.close()
    return count


def walk(browser: Any, site: Path, found: list[str]) -> None:
    """The way of a newcomer from the start page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = opened(context, site, found)
    page.goto(f"file://{site}/index.html")
    page.locator("iframe.explorer").scroll_into_view_if_needed()
    page.frame_locator("iframe.explorer").get_by_text("Step time").first.wait_for()
    page.locator("input.md-search__input").fill("bubble_fraction")
    page.locator('.md-search-result__link[href*="book/pipelines.html"]').first.click()
    page.wait_for_url("**/book/pipelines.html*")
    if not page.locator('[id="formula-bubble_fraction"]').count():
        found.append("the link of a search for bubble_fraction leads to a page without it")
    context.close()


def main() -> int:
    """Look at the newest version in a folder."""
    folders = [Path(each).resolve() for each in sys.argv[1:]]
    versions = [path.parent for folder in folders for path in folder.glob("*/index.html")]
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if len(folders) != 1 or not versions or path is None:
        print("browse: expected one folder with a built site in it, and Chromium on the path", file=sys.stderr)
        return 2
    site = max(versions, key=lambda each: (each / "index.html").stat().st_mtime)
    found: list[str] = []
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        count = look(browser, site, found)
        walk(browser, site, found)
        browser.close()
    for line in found:
        print(line, file=sys.stderr)
    print(f"{site.name}: {count} pages opened, {len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
