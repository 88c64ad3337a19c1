"""What the package is, as hashes: of its sources, and of what numbers depend on beside them."""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from pathlib import Path

from ..codegen.store import digest

ROOT = Path(__file__).parent.parent
"""The package."""
_FOLDERS = (ROOT, ROOT / "formulas", ROOT / "codegen")
"""The last two may be links, which rglob does not follow."""
PACKAGES = {"SymPy": "sympy", "NumPy": "numpy", "Numba": "numba"}
"""What numbers may depend on, and the name of its distribution."""
_APART = ("book", "cli", "report")
"""Folders of the package that no number depends on."""


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A text that changes with any source file of the package, or with the Python that runs it."""
    files = {path for folder in _FOLDERS for path in folder.rglob("*.py")}
    marks = []
    for path in sorted(files):
        status = path.stat()
        marks.append(f"{path.relative_to(ROOT)}:{status.st_size}:{status.st_mtime_ns}")
    return digest(sys.version, *marks)


@cache
def constants_version() -> str:
    """A short hash of every table of the catalogue: devices, kernels, software, technologies, spreads, who chose them.

    It changes with any of them, comments too; models, which are files of their own, are not in it.
    """
    folder = ROOT / "catalogue"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.toml"))
    return digest(*(text for name in names for text in (name, (folder / name).read_text(encoding="utf-8"))))[:12]


@cache
def sources() -> str:
    """A hash of the package's source, the same wherever it is installed and whenever."""
    files = {p for folder in _FOLDERS for kind in ("*.py", "*.j2") for p in folder.rglob(kind)}
    names = {p.relative_to(ROOT): p for p in files}
    parts = [(at.as_posix(), names[at]) for at in sorted(names) if at.parts[0] not in _APART]
    return digest(*(text for at, path in parts for text in (at, path.read_text(encoding="utf-8"))))
