"""Fits the constants of a device, or of a software's kernels on it, stage by stage."""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...common.errors import InputError, nearest, quote
from ...infer.reached import ANY, Reached
from ...infer.stack import Stack
from ...systems.system import System, catalogue_names
from ...systems.system_symbols import SYMBOLS, Quantity
from ...validation.kernels.formats import STACKS, software_of
from ..fit import NOISE, Problem, solve
from ..symbols import Prior
from .choose import OWN, Candidates, choose
from .rows import families_of, gather, parts_of, stand_in
from .stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...validation.kernels.forms import Setting
    from .rows import KernelFamily, Rows
    from .stages import Stage

MANY: Final = 200
"""Rows from which on a stage counts more than half of one with any number of them."""
FEWEST: Final = 8
"""Rows below which a stage is left out."""
WIDTH: Final = 2.0
"""Standard deviation of ln(constant) around where its search starts: it is hardly believed."""
BINDS: Final = 0.5
"""A row tells a constant's spread where at least this part of its time goes with it."""
ENDS: Final = (10, 90)
"""Percentiles of what such rows ask for, which are the constant's low and high."""


@dataclass(frozen=True)
class Errors:
    """Of |predicted / measured - 1|: rows, median and mean, and the mean with its sign."""

    rows: int
    median: float
    mean: float
    bias: float


@dataclass(frozen=True)
class Fitted:
    """A stage that was fitted.

    Attributes:
        stage: what it fits.
        constants: that were found, by name.
        rows: calibration rows that were read.
        before: errors of the rows that are kept back, with the constants that were known before.
        after: the same with those that were found.
        slopes: of the rows by the constants, in their order, and what the loss left of each row.
    """

    stage: Stage
    constants: Mapping[str, Quantity]
    rows: int
    before: Errors | None
    after: Errors | None
    slopes: tuple[Any, Any] = (None, None)


@dataclass
class KernelCalibration:
    """The outcome: constants of a device, or of a software on it.

    Attributes:
        system: that was measured.
        base: name or path of the system, or of the software's profile, whose constants these become.
        software: whose kernels they are; empty for the device's own.
        folder: of the tables.
        date: in ISO form.
        stages: that were fitted.
        left_out: rows that were not read, by reason.
        origin: whose tables they are.
        anywhere: constants that hold where a stage has none of its own.
    """

    system: System
    base: str
    software: str
    folder: str
    date: str
    stages: list[Fitted] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    origin: str = ""
    anywhere: Reached = field(default_factory=lambda: Reached({}, {}))

    @property
    def constants(self) -> dict[str, Quantity]:
        """Those that hold for every format."""
        return {n: q for fitted in self.stages if not fitted.stage.precision for n, q in fitted.constants.items()}

    @property
    def formats(self) -> dict[str, dict[str, Quantity]]:
        """Those of products in one format."""
        found: dict[str, dict[str, Quantity]] = {}
        for fitted in self.stages:
            if fitted.stage.precision:
                found.setdefault(fitted.stage.precision, {}).update(fitted.constants)
        return found

    def equip(self, setting: Setting) -> System:
        """The system of a setting with what is known so far; what a user states is fitted too."""
        known = Reached(self.constants, self.formats).over(self.anywhere).under(setting.precision or "")
        return dataclasses.replace(setting.equipped, stated=frozenset()).with_constants(known)


