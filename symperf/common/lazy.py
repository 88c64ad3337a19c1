"""Names of a package that are loaded when they are first used, so that nothing is imported that is not asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`.

    Args:
        package: its `__name__`.
        homes: the module of each name, relative to the package.
    """

    def load(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f".{homes[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
