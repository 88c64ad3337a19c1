"""`Run`: the training step of a model on a system under a plan."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats
from ..codegen.interpret import run as evaluate
from ..evaluation.causes import measured_systems
from ..plans.alignment import alignment_warnings
from ..plans.plan import check, positive_integer
from ..sweep.sweep_methods import SweepMethods
from ..systems.widening import widening
from ..train.binding import bind, precision_asked, precision_of
from ..train.compile import compile_step, memory_program
from ..train.document_rules import check_documents
from ..train.inputs import TRAINING, stated_names, structure_of, without_training
from ..train.memory.memory_tables import MemoryTables
from .full_run import FullRun

if TYPE_CHECKING:
    import os

    from ..codegen.program import Program
    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Image
    from ..operations.compiled import Compiled
    from ..operations.schedule import Node
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity


class Run(FullRun, SweepMethods, MemoryTables):
    """The cost of one step, symbolic and bound.

    Args:
        model: what is trained.
        system: what it runs on.
        plan: how it is laid out.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        stack: name of a training software's profile, or the path of one; by default the best kernels published.
        images: of each sequence, and recordings, whose tokens are among its; see `train.step.encoders`.
        forward_only: nothing is trained: the pass of a reference or a teacher, with its loss, and no step after it.
        values: values of other symbols, by name: sizes of the model, figures of the system, defaults.
        free: names of symbols that stay symbols.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """

    settable = TRAINING
    _rate_precision = staticmethod(precision_of)

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        batch: int,
        sequence: int,
        stack: str | os.PathLike[str] | None = None,
        images: tuple[Image | Sound, ...] = (),
        forward_only: bool = False,
        values: dict[str, Any] | None = None,
        free: frozenset[str] = frozenset(),
    ) -> None:
        batch, sequence = positive_integer("batch", batch), positive_integer("sequence", sequence)
        asked: dict[str, Any] = {"batch": batch, "sequence": sequence, "stack": stack}
        asked |= {"images": images} if images else {}
        asked |= {"forward_only": True} if forward_only else {}
        self.images = images
        super().__init__(model, system, plan, values=values, free=free, **asked)
        self.batch, self.sequence, self.plan = batch, sequence, plan.with_micro_batch(1)
        own = dict(self.own)
        encoder = int(own.pop("encoder_sequence")) if "encoder_sequence" in own else None
        self.warnings = tuple(check(self.plan, self.model, self.system, batch, sequence, encoder, images))
        self.warnings += widening(self.system, precision_asked(self.plan, self.system))
        self.structure = structure_of(self.model, self.system, self.plan, stated_names(own), images)
        if forward_only:
            self.structure = without_training(self.structure, self.model)
        flash, media = self.structure.attention == "flash", bool(images)
        self.warnings += check_documents(self.model, own, sequence, flash=flash, images=media)
        if self.structure.attention == "flash" and self.structure.modules == ("core_attn",):
            self.warnings += ("selective recomputation saves nothing with flash attention, which keeps no scores",)
        self.warnings += tuple(alignment_warnings(self.model, self.structure.misaligned, self.plan.tp))
        self.bound = bind(self.model, self.system, self.plan, batch, sequence, own, encoder)

    def _equip(self, system: System, plan: Plan) -> System:
        stack = self.question["stack"]
        if stack is None:
            return system
        from ..systems.software import Software

        del plan
        return Software.load(stack).on(system)

    @property
    def software_measured(self) -> bool:
        """Whether steps of its software were measured on its system: those of one node, so that more are not."""
        host = self.system.software.get("host_latency")
        measured = host is not None and host.source.startswith("calibrated")
        inside = self.plan.devices <= self.bound["scale_up_size"][0]
        return measured and inside and bool(set(measured_systems()) & set(self.system.lineage))

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

    def quantities(self) -> dict[str, Quantity]:
        """The quantities of the system and of the training software, by name."""
        return {**super().quantities(), **self.system.software}

    def _memory_program(self) -> Program:
        return memory_program(self.structure)

    @property
    def needed_bytes(self) -> float:
        """Bytes that a device must have: its tensors, and what allocator, driver and libraries hold beside them."""
        return self.value("reserved")

    def needed_alone(self) -> float:
        """The same without compiling the rest of the step."""
        program = self._memory_program()
        inputs = {name: value for name, (value, _) in self.bound.items()}
        return float(evaluate(program, inputs, floats())[program.outputs["reserved"]])

    def reserved_parts(self) -> dict[str, float]:
        """Bytes that a device holds beside its tensors, by name."""
        names = [name for name in self.compiled.program.outputs if name.startswith("beside/")]
        return {name.removeprefix("beside/"): self.value(name) for name in names}
