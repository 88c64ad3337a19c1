"""The best of all plans at each of many technologies, exactly: `best_over`.

A technology is a row of a table of system quantities. Technologies that differ in nothing but quantities with a proved
direction are searched together, by branch and bound over blocks of them (`blocks`); others apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.workers import default_threads
from ...common.errors import InputError, nearest, quote
from ...plans.arguments import load_model, load_system
from ...plans.plan import Plan, positive_integer
from ...systems.system_symbols import MATRIX_RATE, SYMBOLS
from ...systems.units import COUNT
from ..evaluate import lay_out_space
from ..request import check_limits, check_mapping, check_required, check_values, contradictions
from ..space import SearchQuestion
from .drive import Drive, Result
from .points import Points
from .space import apart, degree, half_precision, units_of
from .unit import RATES, UNITS

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ...models.model import Model
    from ...runs.training_run import Run
    from ...systems.system import System
    from .drive import Progress

    Array = np.ndarray[Any, Any]

MOST_THREADS = 1024
"""More do nothing but take memory."""


@dataclass(frozen=True, eq=False)
class BestOver:
    """The best plan at each technology.

    Attributes:
        question: what was asked, at the base system.
        columns: of the technologies.
        time: seconds of a step with the best plan; infinite where none fits.
        memory: bytes on the fullest device.
        plan: number of the plan in `plans`; -1 where none fits.
        feasible: plans that can run and fit.
        legal: plans that can run, if they fit.
        plans: fields of the plans that are the best somewhere.
        evaluated: evaluations of a row of plans at a technology or at a corner of a block.
    """

    question: SearchQuestion
    columns: Mapping[str, Array]
    time: Array
    memory: Array
    plan: Array
    feasible: Array
    legal: Array
    plans: list[dict[str, Any]]
    evaluated: int

    def __len__(self) -> int:
        return len(self.time)

    def run(self, technology: int) -> Run:
        """The run of the best plan at a technology.

        Raises:
            InputError: no plan fits there, or there is none of that number.
        """
        self._check(technology)
        if self.plan[technology] < 0:
            raise InputError(f"technology {technology}: no plan fits, expected one that the memory holds")
        return self.run_of(technology, self.plans[self.plan[technology]])

    def run_of(self, technology: int, plan: Mapping[str, Any]) -> Run:
        """The run of any plan at a technology.

        Args:
            technology: its place.
            plan: fields of the plan.

        Raises:
            InputError: the plan cannot run, or there is no technology of that number.
        """
        self._check(technology)
        if isinstance(plan, Plan):
            plan = {name: getattr(plan, name) for name in Plan.names()}
        unknown = next((name for name in check_mapping("plan", plan) if name not in Plan.names()), None)
        if unknown is not None:
            raise InputError(f"plan: no field {quote(unknown)} in a plan{nearest(unknown, Plan.names())}")
        at = {name: float(column[technology]) for name, column in self.columns.items()}
        return replace_technology(self.question, at).run(**plan)

    def _check(self, technology: object) -> None:
        """Refuse the number of no technology; negative ones, which arrays count from the end, as well."""
        whole = isinstance(technology, int | np.integer) and not isinstance(technology, bool)
        if not whole or not 0 <= technology < len(self):  # type: ignore[operator]
            raise InputError(f"technology: found {quote(technology)}, expected a number from 0 to {len(self) - 1}")


def replace_technology(question: SearchQuestion, values: Mapping[str, float]) -> SearchQuestion:
    """The question at the system of a technology; rates of other precisions keep their ratio to the 16-bit rate."""
    system = question.system
    precision = half_precision(question)
    values = dict(values)
    rate = values.pop("matrix_rate", None)
    changed = system.with_values(values, precision) if values else system
    if rate is not None:
        factor = rate / system.matrix_rate(precision).value
        for name, quantity in system.matrix_rates.items():
            changed = changed.with_values({"matrix_rate": quantity.value * factor}, name)
    return SearchQuestion(
        question.model,
        changed,
        question.devices,
        question.batch,
        question.sequence,
        question.values,
        question.required,
        question.limits,
        question.max_memory,
    )


def best_over(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    columns: Mapping[str, Any],
    *,
    devices: int,
    batch: int,
    sequence: int,
    require: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> BestOver:
    """The best plan of a whole search at each technology.

    Args:
        model: what is trained, or the name or path that `Model.load` takes.
        system: gives what no column gives, and which terms the costs have; or the name or path of one, as above.
        columns: 1-D arrays of one length in SI units, by name of a quantity of a system. `matrix_rate` is the dense
            rate in 16 bits; those in other precisions keep their ratio to it.
        devices: of a plan.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        require: values that fields of a plan are held at, as for `symperf.search`.
        limits: largest values of degrees.
        values: of other symbols, as for a single run.
        threads: how many; by default one for each processor.
        progress: told how many technologies are done.

    Returns:
        What `symperf.search` would find at each; of equally fast plans the one that it ranks first.

    Raises:
        InputError: an unknown quantity, one that the system lacks, a value out of range, columns of different lengths;
            and what a search refuses.
    """
    if threads is not None:
        threads = min(positive_integer("threads", threads), MOST_THREADS)
    given = check_columns(system := load_system(system), columns)
    question = SearchQuestion(
        load_model(model),
        system,
        positive_integer("devices", devices),
        positive_integer("batch", batch),
        positive_integer("sequence", sequence),
        check_values(values or {}),
        check_required(require or {}),
        check_limits(limits or {}),
    )
    for name in question.values:
        if name in given:
            raise InputError(f"technologies: {name}: found a value and a column, expected one of them")
    contradictions(question)
    count = len(next(iter(given.values())))
    result = Result(count)
    first = replace_technology(question, {name: float(column[0]) for name, column in given.items()})
    separate = apart(first, [name for name in given if name != "memory_capacity"])
    groups: list[Array] = [np.arange(count)]
    if separate:
        _, number = np.unique(np.column_stack([given[name] for name in separate]), axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(number.ravel()))[:-1])
    for group in groups:
        at = {name: float(column[group[0]]) for name, column in given.items()}
        here = replace_technology(question, at)
        free = {name: column[group] for name, column in given.items() if name not in separate}
        _search(here, free, group, result, threads, progress)
    numbers, plans = result.number_plans()
    costs = (result.time, result.memory, numbers, result.feasible, result.legal)
    return BestOver(question, given, *costs, plans, result.evaluated)


def check_columns(system: System, columns: Mapping[str, Any]) -> dict[str, Array]:
    """The columns as arrays.

    Raises:
        InputError: as `best_over`.
    """
    found: dict[str, Array] = {}
    known = [*SYMBOLS, "matrix_rate"]
    if columns is None or not len(given := check_mapping("technologies", columns)):
        raise InputError("technologies: found no columns, expected one or more by name of a quantity of a system")
    for name, column in given.items():
        if name not in known:
            raise InputError(f"technologies: unknown quantity {quote(name)}{nearest(str(name), known)}")
        if name != "matrix_rate" and name not in system.quantities:
            raise InputError(
                f"technologies: {name}: system {system.name} has none, expected a system that describes it"
            )
        try:
            values = np.atleast_1d(np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"technologies: {name}: found {quote(column)}, expected numbers") from None
        limit = MATRIX_RATE if name == "matrix_rate" else SYMBOLS[name]
        if values.ndim != 1 or not len(values):
            raise InputError(f"technologies: {name}: found shape {values.shape}, expected a list of one or more values")
        good = (values >= limit.low) & (values <= limit.high) | ((values == 0) & limit.zero)
        if not good.all():
            at = int(np.argmin(good))
            raise InputError(
                f"technologies: {name}: value {at} is {values[at]:g}, expected one between {limit.low:g} and "
                f"{limit.high:g} in SI units"
            )
        if limit.dimension == COUNT and (values % 1).any():
            at = int(np.argmax(values % 1 > 0))
            raise InputError(f"technologies: {name}: value {at} is {values[at]:g}, expected a whole number such as 108")
        found[name] = np.ascontiguousarray(values)
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"technologies: found columns of different lengths ({listed}), expected one length")
    return found


def _search(
    question: SearchQuestion,
    free: Mapping[str, Array],
    index: Array,
    result: Result,
    threads: int | None,
    progress: Progress | None,
) -> None:
    """Search technologies that differ in quantities with a direction.

    Args:
        question: at the system of one of them.
        free: these quantities, of each.
        index: of each, its place in the result.
        result: where to put what is found.
        threads: as for `best_over`.
        progress: likewise.
    """
    space = lay_out_space(question)
    result.spaces.append(space)
    count = len(index)
    capacity = np.minimum(
        free.get("memory_capacity", np.full(count, question.capacity)),
        np.inf if question.max_memory is None else question.max_memory,
    )
    base = question.base.system.matrix_rate(half_precision(question)).value
    held = {name: value for member in space.members for name, value in member.scalars.items()}
    fixed = {name: value for name, value in held.items() if name == UNITS or (degree(name) and name not in RATES)}
    fixed["matrix_rate"] = base
    columns = {name: np.broadcast_to(np.float64(value), count) for name, value in fixed.items()}
    columns |= {name: column for name, column in free.items() if name != "memory_capacity"}
    units = units_of(space, columns, base)
    if not units:
        return
    unproved = [unit for unit in units if not unit.proved]
    if unproved:
        raise ValueError(f"table {unproved[0].table}: what a plan alone decides is negative")
    memories = np.sort(np.concatenate([unit.memory[unit.legal] for unit in units]))
    result.feasible[index] = np.searchsorted(memories, capacity, side="right")
    result.legal[index] = len(memories)
    reads = {name for unit in units for name in unit.program.inputs} | {"matrix_rate"}
    columns = {name: column for name, column in columns.items() if name in reads}
    points = Points(columns, {name: degree(name) for name in columns}, capacity, units)
    Drive(points, units, index, len(result.spaces) - 1, result, progress).run(threads or default_threads())
