"""From a file of measurements to a system whose efficiencies and latencies are fitted to it."""

from __future__ import annotations

import dataclasses
import datetime
import math
import numbers
import os
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ..common.errors import InputError, nearest, quote, quote_path
from ..systems.system import System, catalogue_names
from . import runs
from .fit import DEPENDS, LOSSES, NOISE, Fit, Flat, Problem, flattest, solve
from .forms import families
from .plausible import SLOW, check_peaks, check_repeated, slow_rows
from .result import Calibration
from .summary import correlations_of, residuals_of, symbols_of, warnings_of
from .symbols import choose_symbols, parse_priors, priors
from .table import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .forms import RowFamily
    from .symbols import Prior
    from .table import MeasuredRow, MeasuredTable

FEWEST = 5
LEAST_NOISE = 1e-6
AWAY = 1.0
"""ln of the factor by which a symbol is moved to see whether any row depends on it."""


def calibrate(
    measured: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    system: str | os.PathLike[str] | System,
    *,
    fit: Iterable[str] = (),
    prior: Iterable[str] = (),
    loss: str = "soft-l1",
    noise: float = NOISE,
    date: str | None = None,
) -> Calibration:
    """Fit symbols of a system to measured times of its kernels and collectives, and of whole steps and requests.

    Args:
        measured: a CSV file, or several that are fitted together: in the columns that `symperf measure` writes, of
            steps in those of `training.csv` of `symperf validate`, or of latencies in those of its `inference.csv`.
        system: what was measured: a catalogue name, the path of a TOML file, or a `System` of the catalogue.
        fit: names of symbols; by default the efficiencies and latencies that the rows depend on.
        prior: `NAME=WIDTH`, or `WIDTH` for all: the standard deviation of ln(value) around the system's value.
        loss: what damps outliers: linear, soft-l1, huber or cauchy.
        noise: standard deviation of ln(time) from one measurement to the next.
        date: of the calibration, in ISO form; by default today.

    Returns:
        The fitted values with their errors, the residuals, and the new system.

    Raises:
        InputError: a file, a row, a symbol or an option that is not what it should be; or SciPy is not installed.
    """
    if loss not in LOSSES:
        raise InputError(f"--loss: found {quote(loss)}, expected {' or '.join(LOSSES)}{nearest(loss, LOSSES)}")
    if not (isinstance(noise, numbers.Real) and LEAST_NOISE <= noise <= 1):
        found = f"{noise:g}" if isinstance(noise, numbers.Real) else quote(noise)
        raise InputError(
            f"--noise: found {found}, expected a number above 0 and up to 1: 0.05 is 5 %, the least {LEAST_NOISE:g}"
        )
    fit = [fit] if isinstance(fit, str) else list(fit)
    prior = [prior] if isinstance(prior, str) else [str(text) for text in prior]
    loaded = system if isinstance(system, System) else System.load(system)
    base = loaded.name if isinstance(system, System) or loaded.name in catalogue_names() else os.fspath(system)
    names = choose_symbols(fit, loaded)
    # As the new file will state them: they choose the forms as there, and no software replaces them.
    loaded = dataclasses.replace(loaded, stated=loaded.stated | {*names})
    believed = priors(names, loaded, parse_priors(prior))
    tables = [read(path) for path in _paths(measured)]
    values = {name: quantity.value for name, quantity in loaded.quantities.items()}
    known, left, slow, devices = _usable(tables, loaded, values)
    problem, held = _reduce(known, values, believed, bool(fit), noise, loss)
    _check_enough(tables, known, problem, left)
    found, flats = _separate(problem, held)
    problem, outcome = found
    everything = symbols_of(problem, outcome, believed, values, held)
    new = loaded.with_values({s.name: s.value for s in everything if not s.why_held}, _any_rate(loaded))
    return Calibration(
        tuple((table.name, table.sha256) for table in tables),
        base,
        new,
        date or datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        len(outcome.residuals),
        tuple(everything),
        tuple(residuals_of(problem, outcome, values)),
        tuple(correlations_of(problem, outcome)),
        tuple((flat.parts, flat.held) for flat in flats),
        dict(left),
        tuple(warnings_of(devices, problem, outcome, slow)),
    )


def _any_rate(system: System) -> str:
    return next(iter(system.matrix_rates))


