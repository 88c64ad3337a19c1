"""The explorer in headless Chromium: a slider's answer, and a map of a million points.

Run: python benchmarks/bench_explorer.py [--page FILE] [--repeat N] [--json FILE] [--smoke]

Needs Playwright and a Chromium (`pip install playwright`, `apt-get install chromium`). A slider is moved step by step:
its answer is all that the page draws for it, as the page itself measures; processor time is that of the page's main
thread. The least of several counts, since noise only adds. `--page` opens a page that is there already. `--smoke` only
sees that a page of few structures gives Python's time.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import symperf as sf
from symperf.explore.explorer import Explorer, parse_varied

FEW = ["recompute=none", "sequence_parallel=false", "zero=0", "schedule=1f1b", "attention=flash"]
MOVE = """async (name) => {
  const range = document.querySelector(`input[aria-label="${name}, slider"]`), found = [];
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  for (let k = 0; k < 24; k += 1) {
    range.value = String(300 + 10 * k);
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await frame();
    const { drawn, charted } = document.documentElement.dataset;
    found.push([Number(drawn), Number(charted)]);
  }
  return found;
}"""


def make_page(folder: Path, *, few: bool) -> Path:
    """A page of one model on one system, of all structures or of few."""
    plan = sf.Plan() if few else sf.Plan(tp=8, pp=4, dp=2, sequence_parallel=True)
    name = "llama-2-7b" if few else "llama-2-70b"
    work = (8, 1024) if few else (64, 4096)
    explorer = Explorer(
        [sf.Model.load(name)], [sf.System.load("h100-sxm")], plan, train=work, varied=parse_varied(FEW if few else [])
    )
    path = folder / "explorer.html"
    path.write_text(explorer.html(), encoding="utf-8")
    return path


def processor_ms(session: Any) -> float:
    """Milliseconds of the main thread so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def measure(page: Any, session: Any, repeat: int) -> list[dict[str, Any]]:
    """Rows of what is measured: milliseconds, the least and the median."""
    rows = []
    for kind, hash_ in (("train", "#a=train"), ("infer", "#a=infer")):
        page.goto(page.url.partition("#")[0] + hash_)
        page.wait_for_function("document.documentElement.dataset.charted !== undefined")
        before = processor_ms(session)
        moves = page.evaluate(MOVE, "memory bandwidth")
        busy = (processor_ms(session) - before) / len(moves)
        for what, values in (("numbers and bars", [a for a, _ in moves]), ("charts", [b for _, b in moves])):
            rows.append(_row(f"{kind}: a slider's {what}", values))
        rows.append(_row(f"{kind}: a slider's answer, processor time of a move", [busy]))
        maps = []
        for _ in range(repeat):
            page.click("#map-go")
            page.wait_for_selector("#phase canvas >> nth=1", timeout=120_000)
            told = page.locator("#phase").inner_text()
            maps.append(float(told.partition(" points in ")[2].partition(" ms")[0]))
        rows.append(_row(f"{kind}: a map of 1,000 x 1,000 points", maps))
    return rows


def _row(name: str, values: list[float]) -> dict[str, Any]:
    return {"what": name, "least_ms": min(values), "median_ms": statistics.median(values), "runs": len(values)}


def main() -> int:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    browser_path = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    if browser_path is None or importlib.util.find_spec("playwright") is None:
        print("bench_explorer: Playwright or a Chromium is missing: nothing is measured", file=sys.stderr)
        return 0 if options.smoke else 1
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = options.page or make_page(Path(folder), few=options.smoke)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(path.resolve().as_uri())
        if options.smoke:
            found = page.evaluate("symperf.ask('a=train&a.batch=16')")
            run = sf.training("llama-2-7b", "h100-sxm", sf.Plan(), batch=16, sequence=1024)
            assert abs(found["time"] / run.value("time") - 1) < 1e-12, (found, run.value("time"))
            print("explorer: the page's time is Python's")
            return 0
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        rows = measure(page, session, options.repeat)
        browser.close()
    for row in rows:
        print(f"{row['what']:58} {row['least_ms']:9.1f} ms least, {row['median_ms']:9.1f} median of {row['runs']}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
