"""What is analysed: one output of a compiled run, with the values of its symbols."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ..codegen.builder import Builder, append, eliminate_dead_code, operands_of, rewrite
from ..codegen.passes import masks
from ..common.errors import InputError, nearest, quote
from ..evaluation.folders import folder_parts, folders
from ..spending.quantities import QUANTITIES, RESOURCES, spending_quantity
from .forms import PowerQuotient, monomial
from .line import PiecewiseProgram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..evaluation.base_run import BaseRun
    from ..spending.mixin import Spending

SHARE = "share of "
"""Before a term or a folder: the part of the time that its executions take, hidden behind other work or not."""
RISING = ("_latency", "_energy", "power")
"""Ends of the names of inputs with which their resource's part rises; with all others, rates, it falls."""
BORNE = ("_per_s", "mfu", "mbu", "hfu", "cost")
"""Parts of the names of quantities that are what they are by the time of the run, or of a phase."""

_TIMES = {True: "multiply", False: "divide"}


@dataclass(frozen=True)
class Subject:
    """One output of a program at the values of its inputs.

    Attributes:
        program: with this output alone.
        output: its name.
        values: of the inputs, by name.
        resources: the resource of each input that is a rate or a latency; of an energy, of each energy and power.
    """

    program: Program
    output: str
    values: dict[str, float]
    resources: dict[str, str]

    @property
    def position(self) -> int:
        """Of the output in the program."""
        return self.program.outputs[self.output]

    @cached_property
    def known(self) -> dict[frozenset[str], Any]:
        """What `numbers` has evaluated of the subject that does not depend on some symbols."""
        return {}

    @cached_property
    def bearing(self) -> int:
        """The position of the time whose resources tell what binds: of rates and shares of a peak not the output."""
        if any(part in self.output for part in BORNE):
            phase = self.output.partition("_")[0]
            return self.program.lets.get(phase, self.program.lets.get("time", self.position))
        return self.position

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The resources that the output depends on, in order of their first input."""
        return tuple(dict.fromkeys(self.resources[name] for name in self.program.inputs if name in self.resources))

    def degree(self, name: str) -> int:
        """How a quantity moves with an input of a resource: a latency, energy or power (1), a rate (-1), or neither."""
        if name not in self.resources:
            return 0
        return 1 if name.endswith(RISING) or "/" in name else -1

    def tag(self, name: str) -> tuple[int, ...]:
        """The tag of an input in a form."""
        degree = self.degree(name)
        return tuple(degree * (other == self.resources[name]) for other in self.names) if degree else ()

    def forms(self, exponents: Mapping[str, int] | None = None, *, symbol: str = "") -> dict[str, PowerQuotient]:
        """The form of every input.

        Args:
            exponents: inputs that are their value times a power of x.
            symbol: the input that is x itself.
        """
        powers = exponents or {}
        return {
            name: monomial(1, 1, self.tag(name))
            if name == symbol
            else monomial(self.values[name], powers.get(name, 0), self.tag(name))
            for name in self.program.inputs
        }

    def line(self, symbol: str, low: float, high: float) -> PiecewiseProgram:
        """The program along a symbol; it must not round what depends on it: see `smooth`."""
        return PiecewiseProgram(self.program, self.forms(symbol=symbol), low, high)

    def smooth(self, *symbols: str) -> Subject:
        """The same without roundings that depend on a symbol.

        ceil(a / b) becomes max(1, a / b), which it tends to; ceil((a + 1) / b) - 1, the floor of whole numbers, a / b.
        """
        depends = masks(self.program, symbols)
        if not any(d and i[0] == "ceil_div" for d, i in zip(depends, self.program.instructions, strict=True)):
            return self
        ratios: dict[int, Any] = {}

        def rule(builder: Any, operation: str, operands: Any, position: int) -> int:
            if operation == "ceil_div" and depends[position]:
                one = builder.emit("constant", 1)
                found = int(builder.emit("max", one, builder.emit("divide", *operands)))
                ratios[found] = operands
                return found
            if operation == "subtract" and operands[0] in ratios and _is_one(builder, operands[1]):
                above, below = ratios[operands[0]]
                added, *parts = builder.program.instructions[above]
                left = [part for part in parts if not _is_one(builder, part)] if added == "add" else []
                if len(left) == 1:
                    return int(builder.emit("divide", left[0], below))
            return int(builder.emit(operation, *operands))

        return dataclasses.replace(self, program=rewrite(self.program, rule))

    def at(self, values: Mapping[str, float]) -> Subject:
        """The same with other values of inputs; what is none is left aside."""
        return dataclasses.replace(self, values=self.values | {n: v for n, v in values.items() if n in self.values})

    def led(self, laws: Mapping[str, tuple[float, Mapping[str, int]]], values: dict[str, float]) -> Subject:
        """The same with inputs that follow others, each a coefficient times whole powers of these.

        Args:
            laws: coefficient and powers by the name of the follower.
            values: of what is followed.
        """
        laws = {name: law for name, law in laws.items() if name in self.program.inputs}
        if not laws:
            return self.at(values)

        def rule(builder: Any, operation: str, operands: Any, _: int) -> int:
            if operation != "input" or operands[0] not in laws:
                return int(builder.emit(operation, *operands))
            coefficient, powers = laws[operands[0]]
            found: int | None = None if coefficient == 1 else builder.emit("constant", coefficient)
            for symbol, power in sorted(powers.items(), key=lambda item: -item[1]):
                leader = builder.emit("input", symbol)
                if found is None and power < 0:
                    found = builder.emit("constant", 1)
                for _ in range(abs(power)):
                    found = leader if found is None else builder.emit(_TIMES[power > 0], found, leader)
            assert found is not None
            return found

        program = rewrite(self.program, rule)
        known = self.values | values
        tags = dict(self.resources)
        for name, (_, powers) in laws.items():
            tags |= {symbol: tags[name] for symbol in powers if name in tags and symbol not in tags}
        return Subject(
            program,
            self.output,
            {name: known[name] for name in program.inputs},
            {name: tag for name, tag in tags.items() if name in program.inputs},
        )

    @cached_property
    def owners(self) -> dict[int, tuple[str, ...]]:
        """For each instruction, the named terms that it is part of, not counting terms that terms are made of."""
        found: dict[int, list[str]] = {}
        lets = set(self.program.lets.values())
        for name, position in self.program.lets.items():
            waiting, seen = [self.program.instructions[position][1]], set()
            while waiting:
                at = waiting.pop()
                if at in seen or at in lets:
                    continue
                seen.add(at)
                found.setdefault(at, []).append(name)
                waiting += operands_of(self.program, at)
        return {position: tuple(names) for position, names in found.items()}


def subject_of(run: BaseRun, of: str, where: str) -> Subject:
    """The part of a run that a quantity needs.

    Args:
        run: bound in every symbol.
        of: an output ("time", "memory", "tokens_per_s", "mfu", ...) or another name of one; "cost", "energy",
            "cost_per_million_tokens", "energy_per_token"; a term, as "layer/mlp/up/forward", which is one execution of
            an operation; or a folder of terms, as "layer/mlp", which is all executions below it on one device, or
            "memory/weights", which is the bytes below it.
        where: for the error line.

    Raises:
        InputError: an unknown quantity, with the nearest; free symbols; a system without a price or energies.
    """
    from ..evaluation.base_run import ALIASES

    if not isinstance(of, str):
        raise InputError(f"{where}: the quantity is {quote(of)}, expected its name")
    key = ALIASES.get(of, of)
    found = _asked(run, key)
    if found is None:
        known = [name for name in known_quantities(run) if not name.startswith("term/")]
        told = [name for name in run.compiled.program.outputs if "/" not in name]
        hint = nearest(of, known) or f", expected {' or '.join(told)} or a term of the breakdown"
        raise InputError(f"{where}: unknown quantity {quote(of)}{hint}")
    if run.free_names:
        raise InputError(f"free symbols have no value: {', '.join(sorted(run.free_names))}; bind them first")
    program, position, own = found
    alone = eliminate_dead_code(program, {key: position})
    values = {name: own[name] if name in own else float(run.bound[name][0]) for name in alone.inputs}
    tags = RESOURCES if key.startswith("energy") else run.compiled.resources
    tags = tags | {name: name.rpartition("/")[2] for name in own if "/" in name}
    resources = {name: resource for name, resource in tags.items() if name in alone.inputs}
    return Subject(alone, key, values, resources)


def known_quantities(run: BaseRun) -> list[str]:
    """The names of all that a run can be asked about, other names of outputs last."""
    from ..evaluation.base_run import ALIASES

    program = run.compiled.program
    names = [*program.outputs, *QUANTITIES, *program.lets, *folders(run.compiled), *ALIASES]
    return list(dict.fromkeys(names))


def _asked(run: BaseRun, key: str) -> tuple[Program, int, dict[str, float]] | None:
    """A program that holds a quantity, its position there, and the values of inputs that the run does not bind."""
    program = run.compiled.program
    position = program.outputs.get(key, program.lets.get(key))
    if key == "memory" or (position is None and key.startswith("memory/")):
        return _bytes_by_part(program, key) if f"{key}/" in "\n".join(program.outputs) else None
    if position is not None:
        return program, position, {}
    if key in QUANTITIES:
        spent, own = spending_quantity(cast("Spending", run), key)
        return spent, spent.outputs[key], own
    if parts := folder_parts(run.compiled, key):
        return *_sum_of(program, parts), {}
    if key.startswith(SHARE) and (parts := folder_parts(run.compiled, f"{key.removeprefix(SHARE)}+")):
        return *_sum_of(program, parts, over="time"), {}
    return None


def _sum_of(program: Program, parts: list[tuple[int, int | None]], over: str = "") -> tuple[Program, int]:
    """A program with the sum of terms, each as often as it counts; as a share of an output where one is named."""
    builder = Builder()
    at = append(builder, program, {})
    builder.program.lets = {name: at[position] for name, position in program.lets.items()}
    total: int | None = None
    for position, count in parts:
        part = at[position] if count is None else builder.emit("multiply", at[count], at[position])
        total = part if total is None else builder.emit("add", total, part)
    assert total is not None
    if over:
        total = builder.emit("divide", total, at[program.outputs[over]])
    return builder.program, total


def _bytes_by_part(program: Program, key: str) -> tuple[Program, int, dict[str, float]]:
    """A folder of the memory in which each part next below is multiplied by an input of its name, which is 1.

    So its share can be followed as that of a resource is: it is the derivative with respect to that input.
    """
    builder = Builder()
    at = append(builder, program, {})
    sums: dict[str, int] = {}
    for name, position in program.outputs.items():
        if name.startswith(f"{key}/"):
            part = name[: f"{name}/".index("/", len(key) + 1)]
            sums[part] = builder.emit("add", sums[part], at[position]) if part in sums else at[position]
    total: int | None = None
    for part, size in sums.items():
        counted = builder.emit("multiply", builder.emit("input", part), size)
        total = counted if total is None else builder.emit("add", total, counted)
    assert total is not None
    return builder.program, total, dict.fromkeys(sums, 1.0)


def _is_one(builder: Any, position: int) -> bool:
    return bool(builder.program.instructions[position] == ("constant", 1))
