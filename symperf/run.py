"""`Run`: a model on a system under a plan, as closed forms and the values that their symbols take.

Numbers come from the compiled structure; SymPy is imported only when a closed form is asked for.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .binding import DEFAULTS, LIMITS, Bound, bind, precision_of
from .codegen.interpret import adjoints, floats, run
from .compiled import Compiled, compiled, memory_program
from .errors import InputError, nearest, shown
from .many import ManyRuns
from .plan import Plan, check, positive_integer
from .structure import Structure
from .system import checked_number
from .system_symbols import SYMBOLS as SYSTEM_SYMBOLS
from .validity import MODEL_RULES, refuse

if TYPE_CHECKING:
    from .expressions import CostTree
    from .model import Model
    from .system import System

ALIASES = {
    "time_s": "time",
    "tokens_per_second": "tokens_per_s",
    "tokens_per_second_per_device": "tokens_per_s_per_device",
    "memory_bytes": "memory",
}
IDEAL = {"efficiency": 1.0, "latency": 0.0, "half_bytes": 0.0}
"""Efficiencies and overheads by the end of their name, and what each is in theory."""
MODEL_SIZES = (
    "hidden_size",
    "num_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "position_rows",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One term of the breakdown.

    Attributes:
        name: the term's path.
        time_s: seconds of the step that the term is responsible for; hidden terms have none.
        theory_s: what is left of them at data-sheet rates, every efficiency 1 and every overhead 0.
        share: of the step time.
        bound: the resource that sets the term's own time.
        flops: FLOPs executed on one device in the step.
        bytes: bytes of device memory and of messages moved by one device in the step.
        count: executions in the step.
        each_s: seconds of one execution.
    """

    name: str
    time_s: float
    theory_s: float
    share: float
    bound: str | None
    flops: float
    bytes: float
    count: float
    each_s: float


