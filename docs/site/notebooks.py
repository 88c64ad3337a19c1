"""The notebooks, run: as pages of the site with what their cells showed, or, as a program, for their errors alone."""

from __future__ import annotations

import base64
import html
import re
import sys
from typing import TYPE_CHECKING, Any

from stage import DOCS, SiteError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "notebooks"
LONGEST = 120
"""Seconds that a cell may take."""
LOCAL = {"KernelManager": {"transport": "ipc"}}
"""Cells go to their process through files, not through ports of the machine."""
ANSI = re.compile(r"\x1b\[[0-9;]*m")
PLACES = re.compile(r"\[([^\[\]]+)\]\(#[^)]*\)")
"""A link to a place in the book, which is elsewhere."""
TAGS = re.compile(r"\n\s*\n")


def names() -> list[str]:
    """The notebooks, in order."""
    return sorted(path.stem for path in (DOCS / FOLDER).glob("*.ipynb"))


def run(name: str) -> Any:
    """A notebook with the outputs of its cells.

    Raises:
        SiteError: a cell fails, with its last line.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from traitlets.config import Config

    notebook = nbformat.read(DOCS / FOLDER / f"{name}.ipynb", as_version=4)
    try:
        NotebookClient(notebook, timeout=LONGEST, kernel_name="python3", config=Config(LOCAL)).execute()
    except (CellExecutionError, CellTimeoutError) as error:
        last = ANSI.sub("", str(error)).strip().splitlines()[-1]
        raise SiteError(f"{FOLDER}/{name}.ipynb: a cell fails: {last}") from None
    return notebook


def write(folder: Path) -> list[Any]:
    """Write the notebooks as pages, and their pictures beside them; the part of the navigation that names them.

    Args:
        folder: of the pages.
    """
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    nav = []
    for name in names():
        notebook = run(name)
        text = as_page(notebook, folder / FOLDER, name)
        (folder / FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
        nav.append(f"{FOLDER}/{name}.md")
    return nav


def as_page(notebook: Any, folder: Path, name: str) -> str:
    """A notebook that was run, as Markdown; its pictures are written into the folder."""
    parts: list[str] = []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [shown(output, folder, f"{name}-{place}") for output in cell.outputs]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output: Any, folder: Path, name: str) -> str:
    """What a cell showed, as Markdown: HTML, mathematics, a picture or text, the first that there is."""
    data = output.get("data", {})
    if "text/html" in data:
        text = TAGS.sub("\n", re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL))
        return f'<div class="output" markdown="0">\n{text}\n</div>'
    if "image/png" in data:
        (folder / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f"![What the cell shows]({name}.png)"
    if "text/markdown" in data:
        text = PLACES.sub(r"\1", mathematics(data["text/markdown"]))
        return f'<div class="output" markdown="1">\n\n{text}\n\n</div>'
    if "text/latex" in data:
        formula = (
            data["text/latex"].strip().strip("$").replace("{aligned}", "{array}{rl}", 1).replace("{aligned}", "{array}")
        )
        return f'<div class="output" markdown="0">\n{mathematics(f"$${formula}$$")}\n</div>'
    text = data.get("text/plain", output.get("text", ""))
    return f"```text\n{text.rstrip()}\n```" if text else ""


def mathematics(text: str) -> str:
    """A text whose formulas between dollar signs are MathML."""
    from latex2mathml.converter import convert

    def block(match: re.Match[str]) -> str:
        return convert(html.unescape(match[1]).removeprefix(r"\displaystyle").strip(), display="block")

    def inline(match: re.Match[str]) -> str:
        return convert(html.unescape(match[1]).removeprefix(r"\displaystyle").strip())

    return re.sub(r"\$([^$\n]+)\$", inline, re.sub(r"\$\$(.+?)\$\$", block, text, flags=re.DOTALL))


def main() -> int:
    """Run all, and say which fail."""
    wrong = 0
    for name in names():
        try:
            run(name)
            print(f"{FOLDER}/{name}.ipynb: runs")
        except SiteError as error:
            print(error, file=sys.stderr)
            wrong += 1
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
