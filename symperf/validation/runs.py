"""The training run of a row."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..runs.training_run import Run
from ..systems.software import Software
from .definitions import software_of
from .documents import document_of
from .layout import layout_of
from .models import model_of
from .systems import system_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..plans.plan import Plan
    from ..systems.system import System
    from .rows import TableRow


def run_of(row: TableRow, *, memory_only: bool = False) -> Run:
    """The training run of a row.

    Args:
        row: of a table.
        memory_only: no time is asked for, so the global batch need not be given.

    Raises:
        InputError: the row cannot be expressed.
    """
    said = document_of(row)
    model = model_of(row)
    layout = layout_of(row, model, memory_only=memory_only)
    system = with_kernels(system_of(row, said.network), stack_of(row))
    software = software_of(row.text("framework"))
    values: dict[str, Any] = {
        **software.values,
        **(software.split_values if layout.plan.tp > 1 else {}),
        **(software.staged_values if layout.plan.pp > 1 else {}),
        **said.values,
    }

    def run(plan: Plan) -> Run:
        return Run(model, system, plan, batch=layout.batch, sequence=layout.sequence, values=values)

    return fastest(run, layout.choices) if layout.choices else run(layout.plan)


def fastest(run: Callable[[Plan], Run], plans: Iterable[Plan]) -> Run:
    """The run of the fastest plan that fits into memory; of the one that takes the least where none does.

    Published results are of tuned layouts (Narayanan et al. 2021, arXiv 2104.04473, tuned micro-batch and chunks).

    Raises:
        InputError: every plan is impossible.
    """
    possible: list[Run] = []
    refused = InputError("the row leaves no plan open")
    for plan in plans:
        try:
            possible.append(run(plan))
        except InputError as error:
            refused = error
    if not possible:
        raise refused
    memory = [found.needed_alone() for found in possible]
    fitting = [one for one, size in zip(possible, memory, strict=True) if size <= one.bound["memory_capacity"][0]]
    return min(fitting, key=lambda one: one.value("time")) if fitting else possible[memory.index(min(memory))]


def stack_of(row: TableRow) -> str:
    """The profile of the kernels of a row's software; "" for the efficiencies of the system's file."""
    return document_of(row).stack or software_of(row.text("framework")).stack


@lru_cache(maxsize=64)
def with_kernels(system: System, stack: str) -> System:
    """A system with the efficiencies that a software reaches on it."""
    return Software.load(stack).on(system) if stack else system
