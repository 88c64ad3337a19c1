"""What a run can tell whatever it is of: values, breakdown, shares.

Numbers come from the compiled structure; SymPy is not imported.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..codegen.interpret import adjoints, floats, run
from ..common.errors import InputError, nearest, quote
from .folders import folder_parts, folders
from .resources import bound_of, resource_shares
from .rows import Row as Row
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.program import Program
    from ..models.model import Model
    from ..operations.compiled import Bound, Compiled
    from ..operations.schedule import Node
    from ..plans.plan import Plan
    from ..systems.system import System
    from ..systems.system_symbols import Quantity
    from .uncertainty import Interval

ALIASES = {
    "time_s": "time",
    "tokens_per_second": "tokens_per_s",
    "tokens_per_second_per_device": "tokens_per_s_per_device",
    "memory_bytes": "memory",
    "throughput": "tokens_per_s",
    "latency": "time",
}
IDEAL = {"efficiency": 1.0, "latency": 0.0, "half_bytes": 0.0}
"""Efficiencies and overheads by the end of their name, and what each is in theory."""


class Bindings(dict[Any, float]):
    """Numbers by symbol, and the structure of the closed forms that they are put into.

    Args:
        values: by symbol.
        structure: of the run that they are of.
    """

    def __init__(self, values: dict[Any, float], structure: Any) -> None:
        super().__init__(values)
        self.structure = structure


class BaseRun:
    """A question with its closed forms and the values that their symbols take.

    Attributes:
        model: with the sizes that it has in this run.
        system: with the figures that it has in this run.
        plan: how the work is laid out.
        structure: what gives the closed forms their shape.
        bound: value and provenance of every symbol, by name.
        free_names: symbols that stay symbols.
        given: values that the user set.
        question: what is asked beside them: work and options, by name.
        settable: the names that a run of this kind takes values of.
        warnings: about a plan that can run.
    """

    model: Model
    system: System
    plan: Plan
    structure: Any
    bound: Bound
    free_names: frozenset[str]
    given: dict[str, Any]
    question: dict[str, Any]
    settable: ClassVar[Any]
    warnings: tuple[str, ...]
    kind: ClassVar[str] = "training"
    """What its answers are to the calibration of intervals, one of `causes.KINDS`."""

    @property
    def software_measured(self) -> bool:
        """Whether the kernels of its software were measured on its system."""
        return False

    # --- values

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled structure."""
        raise NotImplementedError

    def schedule_tree(self) -> Node:
        """The schedule tree whose fold is the time."""
        raise NotImplementedError

    def memory_forms(self) -> dict[str, Any]:
        """The closed form of every named term of the memory."""
        raise NotImplementedError

    def metric_forms(self, time: Any) -> dict[str, Any] | None:  # noqa: ARG002 - a kind of run may use it
        """Closed forms of the other answers over the time, where a kind of run has its own; else nothing."""
        return None

    def bind(self, **values: Any) -> Self:
        """The same run with other values of plan fields, work or symbols; they are bound if they were free.

        Raises:
            InputError: an unknown name, with the nearest, or a value out of range.
        """
        raise NotImplementedError

    def swap(self, *, model: Any = None, system: Any = None, **values: Any) -> Self:
        """The same question of another model or system, with other values as `bind` takes them.

        Raises:
            InputError: an unknown name, with the nearest, a value out of range, or what does not go together.
        """
        raise NotImplementedError

    def _with_free(self, free: frozenset[str]) -> Self:
        raise NotImplementedError

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

        A folder of terms is the seconds of all executions below it on one device, or the bytes below it.

        Raises:
            InputError: an unknown name, with the nearest.
        """
        if not isinstance(name, str):
            raise InputError(f"value: found {quote(name)}, expected the name of a quantity")
        key = ALIASES.get(name, name)
        program = self.compiled.program
        if key == "capacity_bytes":
            return self.bound["memory_capacity"][0]
        if key == "tflops_per_device":
            return float(self._values[program.outputs["flops_per_s_per_device"]]) / 1e12
        for names in (program.outputs, program.lets):
            if key in names:
                return float(self._values[names[key]])
        if parts := folder_parts(self.compiled, key):
            return sum(float(self._values[at] * (1.0 if n is None else self._values[n])) for at, n in parts)
        known = [*ALIASES, "capacity_bytes", "tflops_per_device", *program.outputs, *program.lets]
        raise InputError(f"value: unknown quantity {quote(name)}{nearest(name, [*known, *folders(self.compiled)])}")

    def value_at(self, name: str, changed: Mapping[str, float]) -> float:
        """An output of the program where symbols have other values than those that they are bound to.

        Args:
            name: of the output.
            changed: values by name.
        """
        program = self.compiled.program
        inputs = {symbol: value for symbol, (value, _) in self.bound.items()}
        return float(run(program, inputs | dict(changed), floats())[program.outputs[name]])

    def quantities(self) -> dict[str, Quantity]:
        """The quantities that the run's symbols are bound from, by name, with the spreads of those that have one."""
        return dict(self.system.quantities)

    def memory_alone(self) -> float:
        """Bytes on the fullest device, without compiling the rest of the step."""
        program = self._memory_program()
        inputs = {name: value for name, (value, _) in self.bound.items()}
        return float(run(program, inputs, floats())[program.outputs["memory"]])

    def _memory_program(self) -> Program:
        raise NotImplementedError

    @property
    def needed_bytes(self) -> float:
        """Bytes that a device must have."""
        return self.value("memory")

    @property
    def fits(self) -> bool:
        """Whether the fullest device holds it all."""
        return self.needed_bytes <= self.value("capacity_bytes")

    def memory_terms(self) -> dict[str, float]:
        """Bytes on the fullest device by named term."""
        prefix = "memory/"
        return {
            name.removeprefix(prefix): self.value(name)
            for name in self.compiled.program.outputs
            if name.startswith(prefix)
        }

    # --- attribution

    def table(self) -> Rows:
        """The breakdown: every term with the seconds that it is responsible for; they sum to the step time.

        A term's seconds are its own time times the derivative of the step time with respect to it: exact through
        every maximum, since the step time is homogeneous of degree one in the times of its terms. The pipeline's
        bubble is a term of its own.
        """
        program, values = self.compiled.program, self._values
        idle = {program.lets[term.path] for term in self.compiled.terms if term.idle}
        slopes = adjoints(program, values, program.outputs["time"], floats(), stop=idle)
        total = self.value("time")
        rows = Rows()
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
        return bound_of(self._resource_shares(position))

    def _resource_shares(self, position: int) -> dict[str, float]:
        return resource_shares(self.compiled, self._values, position)

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

    def interval(self, name: str = "time") -> Interval:
        """The ends between which an answer lies, given the spreads of the system's efficiencies and overheads.

        Raises:
            InputError: an unknown answer, with the nearest, or free symbols.
        """
        from .uncertainty import interval

        return interval(self, name)

    def free(self, *names: str) -> Self:
        """The same run in which these symbols stay symbols.

        Raises:
            InputError: a name that the run's closed forms do not have, with the nearest.
        """
        known = self.compiled.program.inputs
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise InputError(f"free: the run has no symbol {quote(name)}{nearest(name, known)}")
        return self._with_free(self.free_names | set(names))

    # --- closed forms

    @property
    def bindings(self) -> Bindings:
        """The value of every symbol of the closed forms that is not free."""
        from ..formulas.language.symbols import SYMBOLS

        found = {
            SYMBOLS[name].symbol: self.bound[name][0]
            for name in sorted(self.compiled.program.inputs)
            if name not in self.free_names
        }
        return Bindings(found, self.structure)


def _kind(name: str) -> str:
    base = name.rstrip("0123456789").removesuffix("_")
    return next((kind for kind in IDEAL if base.endswith(f"_{kind}")), "")
