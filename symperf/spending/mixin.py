"""What every run can tell of what it spends."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats, run
from ..common.errors import InputError
from .prices import grid_of, rent_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operations.compiled import Bound
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity
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
        power, static = self._figure("power"), self._figure("static_power") or 0.0
        return {
            "busy_time": self.value("time"),
            **self._own_energies(),
            "power_cap": max((power or 0.0) - static, 1e-9),
        }

    def _own_energies(self) -> dict[str, float]:
        """Energies that are not the system's as they are: of a FLOP in the run's precision, and in attention."""
        matrix = self._figure("matrix_energy") or 0.0
        return {"matrix_energy": matrix * self._narrowing, "attention_energy": matrix}

    def _bill(self, what: str, **values: float) -> float:
        """One figure of the bill, given the energy, or the mean power, and prices."""
        from .program import bill_program

        program = bill_program()
        found = {"devices": self._devices, "busy_time": self.value("time"), "facility_overhead": 1.0}
        found |= {name: self._figure(name) or found.get(name, 0.0) for name in PRICES if name in self.system.quantities}
        inputs = dict.fromkeys(program.inputs, 1.0) | found | values
        return float(run(program, inputs, floats())[program.outputs[what]])

    @property
    def _narrowing(self) -> float:
        """Energy of a FLOP in the run's precision over that in 16 bits: as much power at the peak of either."""
        rates = self.system.matrix_rates
        wide = next((rates[name].value for name in ("bf16", "fp16") if name in rates), None)
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
        power = self._figure("power")
        if self.energy_basis() == "resources":
            return self._resource_energy(power)
        joules = {"board": (power or 0.0) * self._devices * self.value("time")}
        return self._energy("board", joules, {}, (), None)

    def energy_basis(self) -> str:
        """How energy is told: "resources", where the system has energies of FLOPs or bytes, else "board".

        Raises:
            InputError: it tells neither energies nor a power.
        """
        if any(self._figure(f"{name}_energy") is not None for name in ENERGIES):
            return "resources"
        if self._figure("power") is None:
            raise InputError(
                f"energy: system {self.system.name} gives neither matrix_energy, memory_energy, ... nor power; set one"
            )
        return "board"

    def told_energies(self, resources: Iterable[str]) -> list[str]:
        """Those of some resources for whose work the system tells an energy."""
        return [name for name in resources if self._figure(f"{_teller(name)}_energy") is not None]

    def spending_figures(self, *names: str) -> dict[str, float]:
        """What symbols of spending are bound to, by name: figures of the system, prices of the catalogue, defaults."""
        found = {name: self._figure(name) or 0.0 for name in names} | {"facility_overhead": 1.0}
        overhead, rent = self._figure("facility_overhead"), rent_of(self.system)
        found |= {} if overhead is None else {"facility_overhead": overhead}
        found |= {} if rent is None else {"price_per_hour": rent.value}
        own = self._own_energies()
        return {name: own.get(name, found[name]) for name in names}

    def _resource_energy(self, power: float | None) -> Energy:
        spent, static = self._spent, self._figure("static_power") or 0.0
        work = self.resource_work()
        told = self.told_energies(work)
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

        basis, price = self.cost_basis()
        if basis == "rent":
            dollars = self._bill("rented_cost", price_per_hour=price.value)
        else:
            power = self.energy().mean_power if self.has_energy else 0.0
            electricity = self._figure("electricity_price") or 0.0
            dollars = self._bill("owned_cost", power=power, electricity_price=electricity)
        return _Cost(basis, price.source, dollars, self._tokens, self._devices, self.value("time"))

    def cost_basis(self) -> tuple[str, Quantity]:
        """How a device is paid for, "rent" or "owned", and the price of an hour or of the device.

        Raises:
            InputError: no price, or a price without a lifetime.
        """
        rent = rent_of(self.system)
        if rent is not None:
            return "rent", rent
        if "price" not in self.system.quantities:
            raise InputError(f"cost: system {self.system.name} has no price; set price_per_hour, or price and lifetime")
        if "lifetime" not in self.system.quantities:
            raise InputError(f"cost: system {self.system.name} has a price without a lifetime, expected both")
        return "owned", self.system.quantities["price"]

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
        """Whether the system tells energies or a power."""
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


def _teller(name: str) -> str:
    """The resource whose energy says what the work of another costs."""
    return "matrix" if name in DERIVED else name
