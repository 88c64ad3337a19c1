"""Rows of tables that are fitted: the calibration rows of a stage, by the form that predicts them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.adjoint import PREFIX, gradient
from ...codegen.evaluate import outputs_at
from ...common.errors import InputError, quote
from ...systems.system import catalogue_names
from ...systems.system_symbols import Quantity
from ...validation.kernels import faults
from ...validation.kernels.formats import DEVICES, LeftOutError, software_of
from ...validation.kernels.forms import program_of, structure_on, values_on
from ...validation.kernels.operations import OPERATIONS
from ...validation.kernels.rows import Table, tables_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ...codegen.program import Program
    from ...systems.system import System
    from ...validation.kernels.forms import Form, Setting
    from ...validation.kernels.rows import Part
    from .stages import Stage

MOST: Final = 4000
"""Rows of one form that a fit reads; of more, as many that are spread evenly."""
MOVED: Final = 1.25
"""Factor by which a constant is moved to see which inputs of a program take their value from it."""
SHOWN: Final = 4
"""Tables of others that are named where a folder has none of kernels."""
Rows = dict[str, list["Part"]]


def device_name(system: System) -> str:
    """What tables call a system, or the one of the catalogue that it starts from; else its own name."""
    names = {known: known.replace("-", "_") for known in catalogue_names()}
    names |= {known: name for name, known in DEVICES.items()}
    return next((names[each] for each in system.lineage if each in names), system.name.replace("-", "_"))


def gather(
    folder: Path, system: System, software: str, progress: Callable[[int, int], None] | None = None
) -> tuple[Rows, Counter[str]]:
    """The parts of all tables that are of a system, and of a software where one is named; and what is left out, why.

    Raises:
        InputError: a table that cannot be read, or no row of the device or of the software.
    """
    wanted, left, devices, softwares = device_name(system), Counter[str](), set(), set()
    taken: Rows = {}
    equal = system.name in (wanted, wanted.replace("_", "-"), DEVICES.get(wanted))

    def system_of(device: str) -> System:
        devices.add(device)
        if device != wanted and not (equal and device.replace("_", "-") == system.name):
            raise LeftOutError("rows of other devices")
        return system

    found = tables_in(folder)
    for number, path in enumerate(found):
        name = path.stem.removesuffix("_perf")
        if name in OPERATIONS:
            table = Table(path, name, OPERATIONS[name], system_of)
            seen, impossible = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
            for part in table.parts():
                softwares.add(part.group.software)
                if not software or part.group.software.casefold() == software_of(software).casefold():
                    before = left[faults.IMPOSSIBLE]
                    taken.setdefault(name, []).append(_checked(part, table, left))
                    seen[part.measure.columns] += part.rows.size
                    impossible[part.measure.columns] += left[faults.IMPOSSIBLE] - before
            for columns, count in impossible.items():
                faults.check_unit(path.name, columns, seen[columns], count)
            for reasons in table.left_out.values():
                left += reasons
        if progress is not None:
            progress(number + 1, len(found))
    if not any(path.stem.removesuffix("_perf") in OPERATIONS for path in found):
        others = ", ".join(path.name for path in found[:SHOWN])
        raise InputError(
            f"calibrate: {quote(str(folder))}: found no table of kernels among {others}, "
            "expected a CSV file of measurements, or a folder with tables such as gemm.parquet or gemm.csv"
        )
    if not softwares:
        others = ", ".join(quote(device) for device in sorted(devices)[:SHOWN]) or "no row at all"
        why = ", ".join(f"{count} {reason}" for reason, count in left.items())
        raise InputError(
            f"calibrate: {quote(str(folder))}: no row of {system.name} ({wanted}) that can be fitted; the tables have "
            f"{others}{f'; left out: {why}' if why else ''}"
        )
    if not taken:
        raise InputError(
            f"calibrate: --software: found {quote(software)}, expected one of {', '.join(sorted(softwares))}: "
            f"the tables have these for {system.name}"
        )
    return taken, left


def _outputs(part: Part) -> dict[str, Any]:
    """What the form of a part gives for its rows: seconds, FLOPs, bytes and messages."""
    form, setting = part.sort.form, part.sort.setting
    structure = structure_on(setting.equipped, form, setting)
    return outputs_at(
        program_of(form, structure), values_on(setting.equipped, form, setting) | part.sizes, part.rows.size
    )


def _checked(part: Part, table: Table, left: Counter[str]) -> Part:
    """The rows of a part that can be: neither impossible nor in contradiction with each other."""
    impossible = faults.too_fast(part.seconds, _outputs(part), part.sort.setting.system, part.sort.format)
    apart = faults.disagreeing(faults.fingerprints(part.rows, table.identity), part.seconds)
    left[faults.IMPOSSIBLE] += int(impossible.sum())
    left[faults.DISAGREE] += int((apart & ~impossible).sum())
    return rows_of(part, np.flatnonzero(~(impossible | apart)))


def rows_of(part: Part, kept: Any) -> Part:
    """The rows of a part at some places."""
    size = part.rows.size
    sizes = {name: np.broadcast_to(each, (size,))[kept] for name, each in part.sizes.items()}
    return dataclasses.replace(
        part, rows=part.rows.rows(kept), seconds=part.seconds[kept], sizes=sizes, test=part.test[kept]
    )


def parts_of(rows: Rows, stage: Stage, *, test: bool) -> list[Part]:
    """The parts that a stage takes: rows that are kept back, or the others."""
    chosen = [
        part
        for name, parts in rows.items()
        for part in (_commonest(parts) if stage.commonest else parts)
        if stage.takes(name, part)
    ]
    made = (
        rows_of(part, np.flatnonzero((part.test == test) & (_outgrows(part) if stage.uncached else True)))
        for part in chosen
    )
    return [part for part in made if part.rows.size]


def _outgrows(part: Part) -> Any:
    """Whether the bytes of each row are more than the L2 cache holds; so is every row where its size is not known."""
    known = part.sort.setting.system.quantities
    return _outputs(part)["bytes"] > (known["l2_capacity"].value if "l2_capacity" in known else 0)


def _commonest(parts: Sequence[Part]) -> list[Part]:
    """The parts of the kernel that most rows of their format are of."""
    counts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        counts[part.sort.format, part.kernel] += part.rows.size
    most = {form: kernel for (form, kernel), _ in reversed(counts.most_common())}
    return [part for part in parts if most[part.sort.format] == part.kernel]


@dataclass
class KernelFamily:
    """Rows of one form in one setting, as `calibration.fit` takes them.

    Attributes:
        form: predicts them.
        setting: where it is evaluated.
        system: with what is known of the kernels.
        sizes: of each row, by symbol.
        seconds: measured.
    """

    form: Form
    setting: Setting
    system: System
    sizes: dict[str, Any]
    seconds: Any

    def __post_init__(self) -> None:
        self.program = program_of(self.form, structure_on(self.system, self.form, self.setting))
        self.base = values_on(self.system, self.form, self.setting)
        self._partials: dict[tuple[str, ...], Program] = {}
        self._inputs: dict[str, dict[str, float]] = {}

    @property
    def rows(self) -> Sequence[Any]:
        """As many as there are."""
        return range(len(self.seconds))

    def inputs_of(self, name: str) -> dict[str, float]:
        """The inputs that take their value from a constant of the system, with how many times it they are."""
        if name not in self._inputs:
            quantity = self.system.quantities[name]
            moved = self.system.with_constants({name: replace(quantity, value=quantity.value * MOVED)})
            other = values_on(moved, self.form, self.setting)
            self._inputs[name] = {
                each: self.base[each] / quantity.value
                for each in self.program.inputs
                if each not in self.sizes and other.get(each) != self.base.get(each)
            }
        return self._inputs[name]

    def predict(self, values: Mapping[str, float]) -> Any:
        """Seconds of each row."""
        return outputs_at(self.program, self._at(values), len(self.seconds))["time"]

    def slopes(self, values: Mapping[str, float], names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Seconds of each row, and d ln(seconds) / d ln(constant) for each constant that they depend on."""
        wanted = {name: inputs for name in names if (inputs := self.inputs_of(name))}
        key = tuple(sorted({each for inputs in wanted.values() for each in inputs}))
        if key not in self._partials:
            self._partials[key] = gradient(self.program, "time", key)
        found = outputs_at(self._partials[key], self._at(values), len(self.seconds))
        time = found["time"]
        return time, {
            name: sum(found[PREFIX + each] * factor for each, factor in inputs.items()) * values[name] / time
            for name, inputs in wanted.items()
        }

    def _at(self, values: Mapping[str, float]) -> dict[str, Any]:
        moved = {each: values[name] * factor for name in values for each, factor in self.inputs_of(name).items()}
        return {**self.base, **moved, **self.sizes}


def families_of(parts: Sequence[Part], equip: Callable[[Setting], System], most: int = MOST) -> list[KernelFamily]:
    """The rows of parts by form and setting, on the system that `equip` makes for a setting."""
    together: dict[tuple[Form, Setting], list[Part]] = {}
    for part in parts:
        together.setdefault((part.sort.form, part.sort.setting), []).append(part)
    made = []
    for (form, setting), members in together.items():
        seconds = np.concatenate([part.seconds for part in members])
        sizes = {name: np.concatenate([part.sizes[name] for part in members]) for name in members[0].sizes}
        if len(seconds) > most:
            kept = np.unique(np.linspace(0, len(seconds) - 1, most).astype(int))
            seconds, sizes = seconds[kept], {name: each[kept] for name, each in sizes.items()}
        made.append(KernelFamily(form, setting, equip(setting), sizes, seconds))
    return made


def stand_in(value: float) -> Quantity:
    """A constant that is not known yet, where a search for it starts."""
    return Quantity(value, "where the search starts")