class Run(ManyRuns):
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
        self.plan = plan
        self.batch, self.sequence = positive_integer("batch", batch), positive_integer("sequence", sequence)
        sizes, figures, defaults = _sorted_values(self.given)
        self.base_model, self.base_system = model, system
        self.model = _resized(model, sizes) if sizes else model
        precision = precision_of(plan, system)
        self.system = system.with_values(figures, precision) if figures else system
        self.warnings = tuple(check(plan, self.model, self.system, self.batch, self.sequence))
        self.structure = structure_of(self.model, self.system, plan)
        if self.structure.attention == "flash" and self.structure.recompute == "selective":
            self.warnings += ("selective recomputation saves nothing with flash attention, which keeps no scores",)
        self.bound: Bound = bind(self.model, self.system, plan, self.batch, self.sequence, defaults)
        self.free_names = free

    # --- values

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        return compiled(self.structure)

    @cached_property
    def _values(self) -> list[Any]:
        if self.free_names:
            raise InputError(f"free symbols have no value: {', '.join(sorted(self.free_names))}; bind them first")
        return run(self.compiled.program, {name: value for name, (value, _) in self.bound.items()}, floats())

    @cached_property
    def _theory(self) -> list[Any]:
        """The values at data-sheet rates, without overheads."""
        inputs = {name: value for name, (value, _) in self.bound.items()}
        return run(self.compiled.program, inputs | {name: IDEAL[_kind(name)] for name in self.overheads()}, floats())

    def overheads(self) -> dict[str, tuple[float, str]]:
        """Value and provenance of every efficiency and overhead in the step time, by name."""
        used = self.compiled.program.inputs
        return {name: self.bound[name] for name in sorted(used) if _kind(name) in IDEAL}

    def value(self, name: str) -> float:
        """One number: "time" (seconds), "memory" (bytes), "mfu", ..., or the seconds of one execution of a term.

        Raises:
            InputError: an unknown name, with the nearest.
        """
        key = ALIASES.get(name, name)
        program = self.compiled.program
        if key == "capacity_bytes":
            return self.bound["memory_capacity"][0]
        if key == "tflops_per_device":
            return float(self._values[program.outputs["flops_per_s_per_device"]]) / 1e12
        for names in (program.outputs, program.lets):
            if key in names:
                return float(self._values[names[key]])
        known = [*ALIASES, "capacity_bytes", "tflops_per_device", *program.outputs, *program.lets]
        raise InputError(f"value: unknown quantity {shown(name)}{nearest(name, known)}")

    def memory_alone(self) -> float:
        """Bytes on the fullest device, without compiling the rest of the step."""
        program = memory_program(self.structure)
        inputs = {name: value for name, (value, _) in self.bound.items()}
        return float(run(program, inputs, floats())[program.outputs["memory"]])

    @property
    def fits(self) -> bool:
        """Whether the fullest device holds it all."""
        return self.value("memory") <= self.value("capacity_bytes")

    def memory_terms(self) -> dict[str, float]:
        """Bytes on the fullest device by named term."""
        prefix = "memory/"
        return {
            name.removeprefix(prefix): self.value(name)
            for name in self.compiled.program.outputs
            if name.startswith(prefix)
        }

    # --- attribution

    def table(self) -> list[Row]:
        """The breakdown: every term with the seconds that it is responsible for; they sum to the step time.

        A term's seconds are its own time times the derivative of the step time with respect to it: exact through
        every maximum, since the step time is homogeneous of degree one in the times of its terms. The pipeline's
        bubble is a term of its own.
        """
        program, values = self.compiled.program, self._values
        idle = {program.lets[term.path] for term in self.compiled.terms if term.idle}
        slopes = adjoints(program, values, program.outputs["time"], floats(), stop=idle)
        total = self.value("time")
        rows = []
        for term in self.compiled.terms:
            position = program.lets[term.path]
            seconds = values[position] * slopes.get(position, 0.0)
            rows.append(
                Row(
                    name=term.path,
                    time_s=seconds,
                    theory_s=seconds * self._theory[position] / values[position] if values[position] else 0.0,
                    share=seconds / total,
                    bound=None if term.idle else self._bound(position),
                    **self._demand(term.path, idle=term.idle),
                    each_s=values[position],
                )
            )
        return rows

    def _demand(self, path: str, *, idle: bool) -> dict[str, float]:
        if idle:
            return {"flops": 0.0, "bytes": 0.0, "count": 1.0}
        count, flops, moved, message = (
            self.value(f"term/{path}/{what}") for what in ("count", "flops", "bytes", "message")
        )
        return {"flops": count * flops, "bytes": count * (moved + message), "count": count}

    def _bound(self, position: int) -> str | None:
        shares = self._resource_shares(position)
        largest = max(shares, key=lambda name: shares[name], default=None)
        return largest if largest is not None and shares[largest] > 0 else None

    def _resource_shares(self, position: int) -> dict[str, float]:
        program, values = self.compiled.program, self._values
        total = values[position]
        found: dict[str, float] = {}
        if total == 0:
            return found
        slopes = adjoints(program, values, position, floats())
        for name, resource in self.compiled.resources.items():
            at = program.inputs[name]
            if at in slopes:
                sign = 1 if name.endswith("_latency") else -1
                found[resource] = found.get(resource, 0.0) + sign * slopes[at] * values[at] / total
        return found

    def shares(self) -> dict[str, float]:
        """The exact share of the step time that each resource is responsible for; they sum to 1.

        By Euler's theorem: time is homogeneous of degree one in latencies and reciprocal rates, so the elasticities of
        all of them sum to one. The bubble's time belongs to the resources that the device waits for.
        """
        found = self._resource_shares(self.compiled.program.outputs["time"])
        resources = dict.fromkeys(["compute", *self.compiled.resources.values()], 0.0)
        return {name: found.get(name, 0.0) for name in resources}

    def sensitivity(self) -> dict[str, float]:
        """Elasticity d ln T / d ln x of the step time in every bound symbol that it depends on."""
        program, values = self.compiled.program, self._values
        position = program.outputs["time"]
        slopes = adjoints(program, values, position, floats())
        return {
            name: slopes[at] * values[at] / values[position]
            for name, at in sorted(program.inputs.items())
            if at in slopes
        }

    # --- other runs

    def bind(self, **values: Any) -> Run:
        """The same run with other values of plan fields, batch, sequence or symbols; they are bound if they were free.

        Raises:
            InputError: an unknown name, with the nearest, or a value out of range.
        """
        plan_fields = {name: value for name, value in values.items() if name in Plan.names()}
        batch, sequence = values.get("batch", self.batch), values.get("sequence", self.sequence)
        rest = {n: v for n, v in values.items() if n not in plan_fields and n not in ("batch", "sequence")}
        return Run(
            self.base_model,
            self.base_system,
            dataclasses.replace(self.plan, **plan_fields),
            batch=batch,
            sequence=sequence,
            values=self.given | rest,
            free=self.free_names - set(values),
        )

    def free(self, *names: str) -> Run:
        """The same run in which these symbols stay symbols.

        Raises:
            InputError: a name that the run's closed forms do not have, with the nearest.
        """
        known = self.compiled.program.inputs
        for name in names:
            if name not in known:
                raise InputError(f"free: the run has no symbol {shown(name)}{nearest(name, known)}")
        return Run(
            self.base_model,
            self.base_system,
            self.plan,
            batch=self.batch,
            sequence=self.sequence,
            values=self.given,
            free=self.free_names | set(names),
        )

    # --- closed forms

    @property
    def time(self) -> CostTree:
        """The step time as a tree of named terms; `.expr` is the SymPy expression."""
        from .expressions import time_tree

        return time_tree(self)

    @property
    def memory(self) -> CostTree:
        """The bytes on the fullest device as a tree of named terms."""
        from .expressions import memory_tree

        return memory_tree(self)

    @property
    def bindings(self) -> dict[Any, float]:
        """The value of every symbol of the closed forms that is not free."""
        from .formulas.symbols import SYMBOLS

        return {
            SYMBOLS[name].symbol: self.bound[name][0]
            for name in sorted(self.compiled.program.inputs)
            if name not in self.free_names
        }

    def latex(self) -> str:
        """The step time in LaTeX: an `align*` of named terms, and a table of symbols with values."""
        from .expressions import latex_of

        return latex_of(self)

    def __repr__(self) -> str:
        work = f"batch={self.batch}, sequence={self.sequence}"
        return f"Run({self.model.name} on {self.system.name}, {self.plan}, {work})"


