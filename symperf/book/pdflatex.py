"""The book as PDF, by pdflatex."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..common.errors import InputError

PASSES = 5
"""At most; references and the table of contents settle in three."""
LIMIT_S = 300
"""Seconds for one pass, after which something is wrong with the installation."""


@dataclass(frozen=True)
class Pdf:
    """A PDF file's bytes and the log of the last pass."""

    content: bytes
    log: str


def pdf(document: str) -> Pdf:
    """Compile a LaTeX document.

    Raises:
        InputError: pdflatex is not installed, or it failed: with the first error of its log.
    """
    program = shutil.which("pdflatex")
    if program is None:
        raise InputError(
            "formulas: --pdf needs pdflatex, which is not installed: install TeX Live (on Debian and Ubuntu the "
            "package texlive-latex-base), or use --tex"
        )
    with tempfile.TemporaryDirectory(prefix="symperf-book-") as name:
        folder = Path(name)
        (folder / "book.tex").write_text(document, encoding="utf-8")
        command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "book.tex"]
        for _ in range(PASSES):
            before = _auxiliary(folder)
            log = _run(command, folder)
            if _auxiliary(folder) == before:
                break
        return Pdf((folder / "book.pdf").read_bytes(), log)


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "max_print_line": "10000", "openin_any": "p", "openout_any": "p"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"formulas: pdflatex failed: {type(error).__name__}") from None
    file = folder / "book.log"
    log = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    if done.returncode:
        found = re.search(r"^! (.*)$", log, re.MULTILINE)
        raise InputError(f"formulas: pdflatex failed: {found[1] if found else f'exit status {done.returncode}'}")
    return log


def _auxiliary(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(folder.glob("book.*")) if file.suffix in (".aux", ".toc")]
