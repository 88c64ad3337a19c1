"""`InferenceRun`: prefill and generation of a batch on a system under a plan."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import floats
from ..codegen.interpret import run as evaluate
from ..evaluation.base_run import ALIASES
from ..evaluation.causes import INFERENCE
from ..evaluation.rows import Rows
from ..infer.binding import INFERENCE_LIMITS, Work, bind, bound_from
from ..infer.compile import compile_inference, inference_memory_program
from ..infer.formats import format_of
from ..infer.prefix_rules import checked_prefix, prefix_bound
from ..infer.reached import strange
from ..infer.room import Room, longest_context
from ..infer.rules import check
from ..infer.scheduling import local_batch
from ..infer.stack import DEFAULT, Stack
from ..infer.stored import stored_format
from ..infer.structure import structure_of
from ..plans.alignment import alignment_warnings
from ..plans.plan import positive_integer
from ..train.inputs import MODEL_SIZES, Settable
from .encoding import Encoding, image_tokens
from .encoding_energy import with_encoder
from .full_run import FullRun
from .operation import Operation

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..evaluation.rows import Row
    from ..infer.adapter_slots import Adapters
    from ..models.model import Model
    from ..models.sounds import Sound
    from ..models.towers import Image
    from ..operations.compiled import Compiled
    from ..operations.schedule import Node
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity

WORK = ("batch", "prompt", "generate")
OPTIONS = ("stack", "kv_precision")
WITH_ENCODER = ("time", "memory", "needed", "tokens_per_s", "tokens_per_s_per_device")
"""Answers that the encoder of images changes."""


class InferenceRun(FullRun):
    """The cost of a batch of prompts and of what is generated for them, symbolic and bound.

    With images, values, breakdown, shares, intervals, memory and spending include their encoder's pass, which comes
    before the prefill; closed forms, and the questions about them, are of prefill and decode alone.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how it is laid out; what only training has is ignored, with a warning.
        batch: sequences, over all replicas.
        prompt: tokens of each prompt, beside those of images.
        generate: tokens generated for each; prefill yields the first.
        stack: name of a serving software's profile, or the path of one.
        kv_precision: format of the cache; by default 16 bits.
        prefix: first tokens of each prompt that are in the cache, which are attended to and not prefilled again.
        adapters: of requests, which linear layers have beside them (`infer.adapter_slots.adapters_of`).
        images: of each sequence, and recordings, whose tokens join those of the prompt; see `encoding`.
        values: values of other symbols, by name.
        free: names of symbols that stay symbols.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """

    settable = Settable(MODEL_SIZES, INFERENCE_LIMITS, (*WORK, *OPTIONS))
    kind = INFERENCE

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        batch: int,
        prompt: int,
        generate: int,
        stack: str | os.PathLike[str] = DEFAULT,
        kv_precision: str | None = None,
        images: tuple[Image | Sound, ...] = (),
        adapters: Adapters | None = None,
        prefix: int = 0,
        values: dict[str, Any] | None = None,
        free: frozenset[str] = frozenset(),
    ) -> None:
        text = positive_integer("prompt", prompt)
        self.images = images
        self.work = Work(
            positive_integer("batch", batch), text + image_tokens(model, images), positive_integer("generate", generate)
        )
        self.stack, self.kv_precision = Stack.load(stack), kv_precision
        asked = dataclasses.asdict(self.work) | {"prompt": text, "stack": stack, "kv_precision": kv_precision}
        asked |= {"images": images} if images else {}
        asked |= {"adapters": adapters} if adapters else {}
        self.adapters, self.prefix = adapters, checked_prefix(prefix, self.work.prompt, model, plan)
        asked |= {"prefix": self.prefix} if self.prefix else {}
        stored = stored_format(plan, model, lambda other: self.stack.on(system, other))
        super().__init__(model, system, stored.plan, values=values, free=free, **asked)
        self.stored = stored = stored.with_figures(self.figures)
        # What the plan leaves open stays open for the next question.
        self.base_plan, cache = plan, stored.cache if kv_precision is None else kv_precision
        each = max(self.work.batch // plan.dp, 1)
        self.plan = stored.plan.with_micro_batch(local_batch(each, self.work.prompt, plan.pp, self.stack.stage_tokens))
        self.warnings = check(self.plan, self.model, self.system, self.work) + stored.note
        self.warnings += strange(self.system, self.stack.reached)
        self.structure = structure_of(self.model, self.system, self.plan, self.stack, self.own, stored)
        if self.prefix:
            self.structure = dataclasses.replace(self.structure, prefixed=True)
        if adapters is not None:
            self.structure = dataclasses.replace(self.structure, adapted=adapters.targets)
            if self.model.architecture.routed and "experts" not in adapters.targets:
                self.warnings += (
                    "adapters: routed experts have none unless they are asked for (lora_targets: experts)",
                )
        self.warnings += tuple(alignment_warnings(self.model, self.structure.misaligned, self.plan.tp))
        self.bound = bind(self.model, self.system, self.plan, self.work, self.stack, cache, self.own, stored)
        self.bound |= prefix_bound(self.prefix, self.work.prompt) | ({} if adapters is None else adapters.bound())

    def _equip(self, system: System, plan: Plan) -> System:
        return self.stack.on(system, plan)

    @staticmethod
    def _rate_precision(plan: Plan, system: System) -> str:
        return format_of(plan, system)[2]

    @property
    def software_measured(self) -> bool:
        """Whether the kernels of its serving software were measured on its system."""
        return any(name in self.stack.reached for name in self.system.lineage)

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        return compile_inference(self.structure)

    def schedule_tree(self) -> Node:
        """The schedule tree of both phases."""
        from ..infer.build import tree

        return tree(self.structure)

    def memory_forms(self) -> dict[str, Any]:
        """The closed form of every named term of the memory."""
        from ..infer.footprint import footprint

        return footprint(self.structure)

    def quantities(self) -> dict[str, Quantity]:
        """The quantities of the system and of the serving software, by name."""
        formats = self.stack.sent_in(format_of(self.plan, self.system)[0])
        return bound_from({**super().quantities(), **self.stack.quantities, **formats}, self.bound, self.stored)

    def _memory_program(self) -> Program:
        return inference_memory_program(self.structure)

    # --- answers that include the encoder of images

    @cached_property
    def encoding(self) -> Encoding | None:
        """The pass of the images through their encoder, where there are any."""
        return Encoding(self, self.images) if self.images else None

    def value(self, name: str) -> float:
        """One number, as of `FullRun.value`; time, throughput and memory include the encoder of images."""
        found, key = super().value(name), ALIASES.get(name, name)
        if self.encoding is None or key not in WITH_ENCODER:
            return found
        if key in ("memory", "needed"):
            return found + sum(self._encoder_bytes)
        alone = super().value("time")
        return alone + self.encoding.time_s if key == "time" else found * alone / (alone + self.encoding.time_s)

    def value_at(self, name: str, changed: Mapping[str, float]) -> float:
        """An answer where symbols have other values."""
        found = super().value_at(name, changed)
        if self.encoding is None or name not in WITH_ENCODER or name in ("memory", "needed"):
            return found
        alone, encoder = super().value_at("time", changed), self.encoding.time_at(changed)
        return alone + encoder if name == "time" else found * alone / (alone + encoder)

    @property
    def _encoder_bytes(self) -> tuple[float, float]:
        """Bytes of the encoder's weights, and of its activations beyond those of the language model."""
        assert self.encoding is not None
        own = super().memory_terms()["activations"]
        return self.encoding.weight_bytes, max(0.0, self.encoding.activation_bytes - own)

    def memory_terms(self) -> dict[str, float]:
        """Bytes on the fullest device by named term; activations are those of the encoder or of the language model."""
        found = super().memory_terms()
        if self.encoding is not None:
            found["weights/encoder"], more = self._encoder_bytes
            found["activations"] += more
        return found

    def table(self) -> Rows:
        """The breakdown as of `BaseRun.table`, the terms of the encoder first."""
        found = super().table()
        return found if self.encoding is None else Rows([*self.encoding.rows(self.value("time")), *found])

    def shares(self) -> dict[str, float]:
        """The exact share of the time that each resource is responsible for; they sum to 1."""
        found = super().shares()
        if self.encoding is None:
            return found
        part, encoder = self.encoding.time_s / self.value("time"), self.encoding.shares()
        names = dict.fromkeys((*found, *encoder))
        return {name: (1 - part) * found.get(name, 0.0) + part * encoder.get(name, 0.0) for name in names}

    @cached_property
    def _spent(self) -> dict[str, float]:
        found = super()._spent
        return found if self.encoding is None else with_encoder(found, self.encoding)

    # --- what only an inference can tell

    def operations(self) -> list[Operation]:
        """Every operation of each phase with its shape, executions, seconds and bound."""
        before = [] if self.encoding is None else self.encoding.operations()
        return before + [self._operation(row) for row in super().table()]

    def _operation(self, row: Row) -> Operation:
        phase, _, name = row.name.partition("/")
        outputs = self.compiled.program.outputs
        shape = {
            letter: math.ceil(self.value(key)) if (key := f"term/{row.name}/{letter}") in outputs else None
            for letter in "mnk"
        }
        return Operation(phase, name, **shape, count=row.count, time_s=row.time_s, bound=row.bound)

    @property
    def needed_bytes(self) -> float:
        """Bytes that a device must have: those that are used, and those that the software leaves free."""
        return self.value("needed")

    def needed_alone(self) -> float:
        """Bytes that a device must have, without compiling the rest of the inference."""
        program = self._memory_program()
        inputs = {name: value for name, (value, _) in self.bound.items()}
        return float(evaluate(program, inputs, floats())[program.outputs["needed"]])

    def room(self, **values: float) -> Room:
        """What fits beside the language model on a replica, at other values of some symbols where they are given."""
        found = Room.of(self.structure, {name: value for name, (value, _) in self.bound.items()} | values)
        if self.base_plan.micro_batch is None:
            return found
        # Prompts are prefilled some at a time, where the plan says how many.
        some = found.prompt * self.base_plan.micro_batch
        return dataclasses.replace(found, prompt=0.0, reserved=found.reserved + some)

    def fitting_sequences(self) -> int:
        """Sequences of this prompt and generation that the memory of one replica holds; 0 where not one fits."""
        return self._whole_room().sequences

    def _whole_room(self, **values: float) -> Room:
        """The room beside the encoder of images too."""
        found = self.room(**values)
        if self.encoding is None:
            return found
        weights, more = self._encoder_bytes
        return dataclasses.replace(found, weights=found.weights + weights, reserved=found.reserved + more)

    def longest_context(self, sequences: int = 1) -> int | None:
        """The most tokens of a context of which so many sequences fit; 0 where none do, None where all do."""
        return longest_context(lambda prompt: self._whole_room(prompt=float(prompt)), sequences, self.work.generate)

    def host_memory(self) -> dict[str, float]:
        """Bytes that the host keeps for one device, by what is offloaded, and their `total`."""
        names = [name for name in self.compiled.program.outputs if name.startswith("host/")]
        return {name.removeprefix("host/"): self.value(name) for name in names}

    @property
    def generates(self) -> bool:
        """Whether tokens are generated; an encoder alone has no decode step and no time of one."""
        return bool(self.structure.generates)

    def __repr__(self) -> str:
        work = ", ".join(f"{name}={getattr(self.work, name)}" for name in WORK)
        return f"InferenceRun({self.model.name} on {self.system.name}, {self.plan}, {work}, stack={self.stack.name})"
