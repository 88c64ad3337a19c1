"""The numbers of a run's schedule trees: seconds of nodes, counts, and what an operation needs and is bound by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from ..codegen.interpret import floats, run
from ..codegen.lower import lower
from ..evaluation.resources import bound_of, resource_shares
from ..formulas.language.dimension import SECOND
from ..formulas.language.named_calls import NamedCall
from ..formulas.language.symbols import strip_units
from ..operations.schedule import Idle, Op, Overlap, Repeat, Sequence, StepSeries, terms, time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..evaluation.resources import Priced
    from ..operations.schedule import Node


class Facts(NamedTuple):
    """What a slice tells of one execution of an operation.

    Attributes:
        formula: names of the formulas of seconds in its time, an outer one before those that it is of.
        bound: the resource that sets it.
        flops: FLOPs.
        bytes: of device memory.
        message: bytes of a message.
    """

    formula: str
    bound: str | None
    flops: float
    bytes: float
    message: float


class Values:
    """The numbers of the trees of one structure.

    Args:
        priced: the program that has the seconds of each operation under its path.
        inputs: the value of each symbol, by name.
        named: the trees, built with named calls.
        steps: over which the seconds of summed operations are summed.
    """

    def __init__(self, priced: Priced, inputs: Mapping[str, float], named: Iterable[Node], steps: float = 1.0) -> None:
        self.priced, self.inputs, self.steps = priced, dict(inputs), steps
        program = priced.program
        self.found = run(program, {name: self.inputs[name] for name in program.inputs}, floats())
        self.formulas = {
            path: _formulas(leaf.time) for tree in named for path, leaf in terms(tree).items() if isinstance(leaf, Op)
        }
        self.seconds: dict[int, tuple[Node, float]] = {}
        self.numbers: dict[Any, float] = {}
        self.known_facts: dict[str, Facts] = {}

    def number(self, form: Any) -> float:
        """The value of a closed form."""
        form = sympy.sympify(form, strict=True)
        if form not in self.numbers:
            self.numbers[form] = float(form) if form.is_number else self._evaluate(form)
        return self.numbers[form]

    def _evaluate(self, form: Any, known: dict[str, float] | None = None) -> float:
        program = lower([], {"it": strip_units(form)})
        values = self.inputs | (known or {})
        return float(run(program, {name: values[name] for name in program.inputs}, floats())[program.outputs["it"]])

    def time(self, node: Node) -> float:
        """Seconds of a node; of an operation that is summed over steps, those of the mean step."""
        if id(node) not in self.seconds:
            self.seconds[id(node)] = node, self._time(node)
        return self.seconds[id(node)][1]

    def _time(self, node: Node) -> float:
        match node:
            case Op(path=path, summed=summed):
                return self._let(path) / (self.steps if summed else 1.0)
            case Sequence(children):
                return sum(self.time(child) for child in children)
            case Repeat(child, count):
                return self.number(count) * self.time(child)
            case Overlap(work, transfer, fraction):
                beside = self.time(transfer)
                return max(beside, self.time(work) + (1 - self.number(fraction)) * beside)
            case Idle(path=path):
                return self._let(path)
            case StepSeries():
                raise TypeError("a series of steps has no time of its own")
            case _:
                known: dict[str, float] = {}
                stand_ins: dict[int, Any] = {}

                def stand_in(leaf: Op | Idle) -> Any:
                    symbol = stand_ins.setdefault(id(leaf), sympy.Symbol(f"leaf{len(stand_ins)}", nonnegative=True))
                    known[symbol.name] = self.time(leaf)
                    return symbol

                return self._evaluate(time_of(node, stand_in), known)

    def _let(self, path: str) -> float:
        return float(self.found[self.priced.program.lets[path]])

    def facts(self, op: Op) -> Facts:
        """What one execution of an operation needs."""
        if op.path not in self.known_facts:
            shares = resource_shares(self.priced, self.found, self.priced.program.lets[op.path])
            demand = op.demand.flops, op.demand.memory_bytes, op.demand.message_bytes
            needs = (self.number(strip_units(each)) for each in demand)
            self.known_facts[op.path] = Facts(self.formulas[op.path], bound_of(shares), *needs)
        return self.known_facts[op.path]


def _formulas(time: Any) -> str:
    """The names of the formulas of seconds in a time, an outer one before those that it is of."""
    calls = (each for each in sympy.preorder_traversal(sympy.sympify(time, strict=True)) if isinstance(each, NamedCall))
    return ", ".join(dict.fromkeys(each.formula.name for each in calls if each.formula.dimension == SECOND))
