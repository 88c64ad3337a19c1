"""One step of fine-tuning that runs several models: preferences, distillation, reinforcement learning.

Its time is the sum of phases, which follow one another on the same devices under one plan, as TRL's trainers and verl's
colocated workers have them; their names are verl's (`update_actor`, `ref`, `old_log_prob`, `gen`, `values`, `reward`,
`update_critic`). A reference, a teacher or a reward model runs forward only and holds weights alone; under adapters the
reference is the base, which holds none of its own. Answers are all as long as the sequence leaves them; sampling,
rewards by rule and what moves weights to the serving software take no time.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan import Plan, positive_integer
from ..train.binding import base_values
from .inference_run import InferenceRun
from .training_run import Run

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System


@dataclass(frozen=True)
class Phase:
    """A pass over the step's sequences.

    Attributes:
        name: as verl reports it.
        role: whose model runs: policy, reference, teacher, reward or critic.
        trains: its weights are updated; else it runs forward only, or generates.
    """

    name: str
    role: str
    trains: bool = False


UPDATE = Phase("update_actor", "policy", trains=True)
REFERENCE = Phase("ref", "reference")
GENERATE, OLD = Phase("gen", "policy"), Phase("old_log_prob", "policy")


@dataclass(frozen=True)
class Method:
    """What a step of a method runs.

    Attributes:
        sentence: what it is.
        phases: in order.
        sequences: of each example of the batch: a chosen and a rejected one of a pair.
        options: of `Tuning` that it reads.
    """

    sentence: str
    phases: tuple[Phase, ...]
    sequences: int = 1
    options: tuple[str, ...] = ()


ROLLOUT = ("prompt", "group", "rollout", "reference")
METHODS: dict[str, Method] = {
    "sft": Method("supervised fine-tuning", (UPDATE,)),
    "dpo": Method("direct preference optimization", (REFERENCE, UPDATE), 2, ("reference",)),
    "reward": Method("a reward model from pairs", (Phase("update_reward", "reward", trains=True),), 2),
    "distill": Method("distillation of a teacher's logits", (Phase("teacher", "teacher"), UPDATE), 1, ("teacher",)),
    "grpo": Method("group relative policy optimization", (GENERATE, OLD, REFERENCE, UPDATE), 1, ROLLOUT),
    "ppo": Method(
        "proximal policy optimization",
        (
            *(GENERATE, Phase("reward", "reward"), OLD, REFERENCE, Phase("values", "critic")),
            *(Phase("update_critic", "critic", trains=True), UPDATE),
        ),
        1,
        (*ROLLOUT, "reward_model"),
    ),
}
"""By the names that TRL and verl give them."""
GROUP = {"grpo": 8, "ppo": 1}
"""Answers to a prompt where none are asked for: TRL, GRPOConfig.num_generations; PPO has one."""
STATE = ("weights", "gradients", "optimizer")


@dataclass(frozen=True)
class Timed:
    """A phase by name, with its seconds and its part of the step."""

    name: str
    time_s: float
    share: float


@dataclass(frozen=True)
class Generation:
    """How answers are generated.

    Attributes:
        run: of one wave.
        waves: batches one after another, as many as caches need.
        squeezed: not one sequence has room beside the state of all models.
    """

    run: InferenceRun
    waves: int
    squeezed: bool


class Tuning:
    """A step of a method: its phases, each a run, and what they hold together.

    Args:
        model: the policy.
        system: what all run on.
        plan: how the policy is laid out; other models are as it, without adapters.
        method: one of `METHODS`.
        batch: examples: sequences of sft and distill, pairs of dpo and reward, prompts of grpo and ppo.
        sequence: tokens of a sequence; with a rollout prompt and answer together.
        stack: profile of the training software.
        teacher: of distillation.
        reward_model: of ppo; by default one of the policy's architecture.
        prompt: tokens of a sequence that are a prompt; the rest is generated.
        group: answers to a prompt.
        rollout: what differs while answers are generated, as "plan: tp=2 dp=4, stack: vllm"; by default the
            tensor-parallel degree of the plan, with replicas on all devices.
        reference: whether the loss reads a frozen reference.
        values: of other symbols, of the training runs.

    Raises:
        InputError: an unknown method, what it does not read or lacks, or what a run refuses.
    """

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        method: str,
        batch: int,
        sequence: int,
        stack: Any = None,
        teacher: Model | None = None,
        reward_model: Model | None = None,
        prompt: int | None = None,
        group: int | None = None,
        rollout: str | None = None,
        reference: bool = True,
        values: dict[str, Any] | None = None,
    ) -> None:
        asked = {"teacher": teacher, "reward_model": reward_model, "prompt": prompt, "group": group, "rollout": rollout}
        asked["reference"] = None if reference else False
        self.name, self.method = method, _method(method, asked)
        self.model, self.system, self.plan = model, system, plan
        batch, self.sequence = positive_integer("batch", batch), positive_integer("sequence", sequence)
        self.stack, self.reference, self.values = stack, reference, values or {}
        self.models = {"teacher": teacher, "reward": reward_model}
        self.group = positive_integer("group", group or GROUP.get(method, 1))
        self.prompt = None if prompt is None else _prompt(prompt, self.sequence)
        self.batch = batch * self.group * self.method.sequences
        # A micro-batch counts examples: a pair is one.
        self.laid = dataclasses.replace(plan, micro_batch=(plan.micro_batch or 1) * self.method.sequences)
        self.rollout = rollout

    # --- phases

    @property
    def phases(self) -> tuple[Phase, ...]:
        """What runs, in order."""
        return tuple(each for each in self.method.phases if self.reference or each.role != "reference")

    @cached_property
    def passes(self) -> dict[str, Run]:
        """The run of each phase but the generation, by name."""
        return {phase.name: self._run(phase) for phase in self.phases if phase is not GENERATE}

    @property
    def update(self) -> Run:
        """The last run: it trains the policy, or the reward model."""
        return self.passes[self.phases[-1].name]

    def _run(self, phase: Phase) -> Run:
        model = self.models.get(phase.role) or self.model
        if phase.role in ("reward", "critic"):
            model = _scoring(model)
        plan = self.laid if phase.trains else _without_adapters(self.laid)
        work: dict[str, Any] = {"batch": self.batch, "sequence": self.sequence, "stack": self.stack}
        run = Run(model, self.system, plan, **work, forward_only=not phase.trains, values=self.values)
        if self.laid.base_precision and phase in (OLD, REFERENCE):
            # The base of the adapters, as it is stored.
            run.structure = dataclasses.replace(run.structure, stored=True)
            run.bound |= base_values(self.laid.base_precision)
        return run

    @cached_property
    def timed(self) -> tuple[Timed, ...]:
        """Every phase with its seconds; a generation takes as many waves as its caches need."""
        times = {name: run.value("time") for name, run in self.passes.items()}
        if self.generation:
            times[GENERATE.name] = self.generation.waves * self.generation.run.value("time")
        total = sum(times.values())
        return tuple(Timed(phase.name, times[phase.name], times[phase.name] / total) for phase in self.phases)

    @property
    def time(self) -> float:
        """Seconds of a step."""
        return sum(each.time_s for each in self.timed)

    # --- generation

    @cached_property
    def generation(self) -> Generation | None:
        """How answers are generated; None where there are none."""
        if self.prompt is None:
            return None
        plan, options, values = self._rollout_plan()
        prompt, generate = self.prompt, self.sequence - self.prompt

        def run(batch: int) -> InferenceRun:
            work = {"batch": batch, "prompt": prompt, "generate": generate, **options}
            return InferenceRun(self.model, self.system, plan, **work, values=values)

        one = run(plan.dp)
        left = 1 - self.held / one.bound["memory_capacity"][0]
        fitting = one.room(memory_utilization=min(one.room().utilization or 1.0, left)).sequences if left > 0 else 0
        each = math.ceil(self.batch / plan.dp)
        waves = math.ceil(each / max(fitting or one.fitting_sequences(), 1))
        return Generation(run(math.ceil(each / waves) * plan.dp), waves, squeezed=fitting < 1)

    def _rollout_plan(self) -> tuple[Plan, dict[str, Any], dict[str, Any]]:
        """The plan of the generation, its software, and values of symbols."""
        values: dict[str, Any] = {}
        if self.rollout:
            from ..analysis.choices import parse_choice

            chosen = parse_choice(self.rollout, "rollout")
            if chosen.model or chosen.system:
                raise InputError("rollout: expected a plan or a stack: answers are the policy's, on the same devices")
            values = dict(chosen.values)
        fields = {name: values.pop(name) for name in list(values) if name in Plan.names()}
        fields.setdefault("tp", self.plan.tp)
        fields.setdefault("dp", max(self.plan.devices // fields["tp"], 1))
        plan = Plan(**fields)
        if plan.devices != self.plan.devices:
            raise InputError(f"rollout: found {plan.devices} devices, expected the {self.plan.devices} of the plan")
        return plan, {name: values.pop(name) for name in ("stack",) if name in values}, values

    # --- memory

    @cached_property
    def memory(self) -> dict[str, float]:
        """Bytes on the fullest device: what each model holds all the time, the most that a phase takes more, `total`.

        A teacher's logits wait for the student's. With what allocator, driver and libraries of the update hold beside
        tensors it is `reserved`.
        """
        held: dict[str, float] = {}
        passing, waiting = 0.0, 0.0
        for phase in self.phases:
            if phase is GENERATE:
                continue
            run = self.passes[phase.name]
            state = sum(size for name, size in run.memory_terms().items() if name.split("/")[0] in STATE)
            owner = "policy" if phase.role == "reference" and self.laid.lora_rank else phase.role
            held[owner] = max(held.get(owner, 0.0), state)
            more = run.value("memory") - state
            waiting = more if phase.role == "teacher" else waiting
            passing = max(passing, more + (waiting if phase.trains else 0.0))
        total = sum(held.values()) + passing
        beside = self.update.needed_bytes - self.update.value("memory")
        return {**held, "passing": passing, "total": total, "reserved": total + beside}

    @property
    def held(self) -> float:
        """Bytes that stay on a device while answers are generated."""
        return self.memory["total"] - self.memory["passing"]

    @property
    def fits(self) -> bool:
        """Whether a device holds all: the state of all models, and the largest phase."""
        enough = self.memory["reserved"] <= self.update.bound["memory_capacity"][0]
        return enough and not (self.generation and self.generation.squeezed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is compared that differs, and what would have to move."""
        found = []
        teacher, own = self.models["teacher"], self.model.sizes["vocab_size"]
        if teacher is not None and teacher.sizes["vocab_size"] != own:
            theirs = teacher.sizes["vocab_size"]
            found.append(f"the teacher has {theirs} words and {self.model.name} {own}: logits are compared by word")
        if self.generation and self.generation.squeezed:
            found.append(
                "state leaves no room for caches: answers are generated as if it were on the host (verl's "
                "param_offload and optimizer_offload), and its transfers are not counted"
            )
        return tuple(found)


