"""What every run can tell of what it spends."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats, run
from ..common.errors import InputError
from .prices import grid_of, rent_of

if TYPE_CHECKING:
    from ..operations.compiled import Bound, Compiled
    from ..plans.plan import Plan
    from ..systems.system import System
    from .answers import Carbon, Cost, Energy

ENERGIES = ("matrix", "attention", "vector", "memory", "l2", "scale_up", "scale_out")
PRICES = ("price", "lifetime", "electricity_price", "facility_overhead", "grid_intensity")
DERIVED = ("attention",)
"""Resources whose energy no system gives: it follows from another's."""


class Spending:
    """Energy, cost and carbon of a run."""

    system: System
    plan: Plan
    structure: Any
    bound: Bound

    @property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        raise NotImplementedError

    def value(self, name: str) -> float:
        """A number of the run."""
        raise NotImplementedError

    @cached_property
    def _spent(self) -> dict[str, float]:
        from .program import spending_program

        program = spending_program(self.structure)
        found = {name: value for name, (value, _) in self.bound.items()}
        found |= self._spending_values()
        values = run(program, {name: found.get(name, 0.0) for name in program.inputs}, floats())
        return {name: float(values[at]) for name, at in program.outputs.items()}

    def _spending_values(self) -> dict[str, float]:
        """What the symbols of spending alone are bound to; what the system does not tell is 0."""
        matrix, static = self._figure("matrix_energy"), self._figure("static_power") or 0.0
        power = self._figure("power")
        return {
            "busy_time": self.value("time"),
            "matrix_energy": (matrix or 0.0) * self._narrowing,
            "attention_energy": matrix or 0.0,
            "power_cap": max((power or 0.0) - static, 1e-9),
        }

    def _bill(self, what: str, **values: float) -> float:
        """One figure of the bill, given the energy, or the mean power, and prices."""
        from .program import bill_program

        program = bill_program()
        found = {"devices": self._devices, "busy_time": self.value("time"), "facility_overhead": 1.0}
        found |= {name: self._figure(name) or found.get(name, 0.0) for name in PRICES if name in self.system.quantities}
        inputs = dict.fromkeys(program.inputs, 1.0) | found | values
        return float(run(program, inputs, floats())[program.outputs[what]])

    @staticmethod
    def _rate_precision(plan: Plan, system: System) -> str:
        """The precision whose rate is bound."""
        raise NotImplementedError

    def wide_rate(self) -> float | None:
        """The 16-bit rate of a run in another precision: a FLOP takes as much power at the peak of either."""
        rates = self.system.matrix_rates
        wide = next((name for name in ("bf16", "fp16") if name in rates), None)
        if wide is None or wide == self._rate_precision(self.plan, self.system):
            return None
        return rates[wide].value

    @property
    def _narrowing(self) -> float:
        """Energy of a FLOP in the run's precision over that in 16 bits."""
        wide = self.wide_rate()
        return 1.0 if wide is None else wide / self.bound["matrix_rate"][0]

    @property
    def _tokens(self) -> float:
        if "sequence" in self.bound:
            return self.bound["batch"][0] * self.bound["sequence"][0]
        return self.bound["batch"][0] * self.bound["generate"][0]

    def _figure(self, name: str) -> float | None:
        return self.system.quantities[name].value if name in self.system.quantities else None

    def energy(self) -> Energy:
        """Joules by resource, of the run and of a token, and the power that they mean.

        With energies of FLOPs and bytes on the system it is their sum and the static power's; with a board power alone
        it is that power all the time, an upper bound.

        Raises:
            InputError: symbols are free, or the system tells neither energies nor a power.
        """
        told, power = self.told_energies(), self._figure("power")
        if told is not None:
            return self._resource_energy(told, power)
        joules = {"board": (power or 0.0) * self._devices * self.value("time")}
        return self._energy("board", joules, {}, (), None)

    def told_energies(self) -> tuple[str, ...] | None:
        """The resources whose work has an energy on this system; None where it tells a board power alone.

        Raises:
            InputError: it tells neither.
        """
        figures = self.system.quantities
        told = tuple(name for name in ENERGIES if f"{'matrix' if name in DERIVED else name}_energy" in figures)
        if not told and "power" not in figures:
            raise InputError(
                f"energy: system {self.system.name} gives neither matrix_energy, memory_energy, ... nor power; set one"
            )
        return told or None

    def spending_figures(self, *names: str) -> dict[str, float]:
        """What symbols of spending are bound to, by name: figures of the system, prices of the catalogue, defaults."""
        found = {name: self._figure(name) or 0.0 for name in names} | {"facility_overhead": 1.0}
        overhead, rent = self._figure("facility_overhead"), rent_of(self.system)
        found |= {} if overhead is None else {"facility_overhead": overhead}
        found |= {} if rent is None else {"price_per_hour": rent.value}
        found |= {"attention_energy": self._figure("matrix_energy") or 0.0}
        return {name: found[name] for name in names}

    def _resource_energy(self, known: tuple[str, ...], power: float | None) -> Energy:
        spent, static = self._spent, self._figure("static_power") or 0.0
        work = self.resource_work()
        told = [name for name in work if name in known]
        joules = {name: spent[f"energy/{name}"] for name in told} | {"static": spent["energy/static"]}
        missing = tuple(name for name in work if name not in told)
        capped = spent["capped_time"] if power is not None and power > static else None
        return self._energy("resources", joules, work, missing, capped)

    def _energy(
        self,
        basis: str,
        joules: dict[str, float],
        work: dict[str, float],
        missing: tuple[str, ...],
        capped: float | None,
    ) -> Energy:
        from .answers import Energy as _Energy

        total = sum(joules.values())
        return _Energy(
            basis=basis,
            joules=joules,
            work=work,
            missing=missing,
            tokens=self._tokens,
            time=self.value("time"),
            devices=self._devices,
            mean_power=self._bill("mean_power", device_energy=total),
            power=self._figure("power"),
            capped_time=capped,
            facility_overhead=self._figure("facility_overhead"),
        )

    def resource_work(self) -> dict[str, float]:
        """FLOPs and bytes of all devices together, by resource: what the run does, whatever it costs."""
        return {name: self._spent[f"work/{name}"] for name in ENERGIES if self._spent[f"work/{name}"]}

    @property
    def _devices(self) -> float:
        return float(self.plan.devices)

    def cost(self) -> Cost:
        """Dollars of the run and of a million tokens.

        The system's `price_per_hour`, or the catalogue's for it, is a rent; else `price` and `lifetime` make an owned
        device, whose electricity costs what `electricity_price` says (nothing if it is not given).

        Raises:
            InputError: no price, or a price without a lifetime.
        """
        from .answers import Cost as _Cost

        rent = rent_of(self.system)
        if rent is not None:
            dollars, source, basis = self._bill("rented_cost", price_per_hour=rent.value), rent.source, "rent"
        else:
            self.check_price()
            power = self.energy().mean_power if self.has_energy else 0.0
            electricity = self._figure("electricity_price") or 0.0
            dollars = self._bill("owned_cost", power=power, electricity_price=electricity)
            source, basis = self.system.quantities["price"].source, "owned"
        return _Cost(basis, source, dollars, self._tokens, self._devices, self.value("time"))

    def check_price(self) -> None:
        """Check that there is a rent, or that an owned device has a price.

        Raises:
            InputError: there is neither, or a price without a lifetime.
        """
        if rent_of(self.system) is not None:
            return
        if "price" not in self.system.quantities:
            raise InputError(f"cost: system {self.system.name} has no price; set price_per_hour, or price and lifetime")
        if "lifetime" not in self.system.quantities:
            raise InputError(f"cost: system {self.system.name} has a price without a lifetime, expected both")

    def spent(self, name: str) -> float:
        """One of `spending.quantities.QUANTITIES`: dollars or joules.

        Raises:
            InputError: the system does not tell what it needs.
        """
        match name:
            case "cost":
                return self.cost().dollars
            case "cost_per_million_tokens":
                return self.cost().per_million_tokens
            case "energy":
                return self.energy().total
        return self.energy().per_token

    def carbon(self, grid: str | None = None) -> Carbon:
        """Kilograms of carbon dioxide of the run's electricity.

        Args:
            grid: a grid of the catalogue; by default the system's `grid_intensity`.

        Raises:
            InputError: no such grid, or none given; a system without energies and power.
        """
        from .answers import KILOWATT_HOUR
        from .answers import Carbon as _Carbon

        intensity = grid_of(self.system, grid)
        energy = self.energy()
        kilograms = self._bill("carbon", device_energy=energy.total, grid_intensity=intensity.value)
        return _Carbon(kilograms, energy.tokens, intensity.value * KILOWATT_HOUR, intensity.source)

    @property
    def has_energy(self) -> bool:
        """Whether the system tells energies, or a power."""
        return any(name in self.system.quantities for name in ("power", *(f"{name}_energy" for name in ENERGIES)))

    def spending_json(self, grid: str | None = None) -> dict[str, Any]:
        """`energy_j`, `cost` and `carbon_kg` of a run's JSON; null where the system does not tell what they need.

        Raises:
            InputError: no such grid.
        """
        found: dict[str, Any] = {}
        for key, ask in (("energy_j", self.energy), ("cost", self.cost)):
            try:
                found[key] = ask().as_json()
            except InputError:
                found[key] = None
        try:
            found["carbon_kg"] = self.carbon(grid).kilograms
        except InputError:
            if grid is not None:
                raise
            found["carbon_kg"] = None
        return found
