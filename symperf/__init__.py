"""symperf: closed-form time and memory of distributed LLM training and inference.

Names are loaded when they are first used, so that a cached prediction imports no SymPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .common.lazy import lazy_names
from .common.version import VERSION

if TYPE_CHECKING:
    from .analysis.formula_cross import cross_formulas as cross_formulas
    from .api import inference as inference
    from .api import serving as serving
    from .api import training as training
    from .api import tuning as tuning
    from .calibration.calibrate import calibrate as calibrate
    from .common.errors import InputError as InputError
    from .export.emit import emit as emit
    from .frameworks.read import read_framework as read_framework
    from .measuring.measure import measure as measure
    from .models.model import Model as Model
    from .plan_search.api import search as search
    from .plan_search.inference.search import search_inference as search_inference
    from .plans.plan import Plan as Plan
    from .runs.inspection import inspect as inspect
    from .runs.training_run import Run as Run
    from .sweep.axes import Zip as Zip
    from .systems.system import System as System
    from .technology import Technology as Technology
    from .technology.allocation import allocate as allocate

__version__ = VERSION

_HOMES = {
    "InputError": "common.errors",
    "Model": "models.model",
    "Plan": "plans.plan",
    "Run": "runs.training_run",
    "System": "systems.system",
    "Technology": "technology",
    "Zip": "sweep.axes",
    "allocate": "technology.allocation",
    "calibrate": "calibration.calibrate",
    "cross_formulas": "analysis.formula_cross",
    "emit": "export.emit",
    "inference": "api",
    "inspect": "runs.inspection",
    "measure": "measuring.measure",
    "read_framework": "frameworks.read",
    "search": "plan_search.api",
    "search_inference": "plan_search.inference.search",
    "serving": "api",
    "training": "api",
    "tuning": "api",
}

__all__ = [*_HOMES]

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
