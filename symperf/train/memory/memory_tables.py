"""Memory by stage of the pipeline, and that of the host: what a training run tells beside its fullest device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...codegen.interpret import floats, run
from ...common.artefacts import load_or_make_program
from ...common.errors import InputError

if TYPE_CHECKING:
    from ...codegen.program import Program
    from ...operations.compiled import Bound
    from ...plans.plan import Plan
    from ...plans.structure import Structure


class MemoryTables:
    """What a training run tells of each stage, and of the host.

    Attributes:
        structure: of the run.
        plan: gives the number of stages.
        bound: value of every symbol.
        free_names: symbols that stay symbols.
    """

    structure: Structure
    plan: Plan
    bound: Bound
    free_names: frozenset[str]

    def stage_memory(self) -> list[dict[str, float]]:
        """Bytes on the device of each stage by named term, from the first stage to the last.

        Each has the terms of `memory_terms`, their sum `total`, `reserved` with what is held beside, `logits` among
        the activations, and two counts: `layers` of the stage, and `in_flight` micro-batches whose activations it holds
        (of interleaved stages in units of all the device's layers). Under DualPipe row i is the device of stage i,
        which holds the mirrored stage too.

        Raises:
            InputError: free symbols have no value.
        """
        program = stage_program(self.structure)
        return [self._run(program, stage_number=float(stage)) for stage in range(1, self.plan.pp + 1)]

    def stage_memory_forms(self) -> dict[str, Any]:
        """The closed form of every term of `stage_memory`, in the symbol `stage_number`."""
        from .reserved import stage_forms

        return stage_forms(self.structure)

    def host_memory(self) -> dict[str, float]:
        """Bytes that the host holds for the fullest device, by what is offloaded, and the sum `total` of its memory.

        What lies on its drives has names that begin with `nvme/`, and is no part of the sum.

        Raises:
            InputError: free symbols have no value.
        """
        return self._run(host_program(self.structure))

    def _run(self, program: Program, **more: float) -> dict[str, float]:
        if self.free_names:
            raise InputError(f"free symbols have no value: {', '.join(sorted(self.free_names))}; bind them first")
        inputs = {name: value for name, (value, _) in self.bound.items()} | more
        values = run(program, inputs, floats())
        return {name: float(values[at]) for name, at in program.outputs.items()}


@lru_cache(maxsize=64)
def stage_program(structure: Structure) -> Program:
    """The terms of stage i as a program, kept on disk."""

    def make() -> Program:
        from ...codegen.lower import lower
        from .reserved import stage_forms

        return lower([], stage_forms(structure))

    return load_or_make_program("stage memory", structure.key(), make)


@lru_cache(maxsize=64)
def host_program(structure: Structure) -> Program:
    """The terms of the host as a program, kept on disk."""

    def make() -> Program:
        import sympy

        from ...codegen.lower import lower
        from .footprint import host_footprint

        terms = host_footprint(structure)
        held = [form for name, form in terms.items() if not name.startswith("nvme/")]
        return lower([], terms | {"total": sympy.Add(*held)})

    return load_or_make_program("host memory", structure.key(), make)