def calibrate_kernels(
    folder: str | os.PathLike[str],
    system: str | os.PathLike[str] | System,
    *,
    software: str = "",
    stack: str | os.PathLike[str] | None = None,
    stages: Sequence[Stage] = STAGES,
    most: int | None = OWN,
    date: str | None = None,
    origin: str = "",
    progress: Callable[[str, int, int], None] | None = None,
) -> KernelCalibration:
    """Fit the constants of kernels to the calibration rows of tables of measured kernels.

    Args:
        folder: with the tables, as `symperf validate --kernels` reads them.
        system: whose rows are taken: a catalogue name, the path of a TOML file, or a `System` of the catalogue.
        software: whose rows are taken, as the tables name it: its constants on the device are fitted. Without one those
            of the device itself, to the rows of every software.
        stack: the profile that the software's constants are for; the one of the catalogue unless it is given.
        stages: what is fitted, in order.
        most: constants of a software's own, at most; those that matter least are the profile's on any device.
        date: of the calibration, in ISO form; by default today.
        origin: whose tables they are, as sources say it; by default the folder's name.
        progress: is told what is read or fitted, how much of it is done, and of how much.

    Raises:
        InputError: tables that cannot be read, a device or software of which they have no row, or SciPy is missing.
    """
    loaded = system if isinstance(system, System) else System.load(system)
    base = loaded.name if loaded.name in catalogue_names() else os.fspath(system)  # type: ignore[arg-type]
    if software:
        base = os.fspath(stack) if stack is not None else _profile_of(software)
        Stack.load(base)
    today = date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    found = KernelCalibration(loaded, base, software_of(software) if software else "", os.fspath(folder), today)
    found.origin = origin or Path(folder).name
    rows, found.left_out = gather(Path(folder), loaded, software, _told(progress, "tables"))
    if software:
        found.anywhere = Reached({n: q for stage in stages for n, q in stage.given.items()}, {})
        rows = {name: [_under(part, base) for part in parts] for name, parts in rows.items()}
    wanted = [stage for stage in stages if stage.of_device != bool(software)]
    _fit_all(found, rows, wanted, progress)
    if software and most is not None:
        _reduce(found, rows, most, progress)
    if not found.stages:
        raise InputError(
            f"calibrate: {quote(str(folder))}: no stage has {FEWEST} rows of {loaded.name}"
            f"{' under ' + software if software else ''}"
        )
    return found


def calibrate_anywhere(
    folder: str | os.PathLike[str],
    systems: Sequence[System],
    software: str,
    stages: Sequence[Stage],
    *,
    date: str | None = None,
    origin: str = "",
) -> KernelCalibration:
    """Fit constants of a software that hold on any device to the calibration rows of all devices together.

    Args:
        folder: with the tables.
        systems: whose rows are taken; those of which the software has none are left out.
        software: as the tables name it.
        stages: what is fitted, in order.
        date: of the calibration, in ISO form; by default today.
        origin: whose tables they are, as sources say it; by default the folder's name.

    Raises:
        InputError: tables that cannot be read, or no system has a row under the software.
    """
    today = date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    base = _profile_of(software)
    found = KernelCalibration(systems[0], base, software_of(software), os.fspath(folder), today)
    found.origin = origin or Path(folder).name
    rows: Rows = {}
    missing: InputError | None = None
    for system in systems:
        try:
            own, left = gather(Path(folder), system, software)
        except InputError as error:
            missing = error
            continue
        found.left_out += left
        for name, parts in own.items():
            rows.setdefault(name, []).extend(_under(part, base) for part in parts)
    if not rows and missing is not None:
        raise missing
    _fit_all(found, rows, stages, None)
    return found


def _fit_all(
    found: KernelCalibration, rows: Rows, stages: Sequence[Stage], progress: Callable[[str, int, int], None] | None
) -> None:
    for number, stage in enumerate(stages):
        if progress is not None:
            progress(stage.name, number, len(stages))
        fitted = _fit(found, rows, stage)
        if fitted is not None:
            found.stages.append(fitted)


def _reduce(found: KernelCalibration, rows: Rows, most: int, progress: Callable[[str, int, int], None] | None) -> None:
    """Fit anew with the constants that matter most; the others are those of the profile on any device."""
    known = Stack.load(found.base).reached.get(ANY, found.anywhere)
    if sum(len(fitted.constants) for fitted in found.stages) <= most:
        return
    candidates = []
    for fitted in found.stages:
        anywhere = known.under(fitted.stage.precision)
        moves = {
            name: math.log(anywhere[name].value / quantity.value)
            for name, quantity in fitted.constants.items()
            if name in anywhere and anywhere[name].value > 0 and quantity.value > 0
        }
        part = fitted.rows / (fitted.rows + MANY)
        candidates.append(Candidates(list(fitted.constants), moves, *fitted.slopes, part))
    kept = choose(candidates, most)
    stages = [
        dataclasses.replace(fitted.stage, constants={name: fitted.stage.constants[name] for name in names})
        for fitted, names in zip(found.stages, kept, strict=True)
        if names
    ]
    found.stages = []
    found.anywhere = known.over(found.anywhere)
    _fit_all(found, rows, stages, progress)


