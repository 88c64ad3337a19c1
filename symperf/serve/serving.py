"""`Serving`: a model on a system under a plan, with requests that arrive at random."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from ..infer.binding import HOST
from ..infer.parallel_rules import replicas_of_experts
from ..infer.room import longest_context
from ..infer.rules import IDLE_MODULES, require_decoder, require_one_stage
from ..infer.stack import DEFAULT
from ..runs.inference_run import InferenceRun
from .apart import beside
from .differing import Differing, check_images
from .engine import WAY, Engine, ModelTimes
from .images import PromptImages, TimesWithImages
from .limits import Largest, Targets, largest_load
from .memory import room_of
from .point import LoadPoint, point
from .pools import Pools, pools, transfer_time
from .program import VARIABLES, Evaluator, compile_iterations, form
from .request import CHUNK
from .speculation import best_length, draft_plan, expected_tokens
from .steady import Steady

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..infer.adapter_slots import Adapters
    from ..infer.room import Room
    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System
    from .engine import Times
    from .iteration_run import IterationRun
    from .loop_point import LoopAnswer
    from .replay import Replay
    from .request import ServingRequest
    from .trace import Trace

CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Loads of the throughput-latency curve, over the capacity."""
DRAFTS = range(1, 17)
"""Draft lengths among which the best is sought."""


