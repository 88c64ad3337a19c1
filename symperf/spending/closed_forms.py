"""The energy and the cost of a run as closed forms over its time, with the values of their symbols; needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..formulas.language.symbols import busy_time, device_energy, devices, matrix_energy, matrix_rate, power
from .forms import bill_forms, devices_of, spending_forms
from .prices import rent_of

if TYPE_CHECKING:
    from .mixin import Spending


def energy_form(run: Spending) -> tuple[Any, dict[str, float]]:
    """The joules of all devices over the run's time, `busy_time`, and the values of the symbols that it adds.

    Raises:
        InputError: the system tells neither energies nor a power.
    """
    told = run.told_energies()
    if told is None:
        return power * devices_of(run.structure) * busy_time, run.spending_figures("power")
    forms, wide = spending_forms(run.structure), run.wide_rate()
    values = run.spending_figures("static_power", *(f"{name}_energy" for name in told))
    total = sum((forms[f"energy/{name}"] for name in told), forms["energy/static"])
    return (total if wide is None else total.xreplace({matrix_energy: matrix_energy * wide / matrix_rate})), values


def cost_form(run: Spending) -> tuple[Any, dict[str, float]]:
    """The dollars of all devices over the run's time, `busy_time`, and the values of the symbols that it adds.

    Raises:
        InputError: the system and the catalogue tell no price, or a price without a lifetime.
    """
    count = devices_of(run.structure)
    if rent_of(run.system) is not None:
        return bill_forms()["rented_cost"].xreplace({devices: count}), run.spending_figures("price_per_hour")
    run.check_price()
    values = run.spending_figures("price", "lifetime", "electricity_price", "facility_overhead")
    form, mean = bill_forms()["owned_cost"].xreplace({devices: count}), sympy.S.Zero
    if run.has_energy:
        spent, more = energy_form(run)
        mean = bill_forms()["mean_power"].xreplace({device_energy: spent, devices: count})
        values |= more
    return form.xreplace({power: mean}), values
