"""What is analysed: one output of a compiled run, with the values of its symbols."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.builder import eliminate_dead_code, operands_of, rewrite
from ..codegen.passes import masks
from ..common.errors import InputError, nearest, quote
from .forms import PowerQuotient, monomial
from .line import PiecewiseProgram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..evaluation.base_run import BaseRun


@dataclass(frozen=True)
class Subject:
    """One output of a program at the values of its inputs.

    Attributes:
        program: with this output alone.
        output: its name.
        values: of the inputs, by name.
        resources: the resource of each input that is a rate or a latency.
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
    def names(self) -> tuple[str, ...]:
        """The resources that the output depends on, in order of their first input."""
        return tuple(dict.fromkeys(self.resources[name] for name in self.program.inputs if name in self.resources))

    def degree(self, name: str) -> int:
        """How a time moves with an input that is a latency (1), a rate (-1) or neither (0)."""
        if name not in self.resources:
            return 0
        return 1 if name.endswith("_latency") else -1

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

    def led(self, symbol: str, ratios: Mapping[str, float]) -> Subject:
        """The same with inputs that follow another one, each at a fixed ratio to it."""
        if symbol not in self.program.inputs or not any(name in self.program.inputs for name in ratios):
            return self

        def rule(builder: Any, operation: str, operands: Any, _: int) -> int:
            if operation != "input" or operands[0] not in ratios:
                return int(builder.emit(operation, *operands))
            leader, ratio = builder.emit("input", symbol), ratios[operands[0]]
            return int(leader if ratio == 1 else builder.emit("multiply", builder.emit("constant", ratio), leader))

        return dataclasses.replace(self, program=rewrite(self.program, rule))

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
    """The part of a run that one of its outputs or terms needs.

    Raises:
        InputError: an unknown output, with the nearest, or free symbols.
    """
    from ..evaluation.base_run import ALIASES

    if not isinstance(of, str):
        raise InputError(f"{where}: the quantity is {quote(of)}, expected its name")
    program = run.compiled.program
    key = ALIASES.get(of, of)
    position = program.outputs.get(key, program.lets.get(key))
    if position is None:
        known = [*ALIASES, *program.outputs, *program.lets]
        raise InputError(f"{where}: unknown quantity {quote(of)}{nearest(of, dict.fromkeys(known))}")
    if run.free_names:
        raise InputError(f"free symbols have no value: {', '.join(sorted(run.free_names))}; bind them first")
    alone = eliminate_dead_code(program, {key: position})
    values = {name: float(run.bound[name][0]) for name in alone.inputs}
    resources = {name: resource for name, resource in run.compiled.resources.items() if name in alone.inputs}
    return Subject(alone, key, values, resources)


def _is_one(builder: Any, position: int) -> bool:
    return bool(builder.program.instructions[position] == ("constant", 1))
