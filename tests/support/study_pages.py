"""The modules of the documentation's studies, for their tests."""

from __future__ import annotations

import sys
from typing import Any

from support.paths import ROOT

STUDIES = ROOT / "docs" / "studies"
if str(STUDIES) not in sys.path:
    sys.path.insert(0, str(STUDIES))


def module(name: str) -> Any:
    """A module of the folder of studies."""
    __import__(name)
    return sys.modules[name]


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a CSV file of the folder, numbers as numbers."""
    return module("study").rows_of((STUDIES / f"{name}.csv").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
