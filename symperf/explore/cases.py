"""A case of an explorer: what one set of choices gives, a structure with the values of its symbols, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .pool import RULE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..codegen.program import Program
    from ..operations.compiled import Bound, Compiled
    from ..plans.grammar import Node
    from ..plans.rule import Rule
    from .answers import Answer
    from .formulas import Told


@dataclass(frozen=True)
class Choice:
    """A control whose values change the form of the cost, or what its symbols are bound to.

    Attributes:
        name: of a field of the plan, or `model` and `system`.
        sentence: what it means.
        values: that it takes.
        start: the value at first.
    """

    name: str
    sentence: str
    values: tuple[Any, ...]
    start: Any


@dataclass(frozen=True)
class Case:
    """What one set of choices gives.

    Attributes:
        structure: key of the structure's canonical text; "" where the choices do not go together.
        bound: value and source of its symbols.
        ruled: what rules read beside symbols.
        words: what messages of rules read beside numbers.
        reason: why the choices do not go together.
        warnings: about what can run.
        served: loads that it serves, of an inference.
    """

    structure: str = ""
    bound: Bound = field(default_factory=dict)
    ruled: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    warnings: tuple[str, ...] = ()
    served: Mapping[str, Any] | None = None

    def values(self) -> dict[str, tuple[float, str]]:
        """Value and source by the name of an input of the pool."""
        return {**self.bound, **{RULE + name: (float(value), "") for name, value in self.ruled.items()}}


@dataclass(frozen=True)
class Form:
    """A structure with its programs.

    Attributes:
        compiled: its time and memory.
        spending: its work and energy.
        told: what is told of operations beside their numbers, by path.
        answers: what is told of answers beside their numbers, by output.
        stage: bytes of the device of stage `stage_number`, of a training step.
        passes: seconds of its passes, where a page draws the schedule.
    """

    compiled: Compiled
    spending: Program
    told: Mapping[str, Told]
    answers: Mapping[str, Answer]
    stage: Program | None = None
    passes: Program | None = None


@dataclass(frozen=True)
class Numbered:
    """A control whose values are numbers.

    Attributes:
        name: of the symbol, or of the field of the plan.
        group: `plan`, `work` or `system`.
        start: its value at first.
        low: least value.
        high: largest value.
        whole: whether it takes whole numbers alone.
        degrees: the values that it offers, where it offers some.
        follows: of a figure of a system, inputs that take its value too, by the places of those models, systems and
            formats that have it.
    """

    name: str
    group: str
    start: float
    low: float
    high: float
    whole: bool = False
    degrees: tuple[int, ...] = ()
    follows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """One kind of run with all that its choices reach.

    Attributes:
        name: `train` or `infer`.
        choices: in the order of a case's key.
        cases: by the places of their values.
        forms: of structures, by key.
        rules: that every point must satisfy, in order.
        derived: symbols that follow from others, in the grammar over names that rules know.
        named: the inputs that names of rules stand for.
        numbers: the controls of numbers.
        flags: what a command line has beside them: fields of the plan, and options.
    """

    name: str
    choices: tuple[Choice, ...]
    cases: Mapping[tuple[int, ...], Case]
    forms: Mapping[str, Form]
    rules: Sequence[Rule]
    derived: Mapping[str, Node]
    named: Mapping[str, str]
    numbers: tuple[Numbered, ...]
    flags: Mapping[str, Any] = field(default_factory=dict)
