"""A sheet of settings: options that a framework documents, each with the field of the plan that it comes from.

A field that no option expresses is a note. What is neither set nor noted becomes a note by itself, so that nothing of a
plan is dropped in silence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..plans.plan import FIELDS, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..models.model import Model
    from ..systems.system import System
    from .service import Service


@dataclass(frozen=True)
class Option:
    """An option of a framework.

    Attributes:
        kind: of its value: `bool` (a switch), `int`, `float`, `str` or `list`.
        source: address of the page or the file that documents it.
        choices: the values that it takes, where it takes some only.
    """

    kind: type
    source: str
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ExportRequest:
    """What is emitted.

    Attributes:
        plan: how the work is laid out.
        model: what runs, if it is known: some options need its number of layers.
        system: what it runs on, if it is known: it decides the precision that a plan leaves open.
        batch: sequences in the global batch, if it is known.
        sequence: tokens in a sequence, if it is known.
        service: what a server serves, of a plan for inference.
    """

    plan: Plan
    model: Model | None = None
    system: System | None = None
    batch: int | None = None
    sequence: int | None = None
    service: Service | None = None

    @property
    def micro_batch(self) -> int:
        """Sequences in a micro-batch."""
        return self.plan.micro_batch or 1

    @property
    def precision(self) -> str | None:
        """The precision of the products, where the plan or the system tells it."""
        if self.plan.precision or self.system is None or self.service is not None:
            return self.plan.precision
        from ..train.binding import precision_of

        return precision_of(self.plan, self.system)

    @property
    def dropout(self) -> bool | None:
        """Whether dropouts run, where the plan or the model tells it."""
        if self.plan.dropout is not None or self.model is None:
            return self.plan.dropout
        return self.model.architecture.dropout

    @property
    def attention(self) -> str | None:
        """The attention kernel, where the plan or the model tells it."""
        if self.plan.attention is not None or self.model is None:
            return self.plan.attention
        from ..plans.plan import attention_of

        return attention_of(self.plan, self.model)

    @property
    def layers(self) -> int | None:
        """Layers of the model."""
        return None if self.model is None else self.model.sizes["num_layers"]

    @property
    def stage_layout(self) -> str | None:
        """What each stage has where they differ, in the letters of a layout."""
        plan, layers = self.plan, self.layers
        if plan.layout is not None or layers is None or layers % (plan.pp * plan.vpp) == 0:
            return plan.layout
        assert self.model is not None
        return plan.spelled_layout(layers, self.model.sizes.get("num_multi_token_layers", 0))


@dataclass
class Sheet:
    """Settings and notes of one framework.

    Attributes:
        framework: its name.
        options: those that it documents, by name.
        settings: values by option, in the order in which they are set.
        notes: what the framework cannot express, or does by itself, by field of the plan.
    """

    framework: str
    options: Mapping[str, Option]
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)

    def put(self, name: str, value: Any, *fields: str) -> None:
        """Set an option, for some fields of the plan."""
        option = self.options[name]
        assert type(value) is option.kind, name
        assert not option.choices or value in option.choices, name
        self.settings[name] = value
        self.covered |= set(fields)

    def note(self, name: str, text: str) -> None:
        """Say what no option expresses; a second note of a field is one more line."""
        self.notes.append((name, text))
        self.covered.add(name)

    def cover(self, *fields: str) -> None:
        """Fields that say nothing in this plan, or that the framework does as the plan says."""
        self.covered |= set(fields)

    def finish(self, plan: Plan) -> Sheet:
        """Note each field that differs from its default and that nothing has covered."""
        for name, entry in FIELDS.items():
            if name not in self.covered and getattr(plan, name) != entry.default:
                self.note(name, f"{self.framework} has no option for it")
        return self


def fractions(sheet: Sheet, plan: Plan, name: str, *, reached: float) -> None:
    """Note a fraction of overlap that a switch cannot set: what the framework reaches is for a measurement to say."""
    value = getattr(plan, name)
    if value != reached:
        sheet.note(name, f"the plan assumes that {value:g} of it hides; {sheet.framework} sets no fraction")
    sheet.cover(name)
