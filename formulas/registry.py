"""Every formula: imports all pages and returns the registry."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from .language.formula import REGISTRY

if TYPE_CHECKING:
    from .language.formula import Formula


def load() -> dict[str, Formula]:
    """Every formula by name, by page.

    >>> load()["roofline_time"].parameters
    ('work_flops', 'traffic_bytes', 'rate', 'bandwidth')
    """
    package = __package__ or ""
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], prefix=f"{package}."):
        importlib.import_module(module.name)
    return dict(sorted(REGISTRY.items(), key=lambda item: item[1].page))