def _kind(name: str) -> str:
    return next((kind for kind in IDEAL if name.endswith(f"_{kind}")), "")


def structure_of(model: Model, system: System, plan: Plan) -> Structure:
    """The structural choices of a model on a system under a plan."""
    dropout = model.architecture.dropout if plan.dropout is None else plan.dropout
    attention = plan.attention or ("eager" if dropout else "flash")
    l2 = "l2" in system.levels and "l2_capacity" in system.quantities
    return Structure(
        architecture=model.architecture,
        attention=attention,  # type: ignore[arg-type]
        recompute=plan.recompute,  # type: ignore[arg-type]
        sequence_parallel=plan.sequence_parallel,
        schedule=plan.effective_schedule,  # type: ignore[arg-type]
        zero=plan.zero,
        dropout=dropout,
        loss_scaling=precision_of(plan, system) == "fp16",
        quantised=system.quantised,
        l2=l2 and system.quantised,
        tiers=len(system.tiers),
    )


def _sorted_values(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, float]]:
    """Values by where they belong: the model's sizes, the system's figures, defaults."""
    sizes, figures, defaults = {}, {}, {}
    for name, value in values.items():
        if name in MODEL_SIZES:
            sizes[name] = positive_integer(name, value)
        elif name in SYSTEM_SYMBOLS or name == "matrix_rate":
            figures[name] = value
        elif name in DEFAULTS:
            defaults[name] = checked_number(value, LIMITS[name], f"set: {name}")
        else:
            known = [*MODEL_SIZES, *SYSTEM_SYMBOLS, "matrix_rate", *DEFAULTS, *Plan.names(), "batch", "sequence"]
            hint = nearest(name.lower(), known) or ", expected one that `symperf list symbols` shows"
            raise InputError(f"set: unknown symbol {shown(name)}{hint}")
    return sizes, figures, defaults


def _resized(model: Model, sizes: dict[str, int]) -> Model:
    if "position_rows" in sizes and model.architecture.positions != "learned":
        raise InputError(f"position_rows: found {sizes['position_rows']}, but {model.name} has no learned positions")
    refuse(MODEL_RULES, {**model.sizes, **sizes})
    return dataclasses.replace(model, sizes={**model.sizes, **sizes})