class Serving:
    """Continuous batching with chunked prefill in a steady state.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how a replica is laid out, and how many there are (`dp`).
        asked: the requests, targets and policy.
        draft: a draft model for speculative decoding, or a head (`models/draft_heads.py`); it runs on the same
            devices under the same plan.
        trace: recorded requests, of whose means `asked` is; they can be replayed.
        stack: name of a serving software's profile, or the path of one.
        kv_precision: format of the cache; by default 16 bits.
        adapters: of requests; a draft model has none.
        values: values of other symbols, by name.
        prefill: how a pool that prefills differs, beside which this one only decodes; see `apart.beside`.

    Raises:
        InputError: an impossible plan, an unknown name or a value out of range.
    """

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        asked: ServingRequest,
        *,
        draft: Model | None = None,
        trace: Trace | None = None,
        stack: str | os.PathLike[str] = DEFAULT,
        kv_precision: str | None = None,
        adapters: Adapters | None = None,
        values: dict[str, Any] | None = None,
        prefill: str | None = None,
    ) -> None:
        asked.check_draft(drafted=draft is not None)
        require_decoder(model)
        if draft is not None:
            require_decoder(draft)
            require_one_stage(draft, plan)
        ignored = () if plan.micro_batch is None else ("micro_batch: means nothing in serving and is ignored",)
        plan = dataclasses.replace(plan, micro_batch=None)
        self.plan = plan
        check_images(asked)
        self.trace = trace
        more, generate = Differing(asked, trace).longest
        work: dict[str, Any] = {"batch": plan.dp, "prompt": asked.prompt + more, "generate": generate}
        options: dict[str, Any] = {"stack": stack, "kv_precision": kv_precision, "values": values}
        self.run = InferenceRun(model, system, plan, **work, **options, images=asked.images, adapters=adapters)
        usual = self.run.stack.chunk.on(self.run.system) or CHUNK
        work["prompt"] = self.run.work.prompt
        self.asked = asked = dataclasses.replace(asked, prompt=work["prompt"] - more, chunk=asked.chunk or usual)
        self.requests = Differing(asked, trace)
        # Nothing of what drafts is on the host.
        options["values"] = {name: value for name, value in (values or {}).items() if name not in HOST}
        self.draft = None if draft is None else InferenceRun(draft, system, draft_plan(plan, draft), **work, **options)
        told = [each for each in self.run.warnings if self.draft is None or self.drafts_apart or each != IDLE_MODULES]
        self.warnings = (*told, *(self.draft.warnings if self.draft else ()), *ignored)
        if (
            self.drafts_apart
            and self.draft is not None
            and self.draft.model.sizes["vocab_size"] != self.run.model.sizes["vocab_size"]
        ):
            self.warnings += ("the draft model has another vocabulary: its tokens are not the model's",)
        self.targets = Targets(asked.ttft, asked.tpot)
        self.chunk = float(asked.chunk or usual)
        self.chunks = math.ceil(form("prompt_chunks", prompt=asked.prompt, chunk=self.chunk))
        self.chunk_prompts = int(form("prompts_of_a_chunk", prompt=asked.prompt, chunk=self.chunk))
        self.apart = None if prefill is None else beside(self, prefill)

    # --- the engine

    @cached_property
    def draft_length(self) -> int:
        """Tokens drafted for each step: those asked for, or the best at one sequence; 0 without a draft model."""
        if self.draft is None:
            return 0
        return self.asked.draft_length or self.best_draft_length

    @cached_property
    def best_draft_length(self) -> int:
        """The draft length of the least time per token of a request alone."""
        return best_length(DRAFTS, lambda k: self.times(k).decode(1.0) / self.tokens_of_a_step(k))

    @property
    def drafts_apart(self) -> bool:
        """Whether a model of its own drafts, and no head that reads the model's hidden states."""
        return self.draft is not None and self.draft.model.architecture.draft_head == "none"

    def tokens_of_a_step(self, length: int) -> float:
        """Mean tokens that a step of so many drafted ones yields; 1 of a step that drafts none."""
        if not length:
            return 1.0
        assert self.asked.acceptance is not None
        return expected_tokens(self.asked.acceptance, length)

    @cached_property
    def evaluators(self) -> list[Evaluator]:
        """The iterations of the model, and of the draft model where there is one."""
        return [self._evaluator(run) for run in (self.run, self.draft) if run is not None]

    def _evaluator(self, run: InferenceRun) -> Evaluator:
        inputs = self._inputs(run)
        if self.requests.alike:
            return Evaluator(compile_iterations(run.structure).program, inputs)
        program = compile_iterations(run.structure, differing=True).program
        return Evaluator(program, inputs | self.requests.iteration_inputs())

    @cached_property
    def holders(self) -> list[Evaluator]:
        """The memory of the model, and of the draft model where there is one, for what each sequence holds."""
        if self.requests.alike:
            return self.evaluators
        held = self.requests.memory_inputs()
        return [Evaluator(each.program, each.inputs | held) for each in self.evaluators]

    def _inputs(self, run: InferenceRun) -> dict[str, float]:
        """The value of every input of an iteration; those that differ from one to another are replaced."""
        own: dict[str, float] = dict.fromkeys(VARIABLES, 1.0) | {"chunks": self.chunks, "chunk": self.chunk}
        return {name: value for name, (value, _) in run.bound.items()} | own

    def times(self, length: int) -> Times:
        """The iterations with a draft length; 0: without a draft model."""
        target, draft = self.evaluators[0], self.evaluators[1] if length else None
        reads = 1.0 if self.drafts_apart else length + 1.0
        times = ModelTimes(target, self.plan.pp, draft, length, reads, self.run.stack.apart)
        if self.images is None:
            return times
        return TimesWithImages(times, self.images, self.prefilled, self.plan.pp)

    @property
    def prefilled(self) -> float:
        """Mean tokens of a prompt that are prefilled."""
        mix = self.requests.mix
        return self.asked.prompt if mix is None else mix.tokens

    @cached_property
    def images(self) -> PromptImages | None:
        """The encoder's passes over the images of prompts, where there are any."""
        return PromptImages(self.run, int(self.chunk)) if self.run.images else None

    def room(self, length: int, **values: float) -> Room:
        """What fits on the devices of a replica, at other values of some symbols where they are given."""
        return room_of(self, length, values)

    def memory(self, length: int) -> dict[str, float]:
        """Bytes on the fullest device: weights, all that is always there, and what each sequence takes."""
        found = self.room(length)
        return {"weights": found.weights, "fixed": found.fixed, "sequence": found.each}

    def longest_context(self, sequences: int = 1) -> int | None:
        """The most tokens of a context of which so many sequences fit; 0 where none do, None where all do."""
        length = self.draft_length
        return longest_context(lambda prompt: self.room(length, prompt=float(prompt)), sequences, self.asked.generate)

    def cache_bytes(self, what: str) -> float:
        """Bytes of the cache on one device: "sequence" (of its whole length), "prompt" or "mean"."""
        return sum(each(f"cache/{what}") for each in self.holders)

    def limit(self, length: int) -> int:
        """Sequences that a replica may run at once; 0 where the model does not fit."""
        held, most = self.held(length), self.most_running(length)
        return held if most is None else min(held, most)

    def most_running(self, length: int) -> int | None:
        """Sequences that the software runs at once in a replica, at most; None where only memory limits them."""
        if (asked := self.asked.workload.max_num_seqs) is not None:
            return asked or None
        reserved = self.run.bound["max_num_seqs"][0]
        return self.run.stack.running.most(reserved, self.room(length).kv_tokens, self.run.model.context)

    def held(self, length: int) -> int:
        """Sequences that the memory of a replica holds; 0 where the model does not fit."""
        return self.room(length).sequences

    @property
    def capacity_bytes(self) -> float:
        """Bytes of memory of a device."""
        return self.run.bound["memory_capacity"][0]

    def engine(self, length: int) -> Engine:
        """A replica with a draft length."""
        limit, mix = self.limit(length), self.requests.mix
        packed: float = self.chunk_prompts if mix is None else mix.packed
        return Engine(
            self.times(length),
            self.asked.prompt if mix is None else mix.tokens,
            self.asked.generate,
            (self.asked.generate - 1) / self.tokens_of_a_step(length),
            self.chunks if mix is None else mix.chunks,
            max(1, min(packed, limit // self.plan.pp)),
            self.plan.pp,
            limit,
            generate_ratio=self.asked.workload.generate_spread,
            chunk=self.chunk,
            limited_by="kv_cache" if limit == self.held(length) else "max_num_seqs",
            ranks=self.lockstep_ranks,
            mix=mix,
            way={name: self.run.bound[name][0] for name in WAY},
        )

    @property
    def lockstep_ranks(self) -> int:
        """Replicas that begin every iteration together: those whose tokens pass the same experts."""
        return replicas_of_experts(self.plan, self.run.model)

    @cached_property
    def steady(self) -> Steady | None:
        """The steady states of a replica; None where not one sequence fits."""
        return Steady(self.engine(self.draft_length)) if self.fits else None

    @property
    def fits(self) -> bool:
        """Whether a device holds its part of the model and of one sequence."""
        return self.limit(self.draft_length) > 0

    # --- answers

    @cached_property
    def largest(self) -> Largest | None:
        """The largest load of a replica within the targets; None where the model does not fit."""
        if self.steady is None:
            return None
        return largest_load(self.steady, self.targets, self.steps_per_token)

    @property
    def steps_per_token(self) -> float:
        """Decode steps for each later token: fewer than one where tokens are drafted."""
        return 1 / self.tokens_of_a_step(self.draft_length)

    def point(self, load: float) -> LoadPoint:
        """All answers at a load, requests a second at all replicas."""
        return point(self, load)

    @cached_property
    def answer(self) -> LoadPoint | None:
        """The answers at the load that is asked for, or else at the largest.

        None where there is none, or the largest is the capacity, where waits have no bound.
        """
        if self.loop is not None:
            return self.loop[0]
        if self.asked.load is not None:
            return self.point(self.asked.load) if self.fits else None
        if self.largest is None or self.largest.load is None or self.largest.state is None:
            return None
        return self.point(self.largest.load * self.plan.dp)

    @cached_property
    def loop(self) -> tuple[LoadPoint, LoopAnswer] | None:
        """The answers for a number of requests in flight or at once; None where neither is asked for, or none fits."""
        if not self.fits or self.asked.workload.loop is None:
            return None
        from .loop_point import loop_point

        return loop_point(self)

    @cached_property
    def curve(self) -> list[LoadPoint]:
        """Points from a light load to nearly the capacity."""
        if self.steady is None:
            return []
        return [self.point(part * self.steady.capacity.load * self.plan.dp) for part in CURVE]

    @cached_property
    def pools(self) -> Pools | None:
        """Prefill and decode on instances of their own."""
        if self.steady is None or (transfer := self.transfer_s) is None:
            return None
        return pools(self.steady.engine, self.targets, transfer, self.plan.dp)

    @property
    def transfer_s(self) -> float | None:
        """Seconds to send a prompt's cache to other devices, over the widest network; None without one."""
        return transfer_time(self.run, self.cache_bytes("prompt"))

    def speculation(self) -> dict[str, float] | None:
        """What drafting brings to a request alone; None without a draft model or later tokens."""
        from .speculative_gain import speculative_gain

        return speculative_gain(self)

    @cached_property
    def replayed(self) -> Replay | None:
        """The trace replayed event by event; None without one, or where the model does not fit."""
        return None if self.trace is None or not self.fits else self.replay()

    def replay(self, told: Callable[[int], None] | None = None) -> Replay:
        """The trace replayed event by event; `told` hears now and then how many requests have ended."""
        from .replay import replay

        self.__dict__["replayed"] = found = replay(self, told)
        return found

    def iteration(self, concurrency: int | None = None) -> IterationRun:
        """The mean iteration of a saturated replica as a run of closed forms, which the algebra can be asked about.

        Args:
            concurrency: sequences that a replica decodes at once; by default as many as its memory holds and
                as prefill can keep decoding.

        Raises:
            InputError: a single token is generated, the model does not fit, or requests have images.
        """
        from .iteration_run import IterationRun as _IterationRun

        run = self.run
        if not self.requests.alike:
            raise InputError("iteration: as a run it has requests that are all alike, expected no spread, no prefix")
        if run.images:
            raise InputError("images: an iteration as a run has no encoder, expected a request without images")
        return _IterationRun(
            run.base_model,
            run.base_system,
            self.plan,
            prompt=self.asked.prompt,
            generate=self.asked.generate,
            concurrency=concurrency,
            max_num_seqs=self.asked.workload.max_num_seqs,
            chunk=self.asked.chunk,
            stack=run.question["stack"],
            kv_precision=run.kv_precision,
            adapters=run.adapters,
            values=run.given,
        )

    def shares(self, found: LoadPoint) -> dict[str, float] | None:
        """The share of each resource in the mean iteration of the model at a point; None where it is saturated."""
        from .resource_shares import shares

        return None if found.state is None else shares(self, found.state)

    def __repr__(self) -> str:
        return f"Serving({self.run.model.name} on {self.run.system.name}, {self.plan}, {self.asked})"
