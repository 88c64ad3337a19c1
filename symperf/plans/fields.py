"""What a field of a plan is: its legal values, its meaning, and what reads it; `plan_fields` is the table of them.

Checks, bound symbols, axes of sweeps, the space of a search, flags and what rules may read all follow from the table.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..common.errors import InputError, nearest, quote
from ..common.numbers import as_plain, fraction, whole_number
from .grammar import function_of, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .grammar import Node

LARGEST = 10**9
Kind = Literal["degree", "count", "fraction", "choice", "flag", "list", "text"]
"""A degree is a whole number from 1, a count one that may be left open; a list names choices, with commas between; a
text is of a language of its own."""
KINDS = get_args(Kind)
Form = Literal["none", "above 1", "given", "value"]
Inference = Literal["searched", "read", "refused", "ignored"]


@dataclass(frozen=True)
class Field:
    """One field of a plan.

    Attributes:
        name: of the field.
        default: the value that says nothing; None: what the plan leaves open.
        kind: of its values.
        sentence: what it means, without a full stop.
        choices: the values of a choice or a list.
        training: those of them that training takes; by default all.
        form: what of a value changes the closed form of a step, and not a number in it alone: nothing, whether it is
            above 1, whether it is given, or the value itself.
        symbol: that has its number in closed forms; by default the name.
        unset: the number that stands where none is given, in the grammar over other fields.
        layout: one of the degrees whose product is the number of devices.
        column: place among the degrees that a search tries row by row, from the outermost; None: no such degree.
        searched: a search tries all values of this choice.
        trained: whether training has a use for it; else it says that it ignores it.
        inference: what it means there: searches try it, a run reads it, refuses it, or says that it ignores it.
        suffix: of the names of a list, which may be left out.
        remedy: for values that training does not take.
        adapters: of what inference has for adapters of requests by flags of its own.
        metavar: of the flag.
        heading: of a column; by default the name.
        reader: of a text: the form in which it is kept, or an error.
    """

    name: str
    default: Any
    kind: Kind
    sentence: str
    choices: tuple[Any, ...] = ()
    training: tuple[Any, ...] = ()
    form: Form = "value"
    symbol: str = ""
    unset: str = "1"
    layout: bool = False
    column: int | None = None
    searched: bool = False
    trained: bool = True
    inference: Inference = "ignored"
    suffix: str = ""
    remedy: str = ""
    adapters: bool = False
    metavar: str = ""
    heading: str = ""
    reader: Callable[[str], str] | None = None

    @property
    def optional(self) -> bool:
        """Whether it may be left open."""
        return self.default is None

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, of which a closed form has a symbol."""
        return self.kind in ("degree", "count", "fraction")

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.kind in ("degree", "count")

    @property
    def values(self) -> str:
        """Its legal values in words, of training."""
        if self.kind == "text":
            found = self.metavar
        elif self.numeric:
            found = "0 to 1" if self.kind == "fraction" else "1, 2, ..."
        else:
            found = ", ".join(map(str, self.training or self.choices)) or "false, true"
        return f"none, {found}" if self.optional else found

    @property
    def cells(self) -> str:
        """How many closed forms its values have, in words."""
        return {
            "none": "one",
            "above 1": "one for 1, one above",
            "given": "one for none, one for numbers",
            "value": "one each",
        }[self.form]

    @cached_property
    def stand_in(self) -> Node:
        """What `unset` means."""
        return number(self.unset, _names(self.unset), f"{self.name}: unset")

    def check(self, value: Any, *, training: bool = False) -> Any:
        """The value as a plan holds it.

        Raises:
            InputError: it is none of the field's; with `training`, or none that training takes.
        """
        value = as_plain(value)
        if value is self.default:
            return value
        if self.whole:
            return positive_integer(self.name, value)
        if self.kind == "fraction":
            return _fraction(self.name, value)
        if self.kind == "list":
            return self._list(value, training=training)
        if self.kind == "text":
            return self._text(value)
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise InputError(f"{self.name}: found {quote(value)}, expected true or false")
            return value
        return self._choice(value, training=training)

    @cached_property
    def _stand_in(self) -> Callable[[Mapping[str, Any]], Any]:
        return function_of(self.stand_in)

    def number(self, fields: Mapping[str, Any]) -> float:
        """The number of its symbol, among the values of a plan's fields by name."""
        value = fields[self.name]
        return float(self._stand_in(fields) if value is None else value)

    def form_of(self, value: Any) -> Any:
        """What of a value changes the closed form; equal where the form is the same."""
        if self.form == "above 1":
            return value > 1
        if self.form == "given":
            return value is not None
        return value if self.form == "value" else None

    def _choice(self, value: Any, *, training: bool) -> Any:
        choices = self.training if training and self.training else self.choices
        counts = isinstance(choices[0], int)
        known = isinstance(value, Real if counts else str) and not isinstance(value, bool)
        if known and value in choices:
            return int(value) if counts else value
        hint = nearest(value.lower(), map(str, choices)) if isinstance(value, str) else ""
        if known and value in self.choices:
            hint = f" ({value} is of inference only)"
        hint += self.remedy if training else ""
        first, last = ", ".join(map(str, choices[:-1])), str(choices[-1])
        expected = f"{first} or {last}" if counts else " or ".join(choices)
        raise InputError(f"{self.name}: found {quote(value)}, expected {expected}{hint}")

    def _text(self, value: Any) -> str:
        assert self.reader is not None
        if not isinstance(value, str):
            raise InputError(f"{self.name}: found {quote(value)}, expected a text: {self.sentence}")
        return self.reader(value)

    def _list(self, value: Any, *, training: bool) -> str | None:
        """The names of a list, each once, in their order; None for "none"."""
        choices = self.training if training and self.training else self.choices
        parts = [value]
        if isinstance(value, str):
            parts = [part.strip().lower().removesuffix(self.suffix) for part in value.split(",")]
        for part in parts:
            named = isinstance(part, str)
            if not named or (part not in choices and parts != ["none"]):
                known = named and part in self.choices
                hint = f" ({part} is of inference only)" if known else nearest(part, choices) if named else ""
                expected = f"{' or '.join(choices)}, or several with commas between"
                raise InputError(f"{self.name}: found {quote(value)}, expected {expected}{hint}")
        return ",".join(name for name in self.choices if name in parts) or None


