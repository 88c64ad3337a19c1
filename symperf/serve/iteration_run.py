"""`IterationRun`: a saturated iteration of continuous batching as a run, so that the algebra can be asked about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from ..common.artefacts import load_or_make_program
from ..common.errors import InputError
from ..infer.binding import INFERENCE_LIMITS, Work, bind, bound_from
from ..infer.formats import format_of
from ..infer.room import Room
from ..infer.rules import check, require_decoder
from ..infer.stack import DEFAULT, Stack
from ..infer.stored import stored_format
from ..infer.structure import InferenceStructure, structure_of
from ..operations.compiled import load_or_compile
from ..plans.plan import positive_integer
from ..runs.full_run import FullRun
from ..systems.system_symbols import Limits
from ..systems.units import UnitKind
from ..train.inputs import MODEL_SIZES, Settable

if TYPE_CHECKING:
    import os

    from ..codegen.program import Program
    from ..infer.adapter_slots import Adapters
    from ..models.model import Model
    from ..operations.compiled import Compiled
    from ..operations.schedule import Node
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity

WORK = ("prompt", "generate", "concurrency", "chunk")
OPTIONS = ("stack", "kv_precision")
SEQUENCES = Limits(UnitKind("number of sequences", "64", {"": 1.0}, ("",)), 1e-3, 1e9)
"""What a mean number of sequences may be; it need not be whole."""


@dataclass(frozen=True)
class IterationStructure:
    """The structural choices of an iteration: those of the inference whose layers it runs."""

    inference: InferenceStructure

    def key(self) -> str:
        """The structure as canonical text."""
        return self.inference.key()


@lru_cache(maxsize=32)
def compile_iteration(structure: IterationStructure) -> Compiled:
    """The compiled form of a structure: from this process, from the cache folder, or built now and kept there."""

    def make() -> Compiled:
        from .iteration_forms import build

        return build(structure.inference)

    return load_or_compile("iteration", structure.key(), make)


class IterationRun(FullRun):
    """The mean iteration of a saturated replica: every decoding sequence gets a token, and new prompts replace old.

    The time of an iteration is the time per token of a sequence. Waits of requests that arrive at random are not in it:
    `symperf.serving` answers about those.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how a replica is laid out, and how many there are (`dp`).
        prompt: tokens of each prompt.
        generate: tokens generated for each; at least 2.
        concurrency: sequences that a replica decodes at once; by default as many as its memory
            holds, as prefill can keep decoding, and as the software runs.
        max_num_seqs: sequences that the software runs at once; by default its own, 0: no limit.
        chunk: prompt tokens that an iteration may process; by default those of the software.
        stack: name of a serving software's profile, or the path of one.
        kv_precision: format of the cache; by default 16 bits.
        adapters: of requests, which linear layers have beside them.
        values: values of other symbols, by name.
        free: names of symbols that stay symbols.

    Raises:
        InputError: an impossible plan, an unknown name, a value out of range, or memory for not one sequence.
    """

    settable = Settable(MODEL_SIZES, {**INFERENCE_LIMITS, "decoding": SEQUENCES}, (*WORK, *OPTIONS))

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        prompt: int,
        generate: int,
        concurrency: int | None = None,
        max_num_seqs: int | None = None,
        chunk: int | None = None,
        stack: str | os.PathLike[str] = DEFAULT,
        kv_precision: str | None = None,
        adapters: Adapters | None = None,
        values: dict[str, Any] | None = None,
        free: frozenset[str] = frozenset(),
    ) -> None:
        require_decoder(model)
        self.work = Work(plan.dp, positive_integer("prompt", prompt), positive_integer("generate", generate, lowest=2))
        if chunk is not None:
            chunk = positive_integer("chunk", chunk)
        if concurrency is not None:
            positive_integer("concurrency", concurrency)
        self.stack, self.kv_precision = Stack.load(stack), kv_precision
        asked: dict[str, Any] = {"prompt": prompt, "generate": generate, "concurrency": concurrency, "chunk": chunk}
        asked |= {"stack": stack, "kv_precision": kv_precision}
        asked |= {} if adapters is None else {"adapters": adapters}
        asked |= {} if max_num_seqs is None else {"max_num_seqs": max_num_seqs}
        stored = stored_format(plan, model, lambda other: self.stack.on(system, other))
        super().__init__(model, system, stored.plan, values=values, free=free, **asked)
        decoding = self.own.pop("decoding", None)
        self.stored = stored = stored.with_figures(self.figures)
        # What the plan leaves open stays open for the next question.
        self.base_plan, cache = plan, stored.cache if kv_precision is None else kv_precision
        self.plan = stored.plan.with_micro_batch(1)
        self.warnings = check(self.plan, self.model, self.system, self.work) + stored.note
        inference = structure_of(self.model, self.system, self.plan, self.stack, self.own, stored)
        if adapters is not None:
            inference = dataclasses.replace(inference, adapted=adapters.targets)
        self.structure = IterationStructure(inference)
        self.bound = bind(self.model, self.system, self.plan, self.work, self.stack, cache, self.own, stored)
        self.bound |= {} if adapters is None else adapters.bound()
        self.bound |= {
            **({} if chunk is None else {"chunk": (float(chunk), "asked for")}),
            **({"max_num_seqs": (float(max_num_seqs), "asked for")} if max_num_seqs else {}),
            "step_tokens": (1.0, "no tokens are drafted"),
            "prefilling_ranks": (1.0, "every replica prefills"),
            "groups_in_flight": (float(plan.pp), "one group of sequences for each stage"),
            "decoding": (1.0, "one sequence"),
        }
        if decoding is not None:
            self.bound["decoding"] = (decoding, "set by the user")
        elif concurrency is not None:
            self._spread(concurrency, "asked for")
        else:
            most = {
                "memory holds": self.fitting_sequences(),
                "prefill keeps": self.kept_sequences(),
                **({} if (running := self.most_running()) is None else {f"{self.stack.name} runs": running}),
            }
            why = min(most, key=lambda name: most[name])
            self._spread(most[why], f"as many as {why}")
        decoded = self.bound["decoding"][0] * self.bound["groups_in_flight"][0]
        if decoded > self.kept_sequences():
            kept = self.kept_sequences()
            self.warnings += (f"full chunks of prompts keep {kept} sequences decoding: more end than prompts replace",)

    def _spread(self, sequences: int, why: str) -> None:
        """Deal the sequences of a replica to the groups of its pipeline."""
        groups = min(self.plan.pp, sequences)
        self.bound["groups_in_flight"] = (float(groups), f"{why}: {sequences} sequences, one group for each stage")
        self.bound["decoding"] = (sequences / groups, f"{why}: {sequences} sequences of a replica")

    def _equip(self, system: System, plan: Plan) -> System:
        return self.stack.on(system, plan)

    @staticmethod
    def _rate_precision(plan: Plan, system: System) -> str:
        return format_of(plan, system)[2]

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        return compile_iteration(self.structure)

    def schedule_tree(self) -> Node:
        """The schedule tree of the iteration."""
        from .iteration_forms import iteration

        return iteration(self.structure.inference)

    def memory_forms(self) -> dict[str, Any]:
        """The closed form of every named term of the memory."""
        from .iteration_forms import memory_terms

        return memory_terms(self.structure.inference)

    def metric_forms(self, time: Any) -> dict[str, Any]:
        """Closed forms of the other answers, given the time of an iteration."""
        from .iteration_forms import metrics

        return metrics(self.structure.inference, time)

    def quantities(self) -> dict[str, Quantity]:
        """The quantities of the system and of the serving software, by name."""
        formats = self.stack.sent_in(format_of(self.plan, self.system)[0])
        return bound_from({**super().quantities(), **self.stack.quantities, **formats}, self.bound, self.stored)

    def _memory_program(self) -> Program:
        def make() -> Program:
            import sympy

            from ..codegen.lower import lower

            return lower([], {"memory": sympy.Add(*self.memory_forms().values())})

        return load_or_make_program("iteration memory", self.structure.key(), make)

    def fitting_sequences(self) -> int:
        """Sequences of this prompt and generation that the memory of one replica holds.

        Raises:
            InputError: not one.
        """
        room = self.room()
        if not room.sequences:
            raise InputError(
                f"serve: {self.model.name} with one sequence takes {(room.fixed + room.each) / 1e9:.4g} GB a device, "
                f"{self.system.name} has {room.capacity / 1e9:.4g} GB, of which {self.stack.name} takes a part of "
                f"{room.utilization:g}; expected a larger tp or pp"
            )
        return room.sequences

    def most_running(self) -> int | None:
        """Sequences that the software runs at once in a replica, at most; None where only memory limits them."""
        if (asked := self.question.get("max_num_seqs")) is not None:
            return int(asked) or None
        return self.stack.running.most(self.bound["max_num_seqs"][0], self.room().kv_tokens, self.model.context)

    def room(self) -> Room:
        """What fits on the devices of a replica."""
        return Room.of(self.structure.inference, {name: value for name, (value, _) in self.bound.items()})

    @property
    def fits(self) -> bool:
        """Whether a device holds the sequences that are decoded, with what the software leaves free."""
        return self.room().fits(self.bound["decoding"][0] * self.bound["groups_in_flight"][0])

    def kept_sequences(self) -> int:
        """Sequences of a replica that full chunks of prompts keep decoding: (s_g - 1) J / K of each group, at least 1.

        A sequence decodes for s_g - 1 iterations, and a full chunk ends J / K prompts (`saturated_chunk_tokens`).
        """
        prompt, chunk = self.work.prompt, int(self.bound["chunk"][0])
        together, parts = max(1, chunk // prompt), -(-prompt // chunk)
        return max(1, self.plan.pp * (self.work.generate - 1) * together // parts)

    @property
    def _tokens(self) -> float:
        """Tokens that an iteration generates, of all replicas."""
        return self.value("tokens_per_s") * self.value("time")

    def told_energies(self) -> tuple[str, ...] | None:
        """No energy is told of one iteration.

        Raises:
            InputError: always.
        """
        raise InputError("energy: an iteration of serving has none of its own, expected a question about time or cost")
