"""What a generated chip costs to make: wafers, yield, memory, package and test (`technology/process.toml`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ..codegen.interpret import floats, run
from ..common.artefacts import load_or_make_program
from ..common.errors import InputError
from ..common.files import read_toml
from ..systems.physical_units import BYTE_PRICE, FACTOR, LENGTH, PER_AREA
from ..systems.system_symbols import Limits, Quantity
from ..systems.units import COUNT, FRACTION, PRICE
from .components import CATALOGUE
from .quantities import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from .chip import Chip

PROCESS: Final = CATALOGUE / "process.toml"
YIELDS: Final = ("clustered", "murphy", "poisson")
NODE: Final[dict[str, Limits]] = {
    "wafer_price": Limits(PRICE, 1.0, 1e7),
    "defect_density": Limits(PER_AREA, 1e-3, 1e8, zero=True),
}
WAFER: Final[dict[str, Limits]] = {
    "diameter": Limits(LENGTH, 1e-2, 1.0),
    "clustering": Limits(FACTOR, 1e-3, 1e6),
}
PACKAGE: Final[dict[str, Limits]] = {
    "price": Limits(PRICE, 0.01, 1e7, zero=True),
    "test": Limits(PRICE, 0.01, 1e7, zero=True),
    "bond_yield": Limits(FRACTION, 1e-3, 1.0),
    "memory_price": Limits(BYTE_PRICE, 1e-12, 1e-3, zero=True),
}
DIES: Final = Limits(COUNT, 1, 1000)


@dataclass(frozen=True)
class ChipCost:
    """What a device costs to make.

    Attributes:
        dollars: of "dies" (those that work), "memory", "package", "test" and "assembly" (parts lost with failed bonds).
        dies_per_wafer: gross dies.
        yields: part of the dies without a defect, by model: "clustered", "murphy", "poisson".
        model: the yield that the cost counts with.
        sources: of every figure that the process gives, by name.
    """

    dollars: Mapping[str, float]
    dies_per_wafer: float
    yields: Mapping[str, float]
    model: str
    sources: Mapping[str, str]

    @property
    def total(self) -> float:
        """Dollars of the packaged, tested device; what a vendor asks for it is another matter."""
        return sum(self.dollars.values())

    def __str__(self) -> str:
        lines = [f"cost = {self.total:.4g} USD a device, yield {self.yields[self.model]:.3f} ({self.model})"]
        return "\n".join([*lines, *(f"  {name:9}{dollars:10.2f} USD" for name, dollars in self.dollars.items())])


def chip_cost(chip: Chip, *, dies: int = 1, model: str = "clustered", **values: Any) -> ChipCost:
    """What the device of a generated chip costs to make.

    Args:
        chip: whose die is made at its technology's node.
        dies: equal dies that the area is cut into.
        model: of the yield, "clustered" (negative binomial), "murphy" or "poisson".
        values: other values of `wafer_price`, `defect_density`, `diameter`, `clustering`, `price` (of the package),
            `test`, `bond_yield`, `memory_price`.

    Raises:
        InputError: a node without a wafer price or defect density, an unknown name, a die larger than a wafer.
    """
    if model not in YIELDS:
        raise InputError(f"chip cost: model: found {model!r}, expected {' or '.join(YIELDS)}")
    node = chip.technology.node
    table = read_toml(PROCESS, PROCESS.name)
    found = read(table.get(node, {}), NODE, f"{PROCESS.name}: {node}")
    found |= read(table["wafer"], WAFER, f"{PROCESS.name}: wafer") | read(table["package"], PACKAGE, PROCESS.name)
    found |= read(values, NODE | WAFER | PACKAGE, "chip cost")
    missing = [name for name in NODE if name not in found]
    if missing:
        raise InputError(f"chip cost: {node} has no {' and no '.join(missing)} in the catalogue; give them")
    count = int(read({"dies": dies}, {"dies": DIES}, "chip cost")["dies"].value)
    inputs = _inputs(found, chip, count)
    if _evaluate(cost_program(model, ("wafer_dies",)), inputs)["wafer_dies"] < 1:
        raise InputError(f"chip cost: a die of {inputs['die_area'] * 1e6:.4g} mm2 is no part of a wafer")
    out = _evaluate(cost_program(model), inputs)
    parts = {name: out[name] for name in ("dies", "memory", "package")}
    lost = out["device"] - out["test"] - sum(parts.values())
    return ChipCost(
        {**parts, "assembly": lost, "test": out["test"]},
        out["wafer_dies"],
        {name: out[name] for name in YIELDS},
        model,
        {name: quantity.source for name, quantity in found.items()},
    )


def _inputs(found: Mapping[str, Quantity], chip: Chip, dies: int) -> dict[str, float]:
    return {name: quantity.value for name, quantity in found.items()} | {
        "dies": float(dies),
        "die_area": chip.budget["die_area"].value / dies,
        "bonds": dies + chip.figures["stacks"],
        "stored_bytes": chip.figures["memory_capacity"],
    }


def _evaluate(program: Program, inputs: Mapping[str, float]) -> dict[str, float]:
    values = run(program, {name: inputs[name] for name in program.inputs}, floats())
    return {name: float(values[at]) for name, at in program.outputs.items()}


@lru_cache(maxsize=6)
def cost_program(model: str, only: tuple[str, ...] = ()) -> Program:
    """The compiled closed forms of a device's cost under a model of the yield: all, or some."""

    def make() -> Program:
        from ..codegen.lower import lower
        from ..formulas.language.symbols import strip_units

        forms = cost_forms(model)
        return lower([], {name: strip_units(forms[name]) for name in only or forms})

    return load_or_make_program("chip cost", "/".join((model, *only)), make)


def cost_forms(model: str) -> dict[str, Any]:
    """Closed forms of a device's cost: yields, gross dies, working dies, memory, package, test, device."""
    import sympy

    from ..formulas.technology import cost

    def given(name: str) -> Any:
        return sympy.Symbol(name, positive=True)

    area, density = given("die_area"), given("defect_density")
    yields = {
        "clustered": cost.clustered_yield(area, density, given("clustering")),
        "murphy": cost.murphy_yield(area, density),
        "poisson": cost.poisson_yield(area, density),
    }
    gross = cost.dies_per_wafer(given("diameter"), area)
    die = cost.good_die_cost(given("wafer_price"), gross, yields[model])
    holds = cost.assembly_yield(given("bond_yield"), given("bonds"))
    stored, memory, test = given("stored_bytes"), given("memory_price"), given("test")
    return {
        **yields,
        "wafer_dies": gross,
        "dies": given("dies") * die,
        "memory": stored * memory,
        "package": given("price"),
        "test": test,
        "device": cost.module_cost(given("dies"), die, stored, memory, given("price"), test, holds),
    }