def _told(progress: Callable[[str, int, int], None] | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, of: progress(what, done, of)


def _profile_of(software: str) -> str:
    name = software_of(software)
    if name not in STACKS:
        raise InputError(
            f"calibrate: --software: found {quote(software)}, expected {' or '.join(STACKS)}{nearest(name, STACKS)}; "
            "for another give the profile whose base it has, --stack"
        )
    return STACKS[name]


def _under(part: Any, profile: str) -> Any:
    setting = dataclasses.replace(part.sort.setting, profile=profile)
    return dataclasses.replace(part, sort=dataclasses.replace(part.sort, setting=setting))


def _fit(found: KernelCalibration, rows: Rows, stage: Stage) -> Fitted | None:
    """The constants of one stage; None where there are too few rows."""
    parts = parts_of(rows, stage, test=False)
    if sum(part.rows.size for part in parts) < FEWEST:
        return None
    kept = parts_of(rows, stage, test=True)
    before = _errors(families_of(kept, found.equip), {}) if kept else None

    def equip(setting: Setting) -> System:
        system = found.equip(setting)
        starts = {name: stand_in(start) for name, start in stage.constants.items()}
        return system.with_constants({n: q for n, q in starts.items() if n not in system.quantities})

    families = families_of(parts, equip)
    priors = [_prior(name, start) for name, start in stage.constants.items()]
    problem = Problem(families, dict(stage.constants), priors, NOISE, "soft-l1")
    outcome = solve(problem)
    values = problem.at(outcome.logs)
    used = [name for place, name in enumerate(problem.names) if stage.whole or np.any(outcome.slopes[:, place])]
    count = len(outcome.residuals)
    source = (
        f"fitted by symperf calibrate to {count:,} calibration rows of {', '.join(stage.rows)} of {found.origin}"
        f"{' in ' + stage.precision if stage.precision else ''}, {found.date}"
    )
    constants = {name: _quantity(name, values[name], outcome, problem.names.index(name), source) for name in used}
    places = [problem.names.index(name) for name in used]
    slopes = (outcome.slopes[:, places], outcome.weights)
    fitted = Fitted(stage, constants, count, before, None, slopes)
    found.stages.append(fitted)
    after = _errors(families_of(kept, found.equip), {}) if kept else None
    found.stages.pop()
    return dataclasses.replace(fitted, after=after)


def _prior(name: str, start: float) -> Prior:
    limits = SYMBOLS[name]
    return Prior(name, start, WIDTH, limits.low, limits.high)


def _quantity(name: str, value: float, outcome: Any, place: int, source: str) -> Quantity:
    """A constant with the ends of what the rows ask for that mostly go with it."""
    slopes, residuals = outcome.slopes[:, place], outcome.residuals
    telling = np.abs(slopes) >= BINDS
    rounded = float(f"{value:.3g}")
    if telling.sum() < FEWEST:
        return Quantity(rounded, source)
    asked = value * np.exp(np.clip(-residuals[telling] / slopes[telling], -3, 3))
    low, high = (float(f"{end:.3g}") for end in np.percentile(asked, ENDS))
    limits = SYMBOLS[name]
    return Quantity(rounded, source, max(min(low, rounded), limits.low), min(max(high, rounded), limits.high))


def _errors(families: Sequence[KernelFamily], values: Mapping[str, float]) -> Errors:
    found = np.concatenate([family.predict(values) / family.seconds - 1 for family in families])
    away = np.abs(found)
    return Errors(len(found), float(np.median(away)), float(away.mean()), float(found.mean()))
