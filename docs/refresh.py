"""Writes the parts of the documentation that the program prints, so that no page quotes a stale number.

Run: python docs/refresh.py [--check]     (with --check nothing is written; exit status 1 if a page is stale)

* A fenced `text` block right after a fenced `sh` block holds what the last line of that block prints, up to `LINES`
  lines. A `text excerpt` block holds lines of it, broken anywhere; one that holds anything else is written anew, to be
  cut again by hand.
* The numbers of `paper/paper.md` follow from the table beside the accuracy page, and are written after it.
* `docs/accuracy.md` is written whole, from the published measurements that come with symperf; with `--check` those
  of its predictions are computed anew whose hash has changed (`accuracy_hashes.py`), with `--sample` some of them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
from pathlib import Path

from symperf.cli import main as symperf

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "paper")]
import accuracy_page  # noqa: E402
import figures  # noqa: E402

PAGES = (
    *("README.md", "docs/bottlenecks.md", "docs/derive.md", "docs/validation.md"),
    *(f"docs/tutorials/{name}.md" for name in ("first-prediction", "why-slow", "what-to-buy")),
)
LINES = 26
BLOCK = re.compile(r"(```sh\n(?P<commands>.*?)```\n\n```text(?P<part> excerpt)?\n)(?P<output>.*?)(```\n)", re.DOTALL)


def printed(command: str) -> list[str]:
    """The lines that a `symperf ...` command line prints."""
    words = shlex.split(command)
    os.environ.pop("COLUMNS", None)  # the reader's terminal is none of ours; readline sets it for children of a program
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = symperf(words[1:])
    if code:
        raise SystemExit(f"{command}: exit status {code}")
    return [line.rstrip() for line in out.getvalue().splitlines()]


def is_part(excerpt: str, lines: list[str]) -> bool:
    """Whether every line of an excerpt is among these lines, however lines are broken."""
    whole = f" {' '.join(' '.join(lines).split())} "
    return all(f" {' '.join(line.split())} " in whole for line in excerpt.splitlines() if line.strip())


def refreshed(page: str) -> str:
    """A page with its `text` blocks as the program prints them now."""

    def fresh(match: re.Match[str]) -> str:
        last = match["commands"].strip().splitlines()[-1]
        lines = printed(last)
        if match["part"] and is_part(match["output"], lines):
            return match[0]
        return match[1] + "\n".join([*lines[:LINES], *(["..."] if len(lines) > LINES else [])]) + "\n" + match[5]

    return BLOCK.sub(fresh, page)


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is stale")
    parser.add_argument("--sample", action="store_true", help="with --check: predict a sample of the rows that changed")
    options = parser.parse_args()
    fresh: dict[Path, str | bytes] = {}
    for page in PAGES:
        fresh[ROOT / page] = refreshed((ROOT / page).read_text(encoding="utf-8"))
    changed = accuracy_page.stale(sample=options.sample) if options.check else []
    if not options.check:
        found = accuracy_page.report()
        fresh |= accuracy_page.write(found)
        put(fresh)
    fresh[ROOT / "docs" / "accuracy.md"] = accuracy_page.page(accuracy_page.kept())
    fresh[figures.PAPER] = figures.written(figures.PAPER.read_text(encoding="utf-8"))
    stale = [path for path, content in fresh.items() if not path.exists() or path.read_bytes() != as_bytes(content)]
    for line in [*changed, *(f"{path.relative_to(ROOT)}: stale" for path in stale if options.check)]:
        print(line)
    if not options.check:
        put(fresh)
    return 1 if (stale or changed) and options.check else 0


def as_bytes(content: str | bytes) -> bytes:
    """The content of a file."""
    return content if isinstance(content, bytes) else content.encode()


def put(files: dict[Path, str | bytes]) -> None:
    """Write what has changed, and say so."""
    for path, content in files.items():
        if not path.exists() or path.read_bytes() != as_bytes(content):
            path.write_bytes(as_bytes(content))
            print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    sys.exit(main())
