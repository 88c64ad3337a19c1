"""`symperf allocate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.table import show_lines
from ..models.model import Model
from ..runs.training_run import Run
from ..technology.allocation import allocate
from .output import console, write_json
from .settings import parse_values, plan_of
from .technology import load

if TYPE_CHECKING:
    import argparse

    from ..systems.system import System
    from ..technology.allocation import Allocation


def run(options: argparse.Namespace) -> int:
    """Print the best split of the budgets for a training step."""
    values = parse_values(options.set)
    plan = plan_of(options, values)
    batch, sequence = values.pop("batch", options.batch), values.pop("sequence", options.sequence)
    model, technology = Model.load(options.model, options.ignore_key), load(options)

    def ask(system: System) -> Run:
        return Run(model, system, plan, batch=batch, sequence=sequence, values=values)

    answer = allocate(
        ask,
        technology,
        area=options.area,
        power=options.power,
        perimeter=options.perimeter,
        package_area=options.package_area,
        smooth=options.smooth,
        fits=options.fits,
    )
    if options.json:
        write_json(answer.as_json())
        return 0
    with console() as out:
        show_lines(out, lines(answer))
    return 0


def lines(answer: Allocation) -> list[str]:
    """The answer, line by line."""
    figures = answer.chip.figures
    l2 = figures["l2_capacity"] / 2**20
    found = [
        f"step time {answer.time:.5g} s, {answer.before / answer.time:.3f} times as fast as the default split",
        f"  optimum of the geometric program {answer.relaxed_time:.5g} s ({answer.status}, {answer.rounds} solved)",
        f"  {answer.chip!r}",
        f"  {figures['stacks']:.0f} stacks, {figures['memory_capacity'] / 1e9:.4g} GB; L2 {l2:.4g} MiB",
        "  share of       area    power     edge",
    ]
    for name in ("core", "l2", "l1", "registers", "memory", "network"):
        cells = [answer.shares.get(f"{kind}_{name}") for kind in ("area", "power", "edge")]
        found.append(f"  {name:10}" + "".join(f"{x:9.4f}" if x is not None else " " * 9 for x in cells))
    found.append("  elasticity of the time in each budget (a percent more of it: as many percent of time)")
    found += [f"  {name:10}{x:9.4f}" for name, x in answer.elasticities.items()]
    return found
