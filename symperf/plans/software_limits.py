"""What a training software runs, of all plans: values of fields, and rules beside those of every plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, quote
from .rule import Rule, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICES = (
    *("zero", "interleaved", "parts", "muon", "reduces_beside", "gathers_beside", "recomputes"),
    *("keeps_optimizer", "keeps_weights", "keeps_activations"),
)
"""Names that rules about choices read, which are known before any degree is."""


@dataclass(frozen=True)
class SoftwareLimits:
    """What a software runs; by default everything that is modelled.

    Attributes:
        name: of it, for messages.
        values: of fields, where it has some only.
        several: parts of fields that list some, where it has some only; a field without parts is run.
        usual: values of fields in place of the plan's defaults, where none is asked for.
        choices: rules over `CHOICES`.
        rules: over what rules of a run read.
    """

    name: str = ""
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    choices: tuple[Rule, ...] = ()
    rules: tuple[Rule, ...] = ()
    several: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def runs(self, name: str, value: Any) -> bool:
        """Whether it runs a value of a field, as far as it says."""
        if name in self.several:
            return value is None or set(str(value).split(",")) <= set(self.several[name])
        return name not in self.values or value in self.values[name]

    def check(self, required: Mapping[str, tuple[Any, ...]]) -> None:
        """Refuse what is asked for and what the software does not run.

        Raises:
            InputError: naming the field and the values that it has.
        """
        for name, values in required.items():
            if name.startswith("overlap_") and len(values) > 1 and self.name:
                raise InputError(f"require: {name}: found {len(values)} values, expected one with --emit {self.name}")
            for value in values:
                if not self.runs(name, value):
                    known = self.several[name] if name in self.several else self.values[name]
                    some = " or ".join("none" if each is None else str(each) for each in known)
                    raise InputError(
                        f"require: {name}: found {quote(value)}, which {self.name} does not run; expected {some}"
                    )

    def narrow(self, name: str, values: tuple[Any, ...], *, asked: bool) -> tuple[Any, ...]:
        """The values of a field that it runs, of some."""
        if not asked and name in self.usual:
            return (self.usual[name],)
        return tuple(each for each in values if self.runs(name, each))

    def refuse(self, fields: Mapping[str, Any], *, parts: bool) -> None:
        """Refuse choices that it does not run together.

        Raises:
            BrokenRuleError: the message of the first rule that is broken.
        """
        kept = (fields.get("offload") or "").split(",")
        values = {
            "zero": fields["zero"],
            "interleaved": int(fields["schedule"] == "interleaved"),
            "parts": int(parts),
            "muon": int(fields["optimizer"] == "muon"),
            "reduces_beside": int((fields.get("overlap_dp") or 0) > 0),
            "gathers_beside": int(
                (fields.get("overlap_gather" if fields["zero"] == 3 else "overlap_parameters") or 0) > 0
                and fields["zero"] > 0
            ),
            "recomputes": int(fields["recompute"] != "none"),
            **{f"keeps_{name}": int(name in kept) for name in ("optimizer", "weights", "activations")},
        }
        refuse(self.choices, values | {"software": self.name, "schedule": fields["schedule"]})


def choice_rule(name: str, condition: str, message: str) -> Rule:
    """A rule over `CHOICES`."""
    return Rule(name, condition, message, CHOICES)
