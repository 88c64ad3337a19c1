"""`symperf formulas`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..common.outputs import write_file
from .output import console, write, write_json
from .plots import check_plot, write_plot

if TYPE_CHECKING:
    import argparse

FILES = ("pdf", "tex", "md", "html")
COMPARED = ("over", "low", "high", "set", "plot")
"""Flags of a comparison."""
SITE_MARK = "symperf-site.json"
"""A file of a site that says what belongs to it."""


def run(options: argparse.Namespace) -> int:
    """Print one formula or the list of all, or write the book; or where one formula passes another.

    Raises:
        InputError: what goes with --against alone.
    """
    if options.against is not None:
        return _compare(options)
    if (alone := next((name for name in COMPARED if getattr(options, name)), None)) is not None:
        raise InputError(f"formulas: found --{alone}, expected --against NAME as well")
    from ..book.entry import entry, pages
    from ..book.equation import latex_line
    from ..book.facts import brief, full
    from ..book.terminal import show, show_all

    names = None if options.name is None else [options.name]
    kind = next((kind for kind in FILES if getattr(options, kind) is not None), None)
    if kind is not None:
        return _write_book(kind, Path(getattr(options, kind)), names, options.json)
    if options.site is not None:
        return _write_site(Path(options.site), names, options.json)
    if options.latex and not options.json:
        formulas = [formula for page in pages(names) for formula in page.formulas]
        write("".join(("" if names else f"% {f.name}\n") + latex_line(f) + "\n" for f in formulas))
    elif options.name is not None:
        found = entry(options.name)
        if options.json:
            write_json(full(found))
        else:
            with console() as out:
                show(found, out)
    elif options.json:
        formulas = [formula for page in pages() for formula in page.formulas]
        extra = [{"latex": latex_line(f)} if options.latex else {} for f in formulas]
        write_json({"formulas": [brief(f) | more for f, more in zip(formulas, extra, strict=True)]})
    else:
        with console() as out:
            show_all(out)
    return 0


def _compare(options: argparse.Namespace) -> int:
    """Print where one formula passes another.

    Raises:
        InputError: no first formula, no symbol, or one that is unknown or has no value.
    """
    from ..analysis.formula_cross import cross_formulas
    from .settings import split_settings

    if options.name is None or options.over is None:
        raise InputError("formulas: --against needs a formula's name before it, and --over a symbol")
    check_plot(options)
    values = split_settings(options.set, "--set", "NAME=VALUE")
    found = cross_formulas(options.name, options.against, options.over, options.low, options.high, **values)
    write_plot(options, lambda: found)
    if options.json:
        write_json(found.to_dict())
    else:
        write(found.latex() if options.latex else f"{found}\n")
    return 0


def _write_book(kind: str, path: Path, names: list[str] | None, as_json: bool) -> int:
    """Write the book of all formulas, or of some, to a file; an old one is replaced."""
    from ..book import html, markdown, pdf, tex

    if kind == "pdf":
        content = pdf(tex(names)).content
    else:
        content = {"tex": tex, "md": markdown, "html": html}[kind](names).encode()
    write_file(path, content, f"formulas: --{kind}: cannot write {{}}")
    if as_json:
        write_json({"written": str(path), "bytes": len(content)})
    else:
        with console() as out:
            out.print(f"wrote {path}", soft_wrap=True)
    return 0


def _write_site(path: Path, names: list[str] | None, as_json: bool) -> int:
    """Write the book as a folder of pages; an old site is replaced."""
    from ..book import site
    from .folder import check_folder, write_folder

    told = "formulas: --site: cannot write {}"
    check_folder(path, SITE_MARK, told)
    files = site(names)
    write_folder(path, files, SITE_MARK, told)
    if as_json:
        size = sum(len(text.encode()) for text in files.values())
        write_json({"written": str(path), "files": len(files), "bytes": size})
    else:
        with console() as out:
            out.print(f"wrote {path / 'index.html'}", soft_wrap=True)
    return 0
