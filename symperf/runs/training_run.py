"""`Run`: the training step of a model on a system under a plan."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ..plans.plan import Plan, check, positive_integer
from ..sweep.sweep_methods import SweepMethods
from ..train.binding import bind, precision_of
from ..train.compile import compile_step, memory_program
from ..train.inputs import resized, sort_values, stated_of, structure_of
from ..train.memory.memory_tables import MemoryTables
from .full_run import FullRun

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..models.model import Model
    from ..operations.compiled import Compiled
    from ..operations.schedule import Node
    from ..systems.system import System


class Run(FullRun, SweepMethods, MemoryTables):
    """The cost of one step, symbolic and bound.

    Args:
        model: what is trained.
        system: what it runs on.
        plan: how it is laid out.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        values: values of other symbols, by name: sizes of the model, figures of the system, defaults.
        free: names of symbols that stay symbols.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        batch: int,
        sequence: int,
        values: dict[str, Any] | None = None,
        free: frozenset[str] = frozenset(),
    ) -> None:
        self.given = dict(values or {})
        self.plan = plan = plan.with_micro_batch(1)
        self.batch, self.sequence = positive_integer("batch", batch), positive_integer("sequence", sequence)
        sizes, figures, defaults, encoder = sort_values(self.given)
        self.base_model, self.base_system = model, system
        self.model = resized(model, sizes) if sizes else model
        precision = precision_of(plan, system)
        self.system = system.with_values(figures, precision) if figures else system
        self.warnings = tuple(check(plan, self.model, self.system, self.batch, self.sequence, encoder))
        self.structure = structure_of(self.model, self.system, plan, stated_of(defaults))
        if self.structure.attention == "flash" and self.structure.recompute == "selective":
            self.warnings += ("selective recomputation saves nothing with flash attention, which keeps no scores",)
        self.bound = bind(self.model, self.system, plan, self.batch, self.sequence, defaults, encoder)
        self.free_names = free

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        return compile_step(self.structure)

    def schedule_tree(self) -> Node:
        """The schedule tree of the step."""
        from ..train.build import step_tree

        return step_tree(self.structure)

    def memory_forms(self) -> dict[str, Any]:
        """The closed form of every named term of the memory."""
        from ..train.memory.footprint import footprint

        return footprint(self.structure)

    def _memory_program(self) -> Program:
        return memory_program(self.structure)

    def bind(self, **values: Any) -> Self:
        """The same run with other values of plan fields, batch, sequence or symbols; they are bound if they were free.

        Raises:
            InputError: an unknown name, with the nearest, or a value out of range.
        """
        plan_fields = {name: value for name, value in values.items() if name in Plan.names()}
        batch, sequence = values.get("batch", self.batch), values.get("sequence", self.sequence)
        rest = {n: v for n, v in values.items() if n not in plan_fields and n not in ("batch", "sequence")}
        return type(self)(
            self.base_model,
            self.base_system,
            dataclasses.replace(self.plan, **plan_fields),
            batch=batch,
            sequence=sequence,
            values=self.given | rest,
            free=self.free_names - set(values),
        )

    def _with_free(self, free: frozenset[str]) -> Self:
        return type(self)(
            self.base_model,
            self.base_system,
            self.plan,
            batch=self.batch,
            sequence=self.sequence,
            values=self.given,
            free=free,
        )

    def __repr__(self) -> str:
        work = f"batch={self.batch}, sequence={self.sequence}"
        return f"Run({self.model.name} on {self.system.name}, {self.plan}, {work})"
