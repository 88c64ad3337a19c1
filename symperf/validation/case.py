"""A row of a table as something to predict, or as left out with its reason; and what was predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..evaluation.base_run import BaseRun

CALIBRATION = " (calibration)"
"""The end of the name of a family whose rows set constants."""
NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Case:
    """One measured number and how to predict it.

    Attributes:
        source: the family of the row: the part of its id before the hyphen.
        case: the row's id and a short text of what it is.
        quantity: the JSON key of what is compared: "time_s", "tokens_per_s", "memory_bytes", "prefill_s", ...
        measured: in SI units.
        run: builds the run; raises `InputError` where the row cannot be expressed.
        read: the prediction, in the unit of `measured`.
        labels: what errors may be grouped by: "model", "hw_key", "precision", "framework", ...
        implied: the share of the devices' peak rate that the measurement implies, if that can be told: above 1.2 its
            unit is doubted.
        kind: of the answer to the calibration of intervals (`evaluation.causes.KINDS`), where it is not its run's.
    """

    source: str
    case: str
    quantity: str
    measured: float
    run: Callable[[], BaseRun]
    read: Callable[[BaseRun], float]
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    implied: Callable[[BaseRun], float] | None = None
    kind: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A row that is not scored.

    Attributes:
        source: its family.
        case: its id.
        reason: a sentence; rows are counted by it, so it names no row.
    """

    source: str
    case: str
    reason: str


@dataclass(frozen=True)
class Scored:
    """A prediction beside its measurement.

    Attributes:
        source: the family.
        case: the row's id and a short text of what it is.
        quantity: the JSON key of what is compared.
        measured: in SI units.
        predicted: in the same unit.
        labels: what errors may be grouped by.
        low: the lower end of the prediction's 90 % interval; None of memory, which has none.
        high: the upper end.
        causes: how far each cause moves the logarithm of the time, downwards and upwards; none of memory.
        chosen: with what power the time goes with constants that were chosen when errors of steps were known (0.3: of
            1 % more, 0.3 % longer); None of memory.
    """

    source: str
    case: str
    quantity: str
    measured: float
    predicted: float
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    low: float | None = None
    high: float | None = None
    causes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    chosen: float | None = None

    @property
    def calibrates(self) -> bool:
        """Whether the row set constants: it is told, and no part of what all rows say."""
        return self.source.endswith(CALIBRATION)

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1

    @property
    def covered(self) -> bool | None:
        """Whether the measurement lies inside the interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def stretch(self) -> float | None:
        """By what the interval would have to be wider, in logarithms, to end at the measurement; None without one."""
        if self.low is None or self.high is None:
            return None
        end = self.high if self.measured > self.predicted else self.low
        needed, has = abs(math.log(self.measured / self.predicted)), abs(math.log(end / self.predicted))
        return needed / has if has else (math.inf if needed else 0.0)


Expressed = Case | LeftOut
