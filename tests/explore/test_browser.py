"""The page in headless Chromium, where there is one: its numbers, views, links and keys, and what a reader hears."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from support.browser import chromium, opened
from support.explored import MODEL, SYSTEM, check_answer, data, draw, run_or_refusal

import symperf as sf
from symperf.explore.page import page as page_of
from symperf.runs.inference_run import InferenceRun

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = 100
"""Of each kind of run."""
VIEWS = {
    "train": ("shares", "operations", "memory", "stages", "timeline", "roofline", "sweep", "symbols"),
    "infer": ("shares", "operations", "memory", "roofline", "sweep", "latency", "serving", "symbols"),
}
DRAWN = {
    "train": {"timeline": 1, "roofline": 1, "sweep": 1},
    "infer": {"roofline": 1, "sweep": 1, "latency": 1, "serving": 1},
}
"""How many canvases a view has."""
START = {"train": "#a=train&a.pp=4&a.batch=64", "infer": "#a=infer&a.tp=1&a.batch=32&a.prompt=512"}
COLOURS = """canvas => new Set(new Uint32Array(
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']"
FOCUS = """selector => {
  const all = [...document.querySelectorAll(selector)]
    .filter((each) => !each.disabled && each.checkVisibility());
  all.forEach((each, k) => { each.dataset.reach = String(k); });
  return all.length;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of this file."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a page of few structures; made only where there is a browser."""
    del browser
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page_of(data()), encoding="utf-8")
    return path.as_uri()


def _cells(page: Any) -> dict[str, str]:
    """The answers that are shown, by what they are called."""
    rows = page.locator("#headline tbody tr").all_inner_texts()
    return dict(row.split("\t")[:2] for row in rows)


def _link(kind: dict[str, Any], asked: dict[str, Any]) -> str:
    """The address of a configuration."""
    places = {c["name"]: c["values"].index(asked["choices"][c["name"]]) for c in kind["choices"]}
    return urlencode(
        {"a": kind["name"], **{f"a.{name}": value for name, value in {**places, **asked["numbers"]}.items()}}
    )


def test_settings_drawn_at_random_have_pythons_numbers(browser: Any, address: str) -> None:
    """Time, memory, joules, dollars and shares within 1e-12, or the same refusal; all from one page."""
    rng = random.Random(27)
    asked = [(kind, draw(kind, rng)) for kind in data()["kinds"] for _ in range(SETTINGS)]
    with opened(browser, address) as page:
        answers = page.evaluate("links => links.map((link) => symperf.ask(link))", [_link(*each) for each in asked])
    answered = 0
    for (kind, each), found in zip(asked, answers, strict=True):
        run, refusal = run_or_refusal(kind, each)
        assert found["reason"] == (refusal or ""), each
        if run is None:
            continue
        answered += 1
        check_answer(found, run, "memory")
        assert found["shares"] == pytest.approx({k: v for k, v in run.shares().items() if v}, abs=1e-12)
    assert answered > SETTINGS / 2


@pytest.mark.parametrize("kind", VIEWS)
def test_each_view_draws(browser: Any, address: str, kind: str) -> None:
    """Canvases have more than one colour, every other view its words; a map has a million points."""
    with opened(browser, address + START[kind]) as page:
        page.wait_for_function("document.documentElement.dataset.charted !== undefined")
        for view in VIEWS[kind]:
            assert page.locator(f"#{view}").inner_text().strip(), view
            canvases = page.locator(f"#{view} canvas").all()
            assert len(canvases) == DRAWN[kind].get(view, 0), view
            for canvas in canvases:
                assert canvas.evaluate(COLOURS) > 3, view
        hidden = {view for each in VIEWS.values() for view in each} - set(VIEWS[kind])
        assert not any(page.locator(f"#{view}").is_visible() for view in hidden)
        page.click("#map-go")
        page.wait_for_selector("#phase canvas >> nth=1", timeout=60_000)
        assert "1e6 points" in page.locator("#phase").inner_text()


def test_a_link_gives_its_configuration_and_what_is_shown_is_pythons(browser: Any, address: str) -> None:
    """Of tp = 2, the dp = 2 of the start, and 32 sequences."""
    with opened(browser, address + START["infer"]) as page:
        cells = _cells(page)
    run = InferenceRun(
        sf.Model.load(MODEL), sf.System.load(SYSTEM), sf.Plan(tp=2, dp=2), batch=32, prompt=512, generate=256
    )
    assert cells["Prefill (TTFT)"] == f"{run.value('prefill') * 1e3:.3g} ms"
    assert cells["Time per token"] == f"{run.value('time_per_token') * 1e3:.3g} ms"


def test_a_configuration_that_cannot_be_says_why(browser: Any, address: str) -> None:
    """In the words of the command line; an address of nonsense is left aside."""
    with opened(browser, address + "#a=infer&a.dp=16&a.batch=7&a.tp=99&b=x&a.prompt=1e999") as page:
        assert (
            page.get_by_role("alert").inner_text()
            == "batch: 7 sequences are not divisible by dp x micro_batch = 16 x 1 = 16"
        )
        assert not page.locator("#operations").is_visible()


def test_what_is_set_is_in_the_link_and_can_be_undone(browser: Any, address: str) -> None:
    """Two configurations too; a page at the link shows the same."""
    with opened(browser, address) as page:
        first = _cells(page)
        page.select_option("#c-tp", "4")
        page.fill("#c-batch", "64")
        page.press("#c-batch", "Tab")
        second = _cells(page)
        assert second != first
        page.click("#undo")
        page.click("#undo")
        assert _cells(page) == first
        page.click("#redo")
        page.click("#redo")
        assert _cells(page) == second
        page.click("#compare")
        page.select_option("#c-tp", "2")
        both, link = page.locator("#headline").inner_text(), page.url
        assert "A\tB" in both
    with opened(browser, link) as page:
        assert page.locator("#headline").inner_text() == both


@pytest.mark.parametrize("kind", VIEWS)
def test_the_keyboard_reaches_everything(browser: Any, address: str, kind: str) -> None:
    """Tab stands on each control, link and equation in turn; Enter tells a formula and keeps its place; arrows move."""
    with opened(browser, address + START[kind]) as page:
        page.wait_for_function("document.documentElement.dataset.charted !== undefined")
        page.focus('[data-key="head/time"]')
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.dataset.key") == "head/time"
        assert page.locator("#headline .detail math").count() > 0
        count, reached = page.evaluate(FOCUS, REACHABLE), set()
        page.evaluate("document.activeElement.blur()")
        for _ in range(count + 5):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.dataset.reach"))
        assert {str(k) for k in range(count)} <= reached
        before = page.input_value("#c-batch")
        page.focus('input[aria-label="batch, slider"]')
        page.keyboard.press("ArrowRight")
        assert int(page.input_value("#c-batch")) == int(before) + 1


@pytest.mark.parametrize(("kind", "scheme", "width"), [("train", "light", 1280), ("infer", "dark", 390)])
def test_axe_finds_nothing_serious(browser: Any, address: str, kind: str, scheme: str, width: int) -> None:
    """Names, roles, order and contrast, with a formula open, in both schemes and at both widths."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    size = {"width": width, "height": 900}
    with opened(browser, address + START[kind], color_scheme=scheme, viewport=size) as page:
        page.click('[data-key="head/time"]')
        page.wait_for_function("document.documentElement.dataset.charted !== undefined")
        violations = axe.Axe().run(page).response["violations"]
        assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in violations] == []


def test_a_browser_without_workers_draws_a_smaller_map(browser: Any, address: str) -> None:
    """And says so."""
    with opened(browser, address + START["train"], "delete globalThis.Worker") as page:
        page.click("#map-go")
        page.wait_for_selector("#phase canvas")
        assert "This browser runs no workers, so the map has fewer points" in page.locator("#phase").inner_text()


def test_what_fits_nowhere_says_what_is_missing(browser: Any, address: str) -> None:
    """How many bytes, on which systems it would fit, and what needs less."""
    with opened(browser, address + "#a=train&a.batch=2048&a.dp=1&a.tp=1&a.micro_batch=1024&a.sequence=65536") as page:
        told = page.locator("#memory").inner_text()
        assert "are missing. With these choices it fits on none of the systems of the page, which is one: " in told
        assert "does not fit" in _cells(page)["Memory"]


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    """Of a model, in a title, in a list and in what is copied; nothing runs."""
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`${alert(1)}"
    known = json.loads(json.dumps(data()).replace(json.dumps(MODEL), json.dumps(evil)))
    path = tmp_path / "page.html"
    path.write_text(page_of({**known, "models": [evil]}), encoding="utf-8")
    with opened(browser, path.as_uri()) as page:
        assert page.title().startswith(evil)
        assert evil in page.locator("#headline caption").inner_text()
        assert page.locator("img").count() == 0
        page.click("#copy-latex")
        page.wait_for_function("document.getElementById('said').textContent !== ''")


def test_pictures_are_saved(browser: Any, address: str) -> None:
    """A chart and bars, each as a PNG file of some size."""
    with opened(browser, address + START["train"]) as page:
        for name in ("Roofline", "Memory by stage"):
            with page.expect_download() as found:
                page.click(f'button[aria-label="Save {name} as PNG"]')
            content = Path(found.value.path()).read_bytes()
            assert content.startswith(b"\x89PNG")
            assert len(content) > 3000