def _method(name: str, asked: dict[str, Any]) -> Method:
    """The method of a name, with the options that are given.

    Raises:
        InputError: an unknown name, an option that it does not read, or one that it lacks.
    """
    if name not in METHODS:
        hint = nearest(name, METHODS) if isinstance(name, str) else ""
        raise InputError(f"method: found {quote(name)}, expected {' or '.join(METHODS)}{hint}")
    method = METHODS[name]
    for option, value in asked.items():
        if value is not None and option not in method.options:
            readers = " or ".join(other for other, each in METHODS.items() if option in each.options)
            raise InputError(f"{option}: means nothing to method {name}, expected method {readers}")
    for option in ("teacher", "prompt"):
        if option in method.options and asked[option] is None:
            what = "the model whose logits are learned" if option == "teacher" else "tokens of each prompt"
            raise InputError(f"{option}: method {name} needs {what}; add --{option}")
    return method


def _prompt(prompt: int, sequence: int) -> int:
    found = positive_integer("prompt", prompt)
    if found >= sequence:
        raise InputError(f"prompt: found {found}, expected less than the {sequence} tokens of a sequence (--sequence)")
    return found


def _scoring(model: Model) -> Model:
    """A model with one score in the place of logits, whose product takes no time."""
    if model.architecture.head == "none":
        return model
    architecture = dataclasses.replace(model.architecture, head="none")
    return dataclasses.replace(model, architecture=architecture, name=f"{model.name} with a score")


def _without_adapters(plan: Plan) -> Plan:
    """A plan of a model that runs forward only."""
    return dataclasses.replace(plan, lora_rank=None, lora_targets=None, dora=False, base_precision=None, freeze=None)
