"""The answer of an allocation: the split, what it gives, and what more of each budget would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...runs.full_run import FullRun
    from .. import Chip


@dataclass(frozen=True)
class Allocation:
    """The best split of a chip's budgets for a workload.

    Attributes:
        relaxed_time: seconds at the proved optimum of the geometric program: cores, links and waves need not be whole.
        time: seconds of the exact form at the split that is returned.
        before: seconds of the exact form at the technology's default split of the same budgets.
        shares: of the budgets, as `Technology.chip` takes them.
        rates: of the relaxed chip, by name.
        elasticities: d ln T / d ln budget at the relaxed optimum, for "area", "power", "perimeter", "package".
        chip: the exact chip of the shares.
        run: the workload on it.
        bounds: atoms that were replaced by their lower bound, and how often.
        rounds: geometric programs that were solved.
        status: of the solver; "optimal" is proved to its tolerance.
    """

    relaxed_time: float
    time: float
    before: float
    shares: Mapping[str, float]
    rates: Mapping[str, float]
    elasticities: Mapping[str, float]
    chip: Chip
    run: FullRun
    bounds: Mapping[str, int]
    rounds: int
    status: str

    def as_json(self) -> dict[str, Any]:
        """The object that `symperf allocate --json` prints."""
        return {
            "time_s": self.time,
            "relaxed_time_s": self.relaxed_time,
            "default_time_s": self.before,
            "shares": dict(self.shares),
            "rates": dict(self.rates),
            "elasticities": dict(self.elasticities),
            "figures": dict(self.chip.figures),
            "relaxed_atoms": dict(self.bounds),
            "rounds": self.rounds,
            "status": self.status,
        }
