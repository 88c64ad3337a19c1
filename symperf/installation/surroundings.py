"""The cache folder, processors, compilers and GPUs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from ..codegen.store import Store
from ..codegen.workers import default_threads
from ..common.artefacts import cache_fault, cache_folder
from ..common.system_errors import cause
from .check import Check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 10.0
"""How long the driver of a GPU may take to answer."""
ASK_NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")


class Tool(NamedTuple):
    """A program that some verbs call, or that runs what they write.

    Attributes:
        name: what it is.
        programs: any of which will do.
        use: what for.
        remedy: how it is installed.
    """

    name: str
    programs: tuple[str, ...]
    use: str
    remedy: str


TOOLS = (
    Tool(
        "C compiler", ("cc", "gcc", "clang"), "what derive --c writes", "apt install gcc, or Xcode's command line tools"
    ),
    Tool("Node.js", ("node",), "what derive --js writes", "apt install nodejs, brew install node"),
    Tool("LaTeX", ("pdflatex",), "formulas --pdf", "apt install texlive-latex-base, or MacTeX"),
)


def checks(names: list[str]) -> Iterator[Check]:
    """What stands around the program.

    Args:
        names: of the GPUs, from `gpus`.
    """
    yield cache()
    threads, there = default_threads(), os.cpu_count() or 1
    yield Check("processors", "fine", f"{threads} of {there} for sweeps and searches")
    for tool in TOOLS:
        yield _tool(tool)
    yield gpu(names)


def cache() -> Check:
    """Whether what is compiled is kept, so that the second prediction of a kind is quick."""
    try:
        folder = cache_folder()
        if fault := cache_fault():
            return Check("cache", "slow", f"{fault}: every process compiles anew", _cache_remedy(folder))
        store, place = Store(folder), _existing(folder)
        if not os.access(place, os.W_OK):
            found = f"{folder} cannot be made, as '{place}' is not yours to write: every process compiles anew"
            return Check("cache", "slow", found, _cache_remedy(folder))
        entries, free = store.entries(), shutil.disk_usage(place).free
    except (OSError, ValueError, ImportError) as error:
        return Check("cache", "fault", f"cannot be looked at: {cause(error)}", "SYMPERF_CACHE names another folder")
    total = sum(entry.bytes for entry in entries)
    kept = f"{folder}: {len(entries)} entries, {_megabytes(total)} of at most {_megabytes(store.limit_bytes)}"
    if free < store.limit_bytes - total:
        found = f"{kept}, but the disk has only {_megabytes(free)} left: what does not fit is compiled anew each time"
        return Check("cache", "slow", found, "free some, or SYMPERF_CACHE names a folder on another disk")
    if not entries:
        found = f"{kept}: the first prediction of each kind takes seconds, later ones a moment"
        return Check("cache", "slow", found, "keep this folder between sessions: it fills by use")
    return Check("cache", "fine", kept)


def _cache_remedy(folder: Path) -> str:
    if folder.is_dir():
        return f"chmod 700 '{folder}' if it is yours, or SYMPERF_CACHE=FOLDER with one that is yours alone"
    return "SYMPERF_CACHE=FOLDER with a folder that is yours alone"


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _tool(tool: Tool) -> Check:
    for program in tool.programs:
        if path := shutil.which(program):
            return Check(tool.name, "fine", f"{path}, for {tool.use}")
    return Check(tool.name, "missing", f"no {' or '.join(tool.programs)}, for {tool.use}", tool.remedy)


def gpu(names: list[str]) -> Check:
    """The GPUs that `symperf measure` could use, by their names."""
    if names:
        return Check("GPU", "fine", f"{'; '.join(names)}, for measure")
    found = "none that nvidia-smi shows; predictions need none, measure does"
    return Check("GPU", "missing", found, "run symperf measure where there is one, and bring its file here")


def gpus() -> list[str]:
    """The name, memory and driver of each GPU; none where there is no driver that answers."""
    try:
        done = subprocess.run(ASK_NVIDIA, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
