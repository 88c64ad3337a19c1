"""What every run can be asked: a base run joined with analysis, closed forms and spending."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..analysis.mixin import Analysis
from ..common.numbers import as_plain, plain_arguments
from ..derive.mixin import Derivable
from ..evaluation.base_run import BaseRun
from ..plans.arguments import load_model, load_system
from ..plans.plan import Plan
from ..spending.mixin import Spending
from ..spending.quantities import QUANTITIES
from ..train.inputs import Settable, resize_model

if TYPE_CHECKING:
    import os

    from ..models.model import Model
    from ..systems.system import System


class FullRun(BaseRun, Analysis, Derivable, Spending):
    """A question with its closed forms and values, and all that can be asked of them.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how it is laid out.
        values: values of other symbols, by name.
        free: names of symbols that stay symbols.
        question: what is asked beside them, checked: work and options, by name.

    Attributes:
        settable: the names that a run of this kind takes values of.
        base_model: before values replaced sizes of it.
        bare_system: before software took its share of it.
        base_system: before values replaced figures of it.
        base_plan: before what it leaves open was chosen.
        own: the values that belong neither to the model nor to the system.

    Raises:
        InputError: an unknown name or a value out of range.
    """

    settable: ClassVar[Settable]

    def __init__(
        self,
        model: Model,
        system: System,
        plan: Plan,
        *,
        values: dict[str, Any] | None = None,
        free: frozenset[str] = frozenset(),
        **question: Any,
    ) -> None:
        self.given = {name: as_plain(value) for name, value in (values or {}).items()}
        self.free_names, self.question = free, question
        self.bare_system, system = system, self._equip(system, plan)
        self.base_model, self.base_system, self.base_plan = model, system, plan
        sizes, self.figures, self.own = self.settable.sort(self.given)
        self.model = resize_model(model, sizes) if sizes else model
        self.system = self._with_figures(system, plan)

    def _with_figures(self, system: System, plan: Plan) -> System:
        """A system with the figures that the user set."""
        return system.with_values(self.figures, self._rate_precision(plan, system)) if self.figures else system

    @staticmethod
    def _rate_precision(plan: Plan, system: System) -> str:
        """The precision whose rate `matrix_rate` sets."""
        raise NotImplementedError

    def value(self, name: str) -> float:
        """One number, as of `BaseRun.value`; also "cost" (dollars), "energy" (joules) and those of a token.

        Raises:
            InputError: an unknown name, with the nearest, or a system without a price or energies.
        """
        return self.spent(name) if name in QUANTITIES else super().value(name)

    def _equip(self, system: System, plan: Plan) -> System:
        """The system as the software of the question uses it."""
        del plan
        return system

    @plain_arguments
    def bind(self, **values: Any) -> Self:
        """The same run with other values of plan fields, work, options or symbols; they are bound if they were free.

        Raises:
            InputError: an unknown name, with the nearest, or a value out of range.
        """
        return self._ask(self.base_model, self.bare_system, values)

    @plain_arguments
    def swap(
        self,
        *,
        model: Model | str | os.PathLike[str] | None = None,
        system: System | str | os.PathLike[str] | None = None,
        **values: Any,
    ) -> Self:
        """The same question of another model or system, with other values as `bind` takes them.

        What the run was given stays: the software (`stack`), and values of symbols.

        Args:
            model: instead of the run's, or the name or path of one.
            system: instead of the run's, or the name or path of one.
            values: of plan fields, work, options or symbols, by name.

        Raises:
            InputError: an unknown name, with the nearest, a value out of range, or what does not go together.
        """
        other_model = self.base_model if model is None else load_model(model)
        return self._ask(other_model, self.bare_system if system is None else load_system(system), values)

    def _ask(self, model: Model, system: System, values: dict[str, Any]) -> Self:
        fields = {name: value for name, value in values.items() if name in Plan.names()}
        symbols = {n: v for n, v in values.items() if n not in fields and n not in self.question}
        return type(self)(
            model,
            system,
            dataclasses.replace(self.base_plan, **fields),
            values=self.given | symbols,
            free=self.free_names - set(values),
            **{name: values.get(name, value) for name, value in self.question.items()},
        )

    def _with_free(self, free: frozenset[str]) -> Self:
        plan, values = self.base_plan, self.given
        return type(self)(self.base_model, self.bare_system, plan, values=values, free=free, **self.question)

    def _repr_html_(self) -> str:
        from .shown import as_html

        return as_html(self)

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value}" for name, value in self.question.items() if value is not None)
        return f"{type(self).__name__}({self.model.name} on {self.system.name}, {self.plan}, {asked})"
