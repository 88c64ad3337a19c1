"""symperf: closed-form time and memory of distributed LLM training and inference.

Names are loaded when they are first used, so that a cached prediction imports no SymPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .allocation import allocate as allocate
    from .api import inference as inference
    from .api import serving as serving
    from .api import training as training
    from .calibration.calibrate import calibrate as calibrate
    from .emission.emit import emit as emit
    from .errors import InputError as InputError
    from .inspection import inspect as inspect
    from .measuring.measure import measure as measure
    from .model import Model as Model
    from .plan import Plan as Plan
    from .run import Run as Run
    from .searching.api import search as search
    from .searching.inference import search_inference as search_inference
    from .system import System as System
    from .technology import Technology as Technology

_HOMES = {
    "InputError": "errors",
    "Model": "model",
    "Plan": "plan",
    "Run": "run",
    "System": "system",
    "Technology": "technology",
    "allocate": "allocation",
    "calibrate": "calibration.calibrate",
    "emit": "emission.emit",
    "inference": "api",
    "inspect": "inspection",
    "measure": "measuring.measure",
    "search": "searching.api",
    "search_inference": "searching.inference",
    "serving": "api",
    "training": "api",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
