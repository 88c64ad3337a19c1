"""Whether two checkouts give the same answers, bit for bit: sixty command lines with `--json`, run in both.

Run: python benchmarks/same_answers.py BEFORE [AFTER] [--smoke]

BEFORE and AFTER are folders of checkouts; each is by default this one. Each answers in fresh interpreters with a cache
folder of its own. What differs is printed with the first place where it does; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CASES = Path(__file__).with_suffix(".txt")
"""Command lines, one a line."""


def answers(checkout: Path, python: str, lines: list[str]) -> list[str]:
    """What each line prints in a checkout: its exit status and its standard output or error."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SYMPERF_CACHE": cache, "PYTHONPATH": str(checkout)}

        def answer(line: str) -> str:
            command = [python, "-m", "symperf", *shlex.split(line), "--json"]
            done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
            return f"{done.returncode}\n{done.stdout or done.stderr}"

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(answer, lines))


def difference(before: str, after: str) -> str | None:
    """The first place where two answers differ, or None."""
    if before == after:
        return None
    pairs = zip(before, after, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
    near = slice(max(first - 60, 0), first + 60)
    return f"at character {first}: {before[near]!r} became {after[near]!r}"


def _kept(path: Path, make: Any) -> list[str]:
    """Answers from a file, or made and written there."""
    if path.exists():
        found: list[str] = json.loads(path.read_text(encoding="utf-8"))
        return found
    found = make()
    path.write_text(json.dumps(found), encoding="utf-8")
    return found


def main() -> None:
    """Compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "before",
        type=Path,
        nargs="?",
        default=ROOT,
        help="a checkout, or a .json file of its answers (written if absent)",
    )
    parser.add_argument("after", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument(
        "--keep", type=Path, help="a .json file: the answers of BEFORE are read from it, or written to it"
    )
    parser.add_argument("--smoke", action="store_true", help="three lines only")
    asked = parser.parse_args()
    lines = CASES.read_text(encoding="utf-8").splitlines()
    lines = lines[::25] if asked.smoke else lines
    before = (
        _kept(asked.keep, lambda: answers(asked.before, asked.python, lines))
        if asked.keep
        else answers(asked.before, asked.python, lines)
    )
    after = answers(asked.after, asked.python, lines)
    differing = 0
    for line, old, new in zip(lines, before, after, strict=True):
        if found := difference(old, new):
            differing += 1
            print(f"{line}\n  {found}")
    failed = sum(not old.startswith("0\n") for old in before)
    print(f"{len(lines)} command lines, {failed} of them refused by both or by the first, {differing} differ")
    raise SystemExit(differing > 0)


if __name__ == "__main__":
    main()