def _paths(measured: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """The files, of which none may come twice."""
    paths = [measured] if isinstance(measured, str | os.PathLike) else list(measured)
    if not paths:
        raise InputError("measured: found no file, expected at least one")
    first: dict[str, str] = {}
    for given in paths:
        path = os.fspath(given)
        at = path if "\0" in path else os.path.realpath(path)
        if at in first:
            raise InputError(f"measured: {quote(path)} comes twice, expected each file once")
        first[at] = path
    return paths


def _usable(
    tables: list[MeasuredTable], system: System, values: dict[str, float]
) -> tuple[list[RowFamily], Counter[str], list[MeasuredRow], tuple[str, ...]]:
    """The rows by form, those that are left out, and the devices.

    Left out are rows that no formula predicts, and those far slower than any prediction.
    """
    every: list[RowFamily] = []
    left: Counter[str] = Counter()
    slow: list[MeasuredRow] = []
    devices: list[str] = []
    for table in tables:
        check_repeated(table.rows, table.name)
        if table.runs:
            known, unused, named = runs.families(table, system)
        else:
            (known, unused), named = families(table.rows, system), table.devices
        check_peaks(known, system, table.name)
        found = slow_rows(known, values, table.name)
        if found:
            lines = {row.line for row in found}
            known = [part for family in known if (part := family.without(lines))]
            left[f"rows more than {SLOW:g} times slower than predicted"] += len(found)
        every += known
        left += unused
        slow += found
        devices += named
    return every, left, slow, tuple(dict.fromkeys(devices))


def _reduce(
    known: list[RowFamily],
    values: dict[str, float],
    believed: Sequence[Prior],
    asked: bool,
    noise: float,
    loss: str,
) -> tuple[Problem, dict[str, str]]:
    """The problem in the symbols that some row depends on; why the others keep their value."""
    whole = Problem(known, values, believed, noise, loss)
    seen = _visible_symbols(whole)
    held = {prior.name: "no row depends on it" for prior in believed if prior.name not in seen}
    kept = [prior for prior in believed if prior.name in seen]
    if asked and not kept and known:
        raise InputError(f"--fit: no row depends on {' or '.join(held)}")
    return Problem(known, values, kept, noise, loss), held


def _visible_symbols(problem: Problem) -> set[str]:
    """The symbols that a row depends on, at the start or with that symbol moved so that it binds."""
    found: set[str] = set()
    if not problem.families:
        return found
    start = np.array([math.log(prior.start) for prior in problem.priors])
    for place, name in enumerate(problem.names):
        for step in (0.0, -AWAY, AWAY):
            logs = start.copy()
            logs[place] += step
            if np.abs(problem.residuals(logs)[1][:, place]).max(initial=0.0) > DEPENDS:
                found.add(name)
                break
    return found


def _check_enough(tables: list[MeasuredTable], known: list[RowFamily], problem: Problem, left: Counter[str]) -> None:
    rows = sum(len(family.rows) for family in known)
    least = max(FEWEST, len(problem.priors) + 1)
    if rows < least:
        reasons = "".join(f"; {count} left out: {quote_path(why)}" for why, count in left.items())
        names = ", ".join(table.name for table in tables)
        symbols = f" for {len(problem.priors)} symbols" if problem.priors else ""
        raise InputError(f"{names}: found {rows} rows that can be used, expected at least {least}{symbols}{reasons}")


def _separate(problem: Problem, held: dict[str, str]) -> tuple[tuple[Problem, Fit], list[Flat]]:
    """Fit; while the rows cannot tell some symbols apart, hold one of them at the system's value and fit again."""
    flats: list[Flat] = []
    near: dict[str, float] | None = None
    while True:
        outcome = solve(problem, near)
        flat = flattest(problem, outcome)
        if flat is None:
            return (problem, outcome), flats
        flats.append(flat)
        near = dict(zip(problem.names, outcome.logs.tolist(), strict=True))
        others = [name for name in flat.parts if name != flat.held]
        held[flat.held] = (
            f"the rows do not tell it apart from {' and '.join(others)}" if others else "the rows hardly depend on it"
        )
        kept = [prior for prior in problem.priors if prior.name != flat.held]
        problem = Problem(problem.families, problem.values, kept, problem.noise, problem.loss)
