"""Draws the pictures of `docs/pictures.md` anew, each from the command that stands above it.

Run: python docs/pictures.py [--check] [NAME...]

With `--check` nothing is written: the texts of each drawing, which matplotlib writes beside their shapes, are compared
with those in the file, so that no version of a font or of matplotlib matters. Exit status 1 if a picture is stale.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path

from symperf.cli import main as symperf

FOLDER = Path(__file__).resolve().parent
BLOCK = re.compile(r"```sh\n(symperf [^\n]+)\n```\n\n!\[[^]]*\]\(pictures/(\w+)\.svg\)")
TEXT = re.compile(r"<!-- (.*?) -->", re.DOTALL)
INDENTED = re.compile(r"^\s+", re.MULTILINE)
LONG = re.compile(r"-?\d+\.\d{4,}")
"""Numbers of more places than are seen."""


def pictures() -> dict[str, str]:
    """The command of each picture of the page, by the name of its file."""
    return {name: command for command, name in BLOCK.findall((FOLDER / "pictures.md").read_text(encoding="utf-8"))}


def draw(command: str) -> str:
    """The picture that a command draws, without the blanks before its lines and with three places of numbers."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / "it.svg"
        if code := symperf([*shlex.split(command)[1:], "--plot", str(file)]):
            raise SystemExit(f"{command}: exit status {code}")
        drawing = INDENTED.sub("", file.read_text(encoding="utf-8"))
    return LONG.sub(lambda found: f"{float(found[0]):.3f}", drawing)


def texts(drawing: str) -> list[str]:
    """The texts of a picture, in their order."""
    return [html.unescape(text) for text in TEXT.findall(drawing)]


def main() -> int:
    """Draw or compare the pictures."""
    parser = argparse.ArgumentParser(description="Draws the pictures of docs/pictures.md.")
    parser.add_argument("names", nargs="*", help="of the pictures (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a picture is stale")
    options = parser.parse_args()
    known, stale = pictures(), []
    for name in options.names or known:
        file, drawing = FOLDER / "pictures" / f"{name}.svg", draw(known[name])
        if not options.check:
            file.write_text(drawing, encoding="utf-8")
        elif not file.exists() or texts(file.read_text(encoding="utf-8")) != texts(drawing):
            stale.append(name)
            print(f"stale: docs/pictures/{name}.svg")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
