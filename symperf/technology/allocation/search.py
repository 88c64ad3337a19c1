"""The best split of area, power and perimeter: geometric programs, and a refinement for the exact form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...common.errors import InputError, NoAnswerError
from ..quantities import BUDGET, EDGES, read
from .answer import Allocation
from .program import RATES, SPLIT, ChipProgram, NothingFitsError
from .relax import relax, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...runs.full_run import FullRun
    from ...systems.system import System
    from .. import Chip, Technology
    from .relax import Relaxed

ROUNDS: Final = 8
CLOSE: Final = 1e-6
NEAR: Final = 0.9
"""Down to which part of the optimum's cores whole numbers of them are tried."""
SMOOTH: Final = ("compute_units", "l2_bandwidth", "l2_capacity", "l2_energy", "l2_efficiency", "reread_efficiency")
"""What a system leaves out so that its products pay for no whole tiles."""
KEPT: Final = 1 + 1e-9
"""By how much a share is rounded up, so that whole units of an exact optimum still fit."""


def allocate(
    ask: Callable[[System], FullRun],
    technology: Technology,
    *,
    area: Any = None,
    power: Any = None,
    perimeter: Any = None,
    package_area: Any = None,
    smooth: bool = False,
    fits: bool = False,
) -> Allocation:
    """The split of a chip's area, power and perimeter with the least time of a workload.

    Cores, L2, memory and scale-up network share what the technology's default budget gives them together; shared memory
    and registers keep their shares, and so does what no share names.

    Args:
        ask: the workload: a run on a system.
        technology: node, memory and networks.
        area: of the die (m2, or a text with a unit); by default the technology's.
        power: of the device (W, or a text); by default the technology's.
        perimeter: of the die that links may use, in m or as a text; by default all four edges of a square die.
        package_area: of the package; by default the technology's.
        smooth: leave L2 and whole tiles out of the workload's time.
        fits: the memory must hold the run.

    Raises:
        InputError: nothing fits, a budget out of range, cvxpy is not installed, a time with a part that has no
            relaxation.
    """
    return _Search(ask, technology, _budget(technology, area, power, package_area), perimeter, smooth, fits).best()


def _budget(technology: Technology, area: Any, power: Any, package_area: Any) -> dict[str, Any]:
    asked = {"die_area": area, "power": power, "package_area": package_area}
    changes = read({k: v for k, v in asked.items() if v is not None}, BUDGET, "allocate")
    found = {name: quantity.value for name, quantity in (dict(technology.budget) | changes).items()}
    return {name: value for name, value in found.items() if name not in ("cores", "stacks")}


