"""The energy and the cost of a run as closed forms over its time, with the values of their symbols; needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..formulas.language.symbols import busy_time, device_energy, devices, power, strip_units
from .forms import ENERGIES, bill_forms, devices_of, spending_forms

if TYPE_CHECKING:
    from .mixin import Spending

SPENT = ("energy", "cost")
"""What a run spends, in joules and dollars."""


def spent_form(run: Spending, of: str, time: Any) -> tuple[Any, dict[str, float]]:
    """What a run spends, all devices together, and the values of the symbols that only this is over.

    Args:
        run: of which system, plan and structure.
        of: "energy", in joules, or "cost", in dollars.
        time: what stands for the run's time, in seconds.

    Raises:
        InputError: the system does not tell what it needs.
    """
    form, values = _energy(run) if of == "energy" else _cost(run)
    return strip_units(form).xreplace({busy_time: time}), values


def told(run: Spending) -> list[str]:
    """Those of `SPENT` for which the system tells what they need."""
    found = []
    for name, basis in zip(SPENT, (run.energy_basis, run.cost_basis), strict=True):
        try:
            basis()
        except InputError:
            continue
        found.append(name)
    return found


def _energy(run: Spending) -> tuple[Any, dict[str, float]]:
    if run.energy_basis() == "board":
        return power * devices_of(run.structure) * busy_time, run.spending_figures("power")
    forms = spending_forms(run.structure)
    told = run.told_energies(ENERGIES)
    values = run.spending_figures("static_power", *(f"{name}_energy" for name in told))
    return sum((forms[f"energy/{name}"] for name in told), forms["energy/static"]), values


def _cost(run: Spending) -> tuple[Any, dict[str, float]]:
    count = devices_of(run.structure)
    if run.cost_basis()[0] == "rent":
        return bill_forms()["rented_cost"].xreplace({devices: count}), run.spending_figures("price_per_hour")
    values = run.spending_figures("price", "lifetime", "electricity_price", "facility_overhead")
    form, mean = bill_forms()["owned_cost"].xreplace({devices: count}), 0
    if run.has_energy:
        spent, more = _energy(run)
        mean = bill_forms()["mean_power"].xreplace({device_energy: spent, devices: count})
        values |= more
    return form.xreplace({power: mean}), values
