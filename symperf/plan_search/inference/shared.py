"""What equal replicas of a search share: the numbers of their iterations, and their steady states.

Plans that differ in the number of replicas alone have the same replica, unless that number decides where its stages
lie. So for each program it is found once what depends on the number of replicas, and this alone is computed anew; where
it comes to the same numbers, every output is the same, and all that was learnt of one replica holds for the other.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...codegen.interpret import run
from ...serve.limits import Targets, largest_load
from ...serve.pools import _decode_load, _most_decoding
from ...serve.program import Evaluator
from ...serve.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...codegen.program import Program
    from ...infer.room import Room
    from ...serve.engine import ModelTimes
    from ...serve.limits import Largest
    from ...serve.state import State

REPLICAS = "dp"


class ReplicaDependence:
    """Which positions of a program a call computes, and which depend on the number of replicas.

    Attributes:
        model: an evaluator of the program.
        moved: positions that depend on the number of replicas and on nothing that a call gives, in order.
        seen: those of them that an output, or what a call computes, reads.
    """

    def __init__(self, program: Program, inputs: Mapping[str, float]) -> None:
        self.model = Evaluator(program, inputs)
        at = program.inputs.get(REPLICAS)
        depends = set() if at is None else {at}
        read = set(program.outputs.values())
        for position, (operation, *operands) in enumerate(program.instructions):
            if operation in ("input", "constant"):
                continue
            if depends & set(operands):
                depends.add(position)
            if position in self.model.varies:
                read.update(operands)
        fixed = depends - self.model.varies
        self.moved = sorted(fixed - {at})
        self.seen = sorted(fixed & read)


class SharedEvaluator(Evaluator):
    """An evaluator that computes of its program only what the number of replicas decides.

    Args:
        layout: of the program.
        start: values of the program for the same inputs but for the number of replicas.
        number: of those inputs.
        inputs: the value of every input.

    Attributes:
        key: equal for evaluators all of whose outputs are equal.
    """

    def __init__(self, layout: ReplicaDependence, start: list[Any], number: int, inputs: Mapping[str, float]) -> None:
        self.program, self.inputs = layout.model.program, dict(inputs)
        self.arithmetic, self.varies, self.plans = layout.model.arithmetic, layout.model.varies, layout.model.plans
        self.start = start.copy()
        if REPLICAS in self.program.inputs:
            self.start[self.program.inputs[REPLICAS]] = self.inputs[REPLICAS]
        for position in layout.moved:
            operation, *operands = self.program.instructions[position]
            self.start[position] = self.arithmetic.forward[operation](*[self.start[each] for each in operands])
        self.key = number, *(self.start[position] for position in layout.seen)


class SharedSteady(Steady):
    """The steady states of a replica, each quantity that a search asks for computed once."""

    @cached_property
    def alone(self) -> State:
        """The state of a request alone."""
        return self.at_arrivals(0.0)

    @cached_property
    def prefilling(self) -> SharedSteady:
        """Those of a replica that only prefills."""
        return SharedSteady(dataclasses.replace(self.engine, generate=1, steps=0.0))

    @cached_property
    def _largest(self) -> dict[tuple[Targets, float], Largest]:
        return {}

    def largest(self, targets: Targets, steps: float) -> Largest:
        """The largest load within targets, as `symperf serve` finds it."""
        if (targets, steps) not in self._largest:
            self._largest[targets, steps] = largest_load(self, targets, steps)
        return self._largest[targets, steps]

    @cached_property
    def _decoding(self) -> dict[float | None, tuple[float, float] | None]:
        return {}

    def decode_load(self, target: float | None) -> tuple[float, float] | None:
        """The load of a replica that only decodes, and how many sequences; None where the target is out of reach."""
        if target not in self._decoding:
            most = _most_decoding(self.engine, target)
            self._decoding[target] = None if not most else (_decode_load(self.engine, most), most)
        return self._decoding[target]


@dataclass(eq=False)
class Shared:
    """What the plans of a question share.

    Attributes:
        layouts: of programs.
        starts: values of programs, by program and inputs without the number of replicas.
        times: of iterations, by evaluator.
        rooms: what fits, by structure and by the values that memory reads.
        states: by evaluator and what else decides them.
    """

    layouts: dict[int, ReplicaDependence] = field(default_factory=dict)
    starts: dict[tuple[Any, ...], tuple[list[Any], int]] = field(default_factory=dict)
    times: dict[tuple[Any, ...], ModelTimes] = field(default_factory=dict)
    rooms: dict[tuple[Any, ...], Room] = field(default_factory=dict)
    states: dict[tuple[Any, ...], SharedSteady] = field(default_factory=dict)

    def evaluator(self, program: Program, inputs: Mapping[str, float]) -> SharedEvaluator:
        """An evaluator of a program for some inputs."""
        if id(program) not in self.layouts:
            self.layouts[id(program)] = ReplicaDependence(program, inputs)
        layout = self.layouts[id(program)]
        key = id(program), *(inputs[name] for name in program.inputs if name != REPLICAS)
        if key not in self.starts:
            self.starts[key] = run(program, dict(inputs), layout.model.arithmetic), len(self.starts)
        return SharedEvaluator(layout, *self.starts[key], inputs)
