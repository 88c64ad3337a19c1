"""What a run spends, as a block of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..common.table import show_lines
from ..spending.prices import grid_of
from .scaled import percent, quantity

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from ..spending.mixin import Spending


def show(run: Spending, options: argparse.Namespace, console: Console) -> None:
    """Print the energy, the cost and the carbon that were asked for.

    Raises:
        InputError: the system does not tell what they need, or no such grid.
    """
    if options.grid is not None:
        grid_of(run.system, options.grid)
    if options.energy:
        show_lines(console, energy_lines(run))
    if options.cost:
        show_lines(console, cost_lines(run, options.grid))


def energy_lines(run: Spending) -> list[str]:
    """Joules by resource, and the power that they mean.

    Raises:
        InputError: the system tells neither energies nor a power.
    """
    energy = run.energy()
    each = f"{quantity(energy.per_token, 'J')} a token, {quantity(energy.mean_power, 'W')} a device"
    lines = ["", f"energy      {quantity(energy.total, 'J')}, {each}"]
    if energy.basis == "board":
        lines.append("            board power all the time, an upper bound: the system gives no energies")
    else:
        parts = sorted(energy.joules.items(), key=lambda item: -item[1])
        lines += [f"  {name:10}{quantity(x, 'J'):>12} {percent(x / energy.total):>8}" for name, x in parts if x]
        lines += [f"  {name:10}no energy on this system" for name in energy.missing]
    if energy.exceeds_power and energy.capped_time is not None:
        longer = energy.capped_time / energy.time
        lines.append(f"            above the board power: at a lower clock it takes {longer:.3f} times as long")
    return lines


def cost_lines(run: Spending, grid: str | None) -> list[str]:
    """Dollars and carbon dioxide.

    Raises:
        InputError: the system has no price.
    """
    cost = run.cost()
    each = f"{cost.per_million_tokens:.4g} USD a million tokens, {cost.device_hour:.4g} USD a device hour"
    lines = ["", f"cost        {cost.dollars:.4g} USD, {each}", f"            {cost.basis}: {cost.source}"]
    try:
        carbon = run.carbon(grid)
    except InputError:
        if grid is not None:
            raise
        return lines
    mass = f"{carbon.kilograms:.4g} kg CO2e, {carbon.per_million_tokens:.4g} kg a million tokens"
    return [*lines, f"carbon      {mass}, at {carbon.intensity * 1e3:.4g} g/kWh ({carbon.source})"]
