"""The scripts in benchmarks/calibration, which are no package."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

from support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = ROOT / "benchmarks" / "calibration"


@contextlib.contextmanager
def script(name: str) -> Iterator[Any]:
    """One of them as a module, while the block lasts; it and those that it imports are forgotten then."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
        for path in FOLDER.glob("*.py"):
            sys.modules.pop(path.stem, None)