def plan_field(default: Any, kind: Kind, sentence: str, **more: Any) -> Any:
    """A field of a dataclass that is a plan; `more` are attributes of its `Field`."""
    usual: dict[str, Any] = {"degree": {"form": "none"}, "count": {"form": "given"}, "fraction": {"form": "none"}}
    metadata = {"kind": kind, "sentence": sentence, **usual.get(kind, {}), **more}
    return dataclasses.field(default=default, metadata=metadata)


def table_of(plan: Any) -> dict[str, Field]:
    """The table that a dataclass of `plan_field`s is, by name."""
    found = {}
    for each in dataclasses.fields(plan):
        attributes = {"symbol": each.name, "heading": each.name, **each.metadata}
        found[each.name] = Field(name=each.name, default=each.default, **attributes)
    return found


def positive_integer(name: str, value: object, lowest: int = 1) -> int:
    """The value, if it is a whole number from 1, or the lowest that is told, to 10^9.

    Raises:
        InputError: it is not.
    """
    found = whole_number(value, lowest, LARGEST)
    if found is None:
        raise InputError(f"{name}: found {quote(value)}, expected a whole number from {lowest} to {LARGEST}")
    return found


def _fraction(name: str, value: Any) -> Any:
    if (found := fraction(value)) is None:
        raise InputError(f"{name}: found {quote(value)}, expected a fraction from 0 to 1")
    return found


def _names(text: str) -> set[str]:
    spaced = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return {word for word in spaced.split() if not word[0].isdigit()} - {"min", "max"}
