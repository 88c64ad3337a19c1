"""The geometric program of a chip: what its area, power and perimeter hold, and the time that its rates give."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...common.errors import InputError, NoAnswerError
from ...common.extras import import_extra
from ..quantities import EDGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .. import Technology

RATES: Final[tuple[str, ...]] = (
    "matrix_rate",
    "vector_rate",
    "compute_units",
    "l2_capacity",
    "l2_bandwidth",
    "memory_bandwidth",
    "memory_capacity",
    "scale_up_bandwidth",
)
"""Figures of a system that the split decides; what it does not have is not decided."""
SPLIT: Final = ("core", "l2", "memory", "network")
"""What is split; shared memory and registers keep their shares."""
BEAT: Final = 0.125
SAME: Final[dict[str, Any]] = {"direct_solve_method": "qdldl", "max_threads": 1}
"""Settings by which the same question has the same answer: the solver's other factorization runs in as many threads as
the moment has, and sums in their order."""
ATTEMPTS: Final[tuple[dict[str, Any], ...]] = (
    {"static_regularization_constant": 1e-9},
    {"equilibrate_max_iter": 50},
    {},
    {"max_step_fraction": 0.95},
    {"static_regularization_constant": 1e-7, "max_iter": 500},
)
"""Settings of the interior-point solver, tried until it calls its answer optimal (gap and residuals below 1e-8)."""
SOLVED: Final = ("optimal", "optimal_inaccurate")
NOTHING_FITS: Final = ("infeasible", "infeasible_inaccurate")


class NothingFitsError(InputError):
    """Budgets that hold no chip."""


@dataclass
class ChipProgram:
    """Variables and constraints over a technology.

    Attributes:
        technology: its node, memory and networks.
        budgets: m2, W and m that may be split, and the m2 of the package beside the die.
        parts: what is split; the others keep what they have.
        smallest: bytes that the memory must hold at least.
        counts: numbers of "cores" or "stacks" that are fixed.
    """

    technology: Technology
    budgets: Mapping[str, float]
    parts: tuple[str, ...] = SPLIT
    smallest: float = 0.0
    counts: Mapping[str, float] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, Any] = field(default_factory=dict)
    constraints: list[Any] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    status: str = ""

    def __post_init__(self) -> None:
        self.cp = import_extra("cvxpy", "allocate", "allocate")
        for kind in ("area", "power", "edge"):
            for name in self.parts:
                if kind != "edge" or name in EDGES:
                    self.variable(f"{kind}_{name}")
        for name, build in (
            ("core", self._core),
            ("l2", self._l2),
            ("memory", self._memory),
            ("network", self._network),
        ):
            if name in self.parts:
                build()
        for name, count in self.counts.items():
            self.constraints.append(self.variables[name] == float(count))
        for budget, kind in (("area", "area"), ("power", "power"), ("perimeter", "edge")):
            parts = [v for name, v in self.variables.items() if name.startswith(f"{kind}_")]
            self.limit(budget, sum(parts[1:], parts[0]))

    # --- building

    def variable(self, name: str) -> Any:
        """A positive variable."""
        self.variables[name] = self.cp.Variable(pos=True, name=name)
        return self.variables[name]

    def quantity(self, name: str) -> float:
        """A quantity of the node; what is not given limits nothing."""
        found = self.technology.quantities
        return found[name].value if name in found else math.inf

    def below(self, left: Any, right: Any) -> Any:
        """Keep a posynomial below a monomial."""
        self.constraints.append(left <= right)
        return self.constraints[-1]

    def limit(self, budget: str, used: Any) -> None:
        """Keep what is used within a budget; its dual is an elasticity of the time."""
        self.parameters[budget] = self.cp.Parameter(pos=True, value=self.budgets[budget])
        self.limits[budget] = self.below(used, self.parameters[budget])

    def law(self, name: str, power: Any, units: Any, unit_power: float, nominal: Mapping[str, float]) -> Any:
        """The clock of units under the power law, exact: V = V_t + U is the sum of two variables.

        N P_0 (f / f_0) (V / V_0)^2 <= P, f <= f_0 (U^2 / V) / (U_0^2 / V_0), V_t + U <= V, V_t + V_m <= V.
        """
        clock, volts, drive = (self.variable(f"{name}_{what}") for what in ("frequency", "voltage", "overdrive"))
        above = nominal["voltage"] - nominal["threshold"]
        scale = unit_power / nominal["frequency"] / nominal["voltage"] ** 2
        self.below(units * clock * volts**2 * scale, power)
        self.below(clock, drive**2 / volts * (nominal["frequency"] * nominal["voltage"] / above**2))
        self.below(nominal["threshold"] + drive, volts)
        self.below(nominal["threshold"] + nominal["margin"], volts)
        if nominal.get("limit", math.inf) < math.inf:
            self.below(volts, nominal["limit"])
        return clock

    def _core(self) -> None:
        q, cores = self.quantity, self.variable("cores")
        self.below(cores * q("core_area"), self.variables["area_core"])
        nominal = {name: q(f"core_{name}") for name in ("voltage", "threshold", "margin", "frequency")}
        clock = self.law("core", self.variables["power_core"], cores, q("core_power"), nominal)
        if q("core_limit_frequency") < math.inf:
            self.below(clock, q("core_limit_frequency"))
        groups = cores / q("core_group")
        self.rates |= {
            "matrix_rate": cores * clock * q("core_flops"),
            "vector_rate": groups * clock * q("vector_flops"),
            "compute_units": groups,
        }

    def _l2(self) -> None:
        q, size, bandwidth = self.quantity, self.variable("l2_capacity"), self.variable("l2_bandwidth")
        cells = size * (q("l2_cell_area") / q("l2_cell_share"))
        ports = size * self.rates["compute_units"] * (q("l2_port_area") / q("l2_bank")) if q("l2_port_area") else 0.0
        self.below(cells + ports if q("l2_port_area") else cells, self.variables["area_l2"])
        leak = size * q("l2_static") if q("l2_static") else None
        moved = bandwidth * q("l2_energy")
        self.below(moved if leak is None else moved + leak, self.variables["power_l2"])
        if q("l2_cycle_bytes") < math.inf:
            self.below(bandwidth, self.variables["core_frequency"] * q("l2_cycle_bytes"))
        self.rates |= {"l2_capacity": size, "l2_bandwidth": bandwidth}

    def _memory(self) -> None:
        memory, q = self.technology.memory, self.quantity
        stacks, wires = self.variable("stacks"), self.variable("memory_links")
        bandwidth = self.variable("memory_bandwidth")
        self.below(wires / q("memory_link_density"), self.variables["edge_memory"])
        self.below(wires, stacks * memory.value("pins"))
        self.below(stacks * q("controller_area"), self.variables["area_memory"])
        self.limit("package", stacks * memory.value("area"))
        size = stacks * memory.value("capacity")
        if self.smallest:
            self.below(self.smallest, size)
        spare = memory.value("static", 0.0)
        power = self.variables["power_memory"]
        if memory.has_law:
            moving = power
            if spare:
                moving = self.variable("memory_moving_power")
                self.below(moving + size * spare, power)
            nominal = {name: memory.value(name) for name in ("voltage", "threshold", "margin", "frequency")}
            nominal["limit"] = memory.value("voltage_limit", math.inf)
            each = memory.value("energy") * BEAT * memory.value("frequency")
            self.below(bandwidth, wires * self.law("memory", moving, wires, each, nominal) * BEAT)
        else:
            moved = bandwidth * memory.value("energy")
            self.below(moved + size * spare if spare else moved, power)
            self.below(bandwidth, wires * (BEAT * memory.value("frequency")))
        self.rates |= {"memory_bandwidth": bandwidth, "memory_capacity": size}

    def _network(self) -> None:
        network, q = self.technology.scale_up, self.quantity
        assert network is not None
        wires, bandwidth = self.variable("scale_up_links"), self.variable("scale_up_bandwidth")
        density = network.value("density", q("network_link_density"))
        area = network.value("area", q("network_link_area"))
        if density < math.inf:
            self.below(wires / density, self.variables["edge_network"])
        if area < math.inf:
            self.below(wires * area, self.variables["area_network"])
        power = self.variables["power_network"]
        if network.has_law:
            nominal = {name: network.value(name) for name in ("voltage", "threshold", "margin", "frequency")}
            each = network.value("energy") * BEAT * network.value("frequency")
            self.below(bandwidth, wires * self.law("scale_up", power, wires, each, nominal) * BEAT)
        else:
            self.below(wires, network.value("lanes"))
            self.below(bandwidth * network.value("energy"), power)
            self.below(bandwidth, wires * network.value("rate"))
        self.rates["scale_up_bandwidth"] = bandwidth

    # --- solving

    def solve(self, form: Any) -> float:
        """The least value of a time over the rates, proved by the solver.

        Args:
            form: what `relax` gives, over the names of `rates`.

        Raises:
            InputError: nothing fits the budgets, or the time is no generalised posynomial.
            NoAnswerError: the solver gave up.
        """
        self.problem = self.cp.Problem(self.cp.Minimize(emit(self.cp, form, self.rates)), self.constraints)
        if not self.problem.is_dgp():
            raise InputError("allocate: the time is no generalised posynomial of the chip's rates")
        return self.again()

    def again(self, **budgets: float) -> float:
        """The least value of the same time with other budgets.

        Raises:
            InputError: nothing fits.
        """
        for name, value in budgets.items():
            self.parameters[name].value = value
        self.status = "unsolved"
        for options in ATTEMPTS:
            if self._attempt(options) == "optimal":
                break
        if self.status not in SOLVED + NOTHING_FITS:
            raise NoAnswerError(f"allocate: the solver gave up ({self.status}), and says neither yes nor no")
        if self.status in NOTHING_FITS:
            raise NothingFitsError(f"allocate: nothing fits: the budgets hold no chip with its memory ({self.status})")
        return float(self.problem.value)

    def _attempt(self, options: dict[str, Any]) -> str:
        """One call of the solver; what it says of itself."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.problem.solve(gp=True, solver=self.cp.CLARABEL, warm_start=False, **SAME, **options)
            except self.cp.error.SolverError:
                return "failed"
        self.status = str(self.problem.status)
        return self.status

    def value(self, name: str) -> float:
        """The value of a variable or of a rate at the optimum."""
        found = self.variables[name] if name in self.variables else self.rates[name]
        return float(found.value)

    def elasticities(self) -> dict[str, float]:
        """The duals at the optimum, in logarithms: d ln T / d ln budget."""
        return {name: -float(constraint.dual_value) for name, constraint in self.limits.items()}


def emit(cp: Any, form: Any, rates: Mapping[str, Any]) -> Any:
    """A relaxed time as an expression of the solver's language; a sum or maximum has no zero in it."""
    memo: dict[Any, Any] = {}
    stack = [form]
    while stack:
        node = stack[-1]
        missing = [arg for arg in node.args if arg not in memo]
        if missing and node not in memo:
            stack.extend(missing)
            continue
        stack.pop()
        if node not in memo:
            memo[node] = _emit(cp, node, [memo[arg] for arg in node.args], rates)
    return memo[form]


def _emit(cp: Any, node: Any, parts: list[Any], rates: Mapping[str, Any]) -> Any:
    if node.is_Number:
        return float(node)
    if node.is_Symbol:
        return rates[str(node)]
    if node.is_Pow:
        return parts[0] ** float(node.exp)
    if node.is_Mul:
        return math.prod(parts[1:], start=parts[0])
    there = [part for part in parts if not (isinstance(part, float) and part == 0)]
    if not there:
        return 0.0
    if node.is_Add:
        return sum(there[1:], there[0])
    return there[0] if len(there) == 1 else cp.maximum(*there)