@dataclass
class _Search:
    ask: Callable[[System], FullRun]
    technology: Technology
    budget: dict[str, float]
    perimeter: Any
    smooth: bool
    fits: bool

    def best(self) -> Allocation:
        """Solve, choose the ways of the minima again at the optimum, then make stacks whole."""
        start = self.chip(self.default())
        run = self.run_on(start)
        used = run.compiled.program.inputs
        at = {name: start.figures[name] for name in RATES if name in start.figures and name in used}
        relaxed, rounds, held, best_time = self.relaxation(run, at), 0, None, math.inf
        while rounds < ROUNDS:
            program = self.solved(relaxed, run)
            rounds += 1
            at = {name: program.value(name) for name in program.rates if name in used}
            following = self.relaxation(run, at)
            time = value_at(following.form, at)
            if time < best_time * (1 - CLOSE):
                best_time, held = time, (program, relaxed)
            else:
                break
            if following.chosen == relaxed.chosen:
                break
            relaxed = following
        assert held is not None
        program, relaxed = held
        rates = {name: program.value(name) for name in program.rates}
        relaxed_time = value_at(relaxed.form, rates)
        shares, chip, exact, more = self.whole(program, relaxed, run)
        return Allocation(
            relaxed_time=relaxed_time,
            time=exact.value("time"),
            before=run.value("time"),
            shares=shares,
            rates=rates,
            elasticities=program.elasticities(),
            chip=chip,
            run=exact,
            bounds=relaxed.bounds,
            rounds=rounds + more,
            status=program.status,
        )

    def default(self) -> dict[str, float]:
        """The default split of the budgets."""
        edges = self.edges / (4 * math.sqrt(self.budget["die_area"]))
        return self.budget | {f"edge_{name}": self.budget[f"edge_{name}"] * edges for name in ("memory", "network")}

    @property
    def edges(self) -> float:
        """The perimeter that links may use, in metres."""
        from ...systems.physical_units import LENGTH
        from ...systems.quantities import check_number
        from ...systems.system_symbols import Limits

        whole = 4 * math.sqrt(self.budget["die_area"])
        if self.perimeter is None:
            return whole
        found = check_number(self.perimeter, Limits(LENGTH, 1e-5, 10.0), "allocate: perimeter")
        if found > whole * KEPT:
            raise InputError(
                f"allocate: perimeter: found {found * 1e3:.4g} mm, expected at most the four edges of a square die, "
                f"{whole * 1e3:.4g} mm"
            )
        return found

    def parts_of(self, run: FullRun) -> tuple[str, ...]:
        """What is split: cores and memory, and those others whose rates the time depends on."""
        used = run.compiled.program.inputs
        split = self.technology.scale_up is not None and "scale_up_bandwidth" in used
        named = {"l2": "l2_bandwidth" in used, "network": split}
        return tuple(name for name in SPLIT if named.get(name, True))

    def budgets(self, parts: tuple[str, ...]) -> dict[str, float]:
        """What may be split of each budget among some parts."""
        budget = self.default()
        found = {
            kind: budget[total] * math.fsum(budget[f"{kind}_{name}"] for name in parts)
            for kind, total in (("area", "die_area"), ("power", "power"))
        }
        edge = 4 * math.sqrt(budget["die_area"]) * math.fsum(budget[f"edge_{n}"] for n in EDGES if n in parts)
        return found | {"perimeter": edge, "package": budget["package_area"] - budget["die_area"]}

    def chip(self, shares: Mapping[str, float]) -> Chip:
        """The exact chip of a split."""
        return self.technology.chip(**shares)

    def run_on(self, chip: Chip) -> FullRun:
        """The workload on a chip."""
        from ...systems.system import System
        from ..systems import table_of

        table = table_of(chip, "allocated")
        if self.smooth:
            table = {name: entry for name, entry in table.items() if name not in SMOOTH}
        return self.ask(System.from_table(table, "allocate"))

    def relaxation(self, run: FullRun, at: Mapping[str, float]) -> Relaxed:
        """The time of a run as a geometric program's, the minima decided at some rates."""
        free = frozenset(name for name in at if name in run.compiled.program.inputs)
        values = {name: value for name, (value, _) in run.bound.items()}
        return relax(run.time.expr, values, free, dict(at))

    def solved(self, relaxed: Relaxed, run: FullRun, **counts: float) -> ChipProgram:
        """The program of the budgets, solved; numbers of cores and stacks may be given."""
        parts = self.parts_of(run)
        smallest = run.value("memory") if self.fits else 0.0
        program = ChipProgram(self.technology, self.budgets(parts), parts, smallest, counts)
        program.solve(relaxed.form)
        return program

    def shares(self, program: ChipProgram) -> dict[str, float]:
        """The split that a solved program means, as shares of the totals; what binds nothing is given out as well."""
        found = self.default()
        totals = {"area": found["die_area"], "power": found["power"], "edge": 4 * math.sqrt(found["die_area"])}
        for kind, total in totals.items():
            names = [name for name in program.parts if f"{kind}_{name}" in program.variables]
            limit = math.fsum(found[f"{kind}_{name}"] for name in names)
            asked = {name: program.value(f"{kind}_{name}") / total for name in names}
            scale = limit / math.fsum(asked.values())
            found |= {f"{kind}_{name}": share * scale for name, share in asked.items()}
        return found

    def whole(
        self, program: ChipProgram, relaxed: Relaxed, run: FullRun
    ) -> tuple[dict[str, float], Chip, FullRun, int]:
        """The best exact chip near the optimum: whole stacks, then whole groups of cores, and the rest split again."""
        best: tuple[dict[str, float], Chip, FullRun] | None = None
        solved = 0
        count = program.value("stacks")
        below, above = max(1, math.floor(count * KEPT)), math.ceil(count / KEPT)
        refused: dict[int, str] = {}
        for stacks in dict.fromkeys((below, above, *range(below - 1, 0, -1))):
            if best is not None and stacks < below:
                break
            try:
                each = self.solved(relaxed, run, stacks=float(stacks))
                solved += 1
                cores = self.groups(each, stacks)
                each = self.solved(relaxed, run, stacks=float(stacks), cores=cores)
                solved += 1
                found = self.exact(each, {"stacks": float(stacks), "cores": cores})
            except NothingFitsError as error:
                refused[stacks] = str(error).removeprefix("allocate: ")
                continue
            if best is None or found[2].value("time") < best[2].value("time"):
                best = found
        if best is None:
            told = "; ".join(f"{stacks}: {why}" for stacks, why in refused.items())
            raise NoAnswerError(
                f"allocate: no whole number of memory stacks fits near the optimum, {count:.3g} ({told})"
            )
        return (*best, solved)

    def groups(self, program: ChipProgram, stacks: int) -> float:
        """The number of cores near the optimum, in whole groups, with the least exact time at the optimum's split."""
        group = self.technology.quantities["core_group"].value
        most = math.floor(program.value("cores") / group * KEPT)
        shares = self.shares(program)
        room = program.value("area_core") / self.technology.quantities["core_area"].value / group * KEPT
        best = (math.inf, float(max(1, most)) * group)
        for count in range(max(1, math.floor(most * NEAR)), max(1, math.floor(room)) + 1):
            chip = self.chip(shares | {"stacks": float(stacks), "cores": count * group})
            best = min(best, (self.run_on(chip).value("time"), count * group))
        return best[1]

    def exact(self, program: ChipProgram, counts: dict[str, float]) -> tuple[dict[str, float], Chip, FullRun]:
        """The shares, the chip and the run of a solved program with whole cores and stacks.

        Raises:
            InputError: the memory does not hold the run where it must.
        """
        shares = self.shares(program) | counts
        chip = self.chip(shares)
        run = self.run_on(chip)
        if self.fits and not run.fits:
            raise NothingFitsError("allocate: the memory does not hold the run")
        return shares, chip, run
