"""The space of a search for inference: what each choice may be, and why some cannot run."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from ...infer.formats import sixteen_bits
from ...infer.rules import ALWAYS, RULES
from ...infer.stack import DEFAULT
from ...infer.stored import classes_of
from ...plans.fields import KINDS
from ...plans.plan import FIELDS as PLAN
from ...plans.plan import Plan
from ...plans.validity import MODEL_RULES, run_values
from ...runs.inference_run import InferenceRun
from ...serve.request import CHUNK, ServingRequest
from ...serve.workload import Workload
from ..space import divisors
from .shared import Shared
from .times import SearchedServing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from ...models.model import Model
    from ...plans.rule import Rule
    from ...systems.system import System

_SEARCHED = [field for field in PLAN.values() if field.inference == "searched"]
PLAN_FIELDS = tuple(field.name for field in sorted(_SEARCHED, key=lambda field: KINDS.index(field.kind)))
LAYOUT = tuple(name for name in PLAN_FIELDS if PLAN[name].layout)
OPENED = tuple(name for name, field in PLAN.items() if field.inference == "read")
"""Fields of a plan that have their default, unless `require` gives them values."""
TRIED = (*PLAN_FIELDS, "kv_precision", "chunk", "batch")
"""Fields of which a search tries values."""
SERVED = ("max_num_seqs", "memory_utilization", "draft_length")
"""Options of a server that have its default unless `require` gives values; lengths are tried where something drafts."""
FIELDS = (*TRIED, *SERVED, *OPENED)
"""What may be asked for by `require`."""
DRAFTED = (0, 1, 2, 3, 4, 5)
"""Tokens drafted for a step that are tried; 0: none are, and there is nothing that drafts."""
LIMITED = (*(name for name in PLAN_FIELDS if PLAN[name].whole), "chunk", "batch")
"""What may have a largest value."""
CHUNKS = (512, 1024, CHUNK, 8192)
"""Prompt tokens of an iteration that are tried; a multiple of a tile each."""


@dataclass(frozen=True)
class Software:
    """What a serving software runs, where only such plans are sought; by default everything that is modelled.

    Attributes:
        name: of it, for messages.
        rules: that its plans satisfy beside those of all plans.
        caches: formats of the cache that it has; none given: all.
        fixed: fields of a plan that it decides.
    """

    name: str = ""
    rules: tuple[Rule, ...] = ()
    caches: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class InferenceQuestion:
    """What is searched.

    Attributes:
        model: what runs.
        system: what it runs on.
        devices: how many, all of them used.
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        ttft: longest mean time to the first token, in seconds; None: any.
        tpot: longest mean time of each later token, in seconds; None: any.
        batch: sequences of a static batch, each tried; none: requests arrive at random, and the largest load is sought.
        stack: the serving software.
        values: of other symbols.
        required: values that a field may take, by field.
        limits: largest values, by field.
        software: what a software runs, where only that is sought.
        draft: what drafts tokens; None: nothing.
        acceptance: of drafted tokens, as a request has it.
        shared: what is learnt of replicas.
    """

    model: Model
    system: System
    devices: int
    prompt: int
    generate: int
    ttft: float | None = None
    tpot: float | None = None
    batch: tuple[int, ...] = ()
    stack: str | os.PathLike[str] = DEFAULT
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    required: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    software: Software = dataclasses.field(default_factory=Software)
    draft: Model | None = None
    acceptance: float | tuple[float, ...] | None = None
    shared: Shared = dataclasses.field(default_factory=Shared, compare=False, repr=False)

    @cached_property
    def base(self) -> InferenceRun:
        """The run of one sequence on one device: its model and system have the values that were set."""
        return self.inference({"batch": 1})

    @cached_property
    def candidates(self) -> dict[str, tuple[Any, ...]]:
        """The values of every field, in the order in which they are tried."""
        devices, sizes = divisors(self.devices), self.model.sizes
        half = sixteen_bits(self.system)
        narrow = ("fp8",) if "fp8" in self.system.matrix_rates else ()
        found: dict[str, tuple[Any, ...]] = {
            **dict.fromkeys(LAYOUT, devices),
            "ep": divisors(sizes["num_experts"]) if "num_experts" in sizes else (1,),
            "precision": self._precisions((half, *narrow)),
            "kv_precision": (half, *narrow),
        }
        if self.batch:
            every = sorted({part for batch in self.batch for part in divisors(batch)})
            found |= {"batch": self.batch, "micro_batch": tuple(every)}
        else:
            found |= {"chunk": CHUNKS}
            found |= {} if self.draft is None else {"draft_length": DRAFTED}
        found |= self.required
        if caches := self.software.caches:
            found["kv_precision"] = tuple(name for name in found["kv_precision"] if name in caches)
        for name, most in self.limits.items():
            found[name] = tuple(value for value in found[name] if value <= most)
        return found

    def _precisions(self, usual: tuple[str, ...]) -> tuple[str | None, ...]:
        """Formats of the weights: those of the checkpoint where it has some below 16 bits, and the device's.

        A software reads such a checkpoint as it is, and nothing else of it.
        """
        if not self.stored:
            return usual
        return (None,) if self.software.name else (None, *usual)

    @cached_property
    def stored(self) -> bool:
        """Whether the checkpoint has formats of its own, below 16 bits."""
        quantization = self.model.quantization
        return quantization is not None and bool(quantization.stored(classes_of(self.model.architecture)))

    def choices(self) -> Iterator[dict[str, Any]]:
        """The fields of every plan of the space, whether it can run or not."""
        values = self.candidates
        degrees = [name for name in values if name in PLAN and PLAN[name].layout]
        names = [name for name in values if name not in degrees]
        for layout in product(*(values[name] for name in degrees)):
            if math.prod(layout) == self.devices:
                for rest in product(*(values[name] for name in names)):
                    yield {**dict(zip(degrees, layout, strict=True)), **dict(zip(names, rest, strict=True))}

    def plan(self, fields: Mapping[str, Any]) -> Plan:
        """The plan of some fields."""
        return Plan(**{**self.software.fixed, **{name: fields[name] for name in fields if name in PLAN}})

    def refusal(self, fields: Mapping[str, Any]) -> Rule | None:
        """The first rule that a plan breaks; the rules are those of a single inference, and of the software."""
        rules = RULES
        if not self.base.model.sizes["num_attention_heads"]:
            rules = tuple(rule for rule in RULES if rule not in MODEL_RULES)
        values = self.rule_values(fields)
        return next((rule for rule in (*rules, *self.software.rules) if not rule.holds(values)), None)

    def rule_values(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What rules and their messages read of a plan."""
        model, plan = self.base.model, self.plan(fields)
        batch = fields.get("batch", plan.dp)
        plan = plan.with_micro_batch(max(batch // plan.dp, 1))
        values = run_values(plan, model.name, model.sizes, self.base.system, (batch, self.prompt + self.generate))
        return values | ALWAYS

    def serving(self, fields: Mapping[str, Any]) -> SearchedServing:
        """The serving system of a plan.

        Raises:
            InputError: it cannot run.
        """
        chunk, length = fields.get("chunk", CHUNK), fields.get("draft_length") or None
        asked = ServingRequest(
            self.prompt,
            self.generate,
            self.ttft,
            self.tpot,
            chunk=chunk,
            acceptance=self.acceptance if length else None,
            draft_length=length,
            workload=Workload(max_num_seqs=fields.get("max_num_seqs")),
        )
        return SearchedServing(
            self.shared,
            self.model,
            self.system,
            self.plan(fields),
            asked,
            draft=self.draft if length else None,
            stack=self.stack,
            kv_precision=fields.get("kv_precision"),
            values=self._values(fields),
        )

    def inference(self, fields: Mapping[str, Any]) -> InferenceRun:
        """The static batch of a plan.

        Raises:
            InputError: it cannot run.
        """
        return InferenceRun(
            self.model,
            self.system,
            self.plan(fields),
            batch=fields["batch"],
            prompt=self.prompt,
            generate=self.generate,
            stack=self.stack,
            kv_precision=fields.get("kv_precision"),
            values=self._values(fields),
        )

    def _values(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Values of symbols under a plan: those of the question, and what a server takes of the memory."""
        taken = fields.get("memory_utilization")
        return {**self.values, **({} if taken is None else {"memory_utilization": taken})}
