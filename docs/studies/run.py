"""Writes the studies of this folder: the CSV files, the figures, and the generated parts of their pages.

Run: python docs/studies/run.py [NAME ...] [--check]

Without a name, all. With --check nothing is written: the coarse rows of each study are computed anew and looked up in
its CSV files, and its page is compared with them; exit status 1 if anything is stale. The figures need matplotlib
(`pip install symperf[plot]`); --no-figures leaves them as they are. What a study is made of: `study.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import study as studies

from symperf import InputError

INTERRUPTED = 130


def write(name: str, folder: Path, *, coarse: bool = False, figures: bool = True) -> list[str]:
    """Compute one study and write its files into a folder.

    Returns:
        The names of the files that have changed.
    """
    module = studies.load(name)
    found = module.study(coarse)
    fresh = {studies.file_name(name, part, ".csv"): studies.as_csv(rows) for part, rows in found.tables.items()}
    if not coarse:
        page = studies.text_of(studies.HERE / f"{name}.md")
        parts = module.blocks(studies.as_read(found.tables))
        fresh[f"{name}.md"] = studies.filled(page, parts, f"{name}.md")
        for part in found.figures:
            _linked(page, name, part)
    if figures:
        drawn = {studies.file_name(name, part, ".svg"): picture(draw) for part, draw in found.figures.items()}
        fresh |= drawn
    return _put(folder, fresh)


def _linked(page: str, name: str, part: str) -> None:
    file = studies.file_name(name, part, ".svg")
    if f"({file})" not in page:
        raise InputError(f"{name}.md: found no ![...]({file}), expected each figure of the study on its page")


def picture(draw: Any) -> str:
    """The SVG text of a figure, the same bytes each time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "symperf"}):
        draw(figure)
        figure.savefig(out, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _put(folder: Path, fresh: dict[str, str]) -> list[str]:
    """Write the files that say something else, none before all of them are on the disk; their names.

    Raises:
        InputError: one of them cannot be written.
    """
    changed = {file: text for file, text in fresh.items() if _said(folder / file) != text}
    parts = {file: folder / f".{file}.{os.getpid()}" for file in changed}
    file = ""
    try:
        for file, text in changed.items():
            parts[file].write_text(text, encoding="utf-8")
        for file, part in parts.items():
            part.replace(folder / file)
    except OSError as error:
        raise InputError(f"{folder / file}: cannot be written: {error.strerror}") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return list(changed)


def _said(path: Path) -> str | None:
    """The text of a file; None where there is none that can be read."""
    try:
        return studies.text_of(path)
    except InputError:
        return None


def check(name: str, folder: Path) -> list[str]:
    """What is stale of one study: a line for each file that its module no longer says, the page last."""
    module = studies.load(name)
    coarse = studies.as_read(module.study(True).tables)
    kept: studies.Tables = {}
    lines = []
    for part, rows in coarse.items():
        path = folder / studies.file_name(name, part, ".csv")
        if not path.exists():
            lines.append(f"{path.name}: missing")
            continue
        kept[part] = studies.rows_of(studies.text_of(path), path.name)
        if not rows:
            lines.append(f"{path.name}: unchecked, the coarse study has no row of it")
        elif lost := studies.missing(rows, kept[part]):
            lines.append(f"{path.name}: stale, {len(lost)} of {len(rows)} coarse rows are not in it: {_short(lost[0])}")
    expected = {studies.file_name(name, part, ".csv") for part in coarse}
    lines += [f"{path.name}: no table" for path in sorted(folder.glob(f"{name}*.csv")) if _left(path, name, expected)]
    if not lines:
        page = studies.text_of(folder / f"{name}.md")
        if studies.filled(page, module.blocks(kept), f"{name}.md") != page:
            lines.append(f"{name}.md: stale, its tables are not those of the CSV files")
    return lines


def _left(path: Path, name: str, expected: set[str]) -> bool:
    """Whether a file belongs to this study, and to none of its tables."""
    others = [other for other in studies.names() if other != name and other.startswith(name)]
    mine = path.stem == name or path.stem.startswith(f"{name}_")
    return mine and path.name not in expected and not any(path.stem.startswith(other) for other in others)


def _short(row: studies.Row) -> str:
    text = ", ".join(f"{key}={value}" for key, value in row.items())
    return text if len(text) <= 160 else text[:157] + "..."


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(studies.names())}; all if none")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a file is stale")
    parser.add_argument("--coarse", metavar="FOLDER", type=Path, help="write the coarse tables and figures elsewhere")
    parser.add_argument("--no-figures", action="store_true", help="leave the figures as they are")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except InputError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        told = "" if options.check else "; the studies before this one are written"
        print(f"run.py: interrupted{told}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads the lines has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.names or studies.names()))
    for name in names:
        studies.load(name)
    figures = not options.no_figures
    if figures and not options.check and importlib.util.find_spec("matplotlib") is None:
        raise InputError("matplotlib: found none, expected pip install 'symperf[plot]', or --no-figures")
    if options.coarse and options.check:
        raise InputError("found --check and --coarse, expected one of them: --check writes nothing")
    if options.coarse and not _is_folder(options.coarse):
        raise InputError(f"--coarse: found {studies.quote(str(options.coarse))}, expected a folder")
    stale = 0
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name}: {studies.load(name).TITLE}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        if options.check:
            lines = check(name, studies.HERE)
            stale += len(lines)
        else:
            folder = options.coarse or studies.HERE
            lines = [f"{file}: written" for file in write(name, folder, coarse=bool(options.coarse), figures=figures)]
        for line in lines:
            print(line, flush=True)
        print(f"    {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
