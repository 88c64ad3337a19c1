"""The packages that an installation has and needs, by the metadata of symperf itself; none is imported but Numba."""

from __future__ import annotations

import importlib
import operator
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..common.version import VERSION
from .check import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRAS = {
    "allocate": "allocate",
    "book": "formulas --html",
    "calibrate": "calibrate",
    "dask": "search and sweep --dask",
    "docs": "building the site of the documentation",
    "mcp": "mcp",
    "hf": "inspect --check, measure",
    "plot": "--plot",
    "sweep": "sweep into .nc, .zarr and .parquet",
}
"""What the optional packages are for."""
BOUND = re.compile(r"(>=|<)\s*([\w.]+)")
COMPARE = {">=": operator.ge, "<": operator.lt}
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*])?([^;]*)(?:;.*extra\s*==\s*['\"]([\w-]+)['\"])?")


class Needed(NamedTuple):
    """A package that is needed.

    Attributes:
        name: of its distribution.
        bounds: of its version, as ">=1.26".
        extra: that needs it; empty where all of symperf does.
    """

    name: str
    bounds: str
    extra: str

    @property
    def version(self) -> str | None:
        """The version that is installed; None where there is none."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    @property
    def met(self) -> bool:
        """Whether a version within the bounds is installed."""
        return self.version is not None and is_within(self.version, self.bounds)

    def __str__(self) -> str:
        return f"{self.name} {self.version}" if self.met else f"{self.name}{self.bounds}"


def is_within(version: str, bounds: str) -> bool:
    """Whether a version is within bounds, by the numbers of its release.

    >>> is_within("1.14.0", ">=1.13,<1.15"), is_within("1.15", ">=1.13,<1.15"), is_within("2.0rc1", ">=2")
    (True, False, True)
    """
    return all(COMPARE[sign](_release(version), _release(bound)) for sign, bound in BOUND.findall(bounds))


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, padded so that 2 and 2.0 are the same."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return tuple([*numbers, 0, 0, 0, 0][: max(4, len(numbers))])


def needed() -> list[Needed]:
    """What the installed symperf needs, by its metadata.

    Raises:
        PackageNotFoundError: symperf is not installed, only lies on the path.
    """
    found = [REQUIREMENT.match(text) for text in metadata.requires("symperf") or ()]
    every = [Needed(each[1], each[2].strip(), each[3] or "") for each in found if each]
    return [each for each in every if each.name != "symperf"]


def checks() -> Iterator[Check]:
    """The program, Python, the packages that all verbs need, and those that some do."""
    machine = f"{platform.system()} {platform.machine()}"
    yield Check("symperf", "fine", f"{VERSION} in {Path(__file__).parent.parent}")
    yield Check("Python", "fine", f"{platform.python_version()} on {machine}, {sys.executable}")
    try:
        every = needed()
    except metadata.PackageNotFoundError:
        yield Check("packages", "fault", "symperf lies on the path, but is not installed", "pip install symperf")
        return
    yield _required([each for each in every if not each.extra])
    yield numba()
    for extra, use in EXTRAS.items():
        if wanted := [each for each in every if each.extra == extra]:
            yield _optional(extra, use, wanted)


def _required(wanted: list[Needed]) -> Check:
    bad = [each for each in wanted if not each.met]
    if not bad:
        return Check("packages", "fine", ", ".join(map(str, wanted)))
    told = ", ".join(f"{each.name} {each.version or 'is not there'} (needs {each.bounds})" for each in bad)
    return Check("packages", "fault", told, _install(bad))


def _optional(extra: str, use: str, wanted: list[Needed]) -> Check:
    bad = [each for each in wanted if not each.met]
    name = f"symperf[{extra}]"
    if not bad:
        return Check(name, "fine", f"{', '.join(map(str, wanted))}, for {use}")
    return Check(name, "missing", f"{', '.join(map(str, bad))}, for {use}", f"pip install '{name}'")


def _install(wanted: list[Needed]) -> str:
    return "pip install " + " ".join(f"'{each.name}{each.bounds}'" for each in wanted)


def numba() -> Check:
    """Whether Numba, which compiles large sweeps and searches, can be loaded and compiles."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        found = "compiles nothing, as NUMBA_DISABLE_JIT says: large sweeps and searches are far slower"
        return Check("Numba", "slow", found, "unset NUMBA_DISABLE_JIT")
    try:
        importlib.import_module("numba")
    except Exception as error:  # a library of machine code fails in any way at all
        told = " ".join(str(error).split())[:200]
        return Check("Numba", "fault", f"cannot be loaded: {told}", "pip install --force-reinstall numba llvmlite")
    return Check("Numba", "fine", "can be loaded")


def versions() -> dict[str, str | None]:
    """The versions of all packages that symperf can use; None where one is not installed."""
    try:
        return {each.name: each.version for each in needed()}
    except metadata.PackageNotFoundError:
        return {}
