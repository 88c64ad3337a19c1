"""Optional packages, imported where they are needed; a missing one is a line that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError


def import_extra(module: str, extra: str, what: str) -> Any:
    """The module, imported.

    Args:
        module: its name.
        extra: the extra of symperf that installs it.
        what: needs it; begins the error line.

    Raises:
        InputError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(f"{what}: needs {package}, which is not installed: pip install 'symperf[{extra}]'") from None
