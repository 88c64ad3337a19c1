"""A headless Chromium that Playwright drives, and pages in it that note all that they say and ask for."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from .tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; without one, or without Playwright, the test is skipped and says why, on CI it fails."""
    path = tool("chromium", "chromium-browser", "google-chrome")
    try:
        api: Any = importlib.import_module("playwright.sync_api")
    except ImportError:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Playwright is not installed: pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, address: str, script: str = "", **options: Any) -> Iterator[Any]:
    """A page at an address that is closed again; a word on the console, a fault or a request fails the test.

    Args:
        browser: of `chromium`.
        address: of a file, with what follows a hash.
        script: that runs before those of the page.
        options: of the browser's context: size, colours.
    """
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
    try:
        page, said, asked = context.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: asked.append(request.url))
        if script:
            page.add_init_script(script)
        page.goto(address)
        yield page
        assert said == []
        file = address.partition("#")[0]
        assert {
            url for url in asked if url.partition("#")[0] != file and not url.startswith(("blob:", "data:"))
        } == set()
    finally:
        context.close()
