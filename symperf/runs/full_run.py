"""What every run can be asked: a base run joined with analysis, closed forms and spending."""

from __future__ import annotations

from ..analysis.mixin import Analysis
from ..derive.mixin import Derivable
from ..evaluation.base_run import BaseRun
from ..spending.mixin import Spending


class FullRun(BaseRun, Analysis, Derivable, Spending):
    """A question with its closed forms and values, and all that can be asked of them."""
