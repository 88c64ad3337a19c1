"""Reference pages: every verb with its flags as `symperf VERB -h` prints them, every public name from its docstring."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
from typing import Any

from stage import SiteError

GROUPS = {
    "What is described": ("Model", "System", "Plan", "Technology"),
    "What is asked": ("training", "inference", "serving", "tuning", "inspect", "search", "search_inference"),
    "What is made": ("emit", "read_framework", "calibrate", "measure", "allocate", "cross_formulas"),
    "Further": ("Zip", "InputError"),
}
"""Names of `symperf` under headings; what is not here stands under the last."""
ANSWERS = {
    "A training run": "symperf.runs.training_run.Run",
    "An inference": "symperf.runs.inference_run.InferenceRun",
    "A serving system": "symperf.serve.serving.Serving",
    "An answer of the algebra": "symperf.analysis.answers.Answer",
    "A closed form": "symperf.derive.derivation.Derivation",
}
"""Classes of what the functions return, by the headings of their pages."""
BOOK = ("tex", "markdown", "html", "site", "pdf", "show", "used_formulas")


def resolve(path: str) -> Any:
    """What a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public() -> dict[str, list[str]]:
    """The dotted paths of what the reference shows, by page."""
    import symperf

    grouped = [name for names in GROUPS.values() for name in names]
    rest = [name for name in symperf.__all__ if name not in (*grouped, "Run")]
    pages = {}
    for title, names in GROUPS.items():
        shown = [*names, *rest] if title == list(GROUPS)[-1] else names
        pages[title] = [f"{symperf._HOMES[name]}.{name}" for name in shown]
        pages[title] = [_home(f"symperf.{path}") for path in pages[title]]
    pages |= {title: [path] for title, path in ANSWERS.items()}
    return pages | {"The formula book": [_home(f"symperf.book.{name}") for name in BOOK]}


def _home(path: str) -> str:
    """The path under which a thing was written, which may be imported elsewhere."""
    thing = resolve(path)
    return f"{thing.__module__}.{thing.__qualname__}"


def undocumented(path: str) -> list[str]:
    """Of what a path names and its public members, those without a docstring."""
    thing = resolve(path)
    found = [] if inspect.getdoc(thing) else [path]
    if inspect.isclass(thing):
        for base in thing.__mro__:
            if base.__module__.partition(".")[0] != "symperf":
                continue
            for name, member in vars(base).items():
                shown = callable(member) or isinstance(member, property | classmethod | staticmethod)
                if not name.startswith("_") and shown and not inspect.getdoc(getattr(thing, name, None)):
                    found.append(f"{path}.{name}")
    return sorted(set(found))


def python_pages() -> dict[str, str]:
    """The pages of the Python interface by their names.

    Raises:
        SiteError: something public has no docstring.
    """
    pages = public()
    if bare := [each for paths in pages.values() for path in paths for each in undocumented(path)]:
        raise SiteError(f"no docstring: {', '.join(bare)}")
    files = {title: f"reference/{title.lower().replace(' ', '-')}.md" for title in pages}
    lines = [
        "# Python",
        "",
        "`import symperf as sf` gives the names of the first pages; the others are what they return.",
        "",
    ]
    for title, paths in pages.items():
        names = ", ".join(
            f"[`{path.rpartition('.')[2]}`]({files[title].removeprefix('reference/')}#{path})" for path in paths
        )
        lines.append(f"* [{title}]({files[title].removeprefix('reference/')}): {names}")
    found = {"reference/python.md": "\n".join(lines) + "\n"}
    for title, paths in pages.items():
        found[files[title]] = f"# {title}\n\n" + "\n\n".join(f"::: {path}" for path in paths) + "\n"
    return found


def command_line() -> str:
    """The page of all verbs."""
    from symperf.cli import main
    from symperf.cli.parser import build

    lines = ["# Command line", "", "What `symperf VERB -h` prints. Every verb takes `--json`.", ""]
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "96"
    try:
        for verb in build()[1]:
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
                main([verb, "-h"])
            if not out.getvalue().strip():
                raise SiteError(f"symperf {verb} -h prints nothing")
            lines += [f"## {verb}", "", "```text", out.getvalue().rstrip(), "```", ""]
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return "\n".join(lines)
