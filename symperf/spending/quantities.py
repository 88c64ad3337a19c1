"""Dollars and joules of a run as outputs of its program, so that they can be followed along a symbol like its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codegen.builder import Builder, append
from .prices import rent_of
from .program import bill_program, spending_program

if TYPE_CHECKING:
    from ..codegen.program import Program
    from .mixin import Spending

QUANTITIES = ("cost", "cost_per_million_tokens", "energy", "energy_per_token")
"""Dollars of the run and of a million tokens, joules of the run and of a token; all devices together."""
RESOURCES = {
    "matrix_energy": "matrix",
    "vector_energy": "vector",
    "memory_energy": "memory",
    "l2_energy": "l2",
    "scale_up_energy": "scale_up",
    "scale_out_energy": "scale_out",
    "static_power": "static",
    "power": "board",
}
"""What the joules of an input are counted as."""


def spending_quantity(run: Spending, name: str) -> tuple[Program, dict[str, float]]:
    """The program of a run with one of `QUANTITIES` as an output more, and the values of what only it reads.

    Raises:
        InputError: the system gives no price, or neither energies nor a power.
    """
    run.spent(name)  # refuses what this kind of run or system does not tell
    return _Splice(run).quantity(name)


class _Splice:
    """The program of a run, to which its spending is added."""

    def __init__(self, run: Spending) -> None:
        self.run, self.builder = run, Builder()
        program = run.compiled.program
        self.values: dict[str, float] = {}
        at = append(self.builder, program, {})
        for names, found in (
            (program.lets, self.builder.program.lets),
            (program.outputs, self.builder.program.outputs),
        ):
            found.update({name: at[position] for name, position in names.items()})

    def quantity(self, name: str) -> tuple[Program, dict[str, float]]:
        total = self.energy() if name.startswith("energy") else self.cost()
        if name == "energy_per_token":
            total = self.emit("divide", total, self.tokens())
        elif name == "cost_per_million_tokens":
            total = self.emit("multiply", self.emit("divide", total, self.tokens()), self.constant(1e6))
        self.builder.program.outputs[name] = total
        return self.builder.program, self.values

    def energy(self) -> int:
        run = self.run
        told = run.told_energies()
        if told is None:
            return self.emit("multiply", self.emit("multiply", self.figure("power"), self.devices), self.time)
        program = spending_program(run.structure)
        inputs = {
            "busy_time": self.time,
            "matrix_energy": self.matrix_energy(),
            "attention_energy": self.figure("matrix_energy"),
        }
        for each in program.inputs:
            if each not in inputs and each not in run.bound:
                inputs[each] = self.figure(each)
        at = append(self.builder, program, inputs)
        total = at[program.outputs["energy/static"]]
        for resource in told:
            total = self.emit("add", total, at[program.outputs[f"energy/{resource}"]])
        return total

    def matrix_energy(self) -> int:
        """The energy of a FLOP in the run's precision: as much power at the peak of any precision."""
        wide = self.run.wide_rate()
        energy = self.figure("matrix_energy")
        if wide is None:
            return energy
        share = self.emit("divide", self.constant(wide), self.emit("input", "matrix_rate"))
        return self.emit("multiply", energy, share)

    def cost(self) -> int:
        run, program = self.run, bill_program()
        rent = rent_of(run.system)
        inputs = {"devices": self.devices, "busy_time": self.time}
        if rent is not None:
            inputs["price_per_hour"] = self.figure("price_per_hour", rent.value)
            return append(self.builder, program, inputs)[program.outputs["rented_cost"]]
        run.check_price()
        if run.has_energy:
            inputs["device_energy"] = self.energy()
            inputs["power"] = append(self.builder, program, inputs)[program.outputs["mean_power"]]
        else:
            inputs["power"] = self.constant(0.0)
        for name, otherwise in (
            ("price", 0.0),
            ("lifetime", 0.0),
            ("electricity_price", 0.0),
            ("facility_overhead", 1.0),
        ):
            inputs[name] = self.figure(name, otherwise)
        return append(self.builder, program, inputs)[program.outputs["owned_cost"]]

    def tokens(self) -> int:
        outputs = self.builder.program.outputs
        if "tokens" in outputs:
            return outputs["tokens"]
        return self.emit("multiply", outputs["tokens_per_s"], self.time)

    @property
    def time(self) -> int:
        return self.builder.program.outputs["time"]

    @property
    def devices(self) -> int:
        return self.builder.program.outputs["devices"]

    def figure(self, name: str, otherwise: float = 0.0) -> int:
        """An input that the system gives, or has a value of its own."""
        quantity = self.run.system.quantities.get(name)
        self.values[name] = otherwise if quantity is None else quantity.value
        return self.emit("input", name)

    def constant(self, value: float) -> int:
        return self.emit("constant", value)

    def emit(self, operation: str, *operands: Any) -> int:
        return self.builder.emit(operation, *operands)
