"""Why plans are not among those of a search: each reason with an example, the fields that it is about, and a remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...plans.plan import FIELDS as PLAN
from ...plans.rule import IMPOSSIBLE, reason_of

if TYPE_CHECKING:
    from ...common.errors import InputError
    from .load import Survey

WORD = re.compile(r"[A-Za-z][\w-]*")
NAMES = (*PLAN, "kv_precision", "chunk")
"""Fields that reasons are about."""
REMEDIES = {
    "does_not_fit": (
        ("tp", "pp", "ep", "precision", "kv_precision"),
        "more devices, a larger --max-memory, or narrower formats (--require precision=fp8, kv_precision=fp8)",
    ),
    "ttft_out_of_reach": (("tp", "chunk", "precision"), "a longer --ttft, a shorter --prompt, or more devices"),
    "tpot_out_of_reach": (("tp", "precision", "kv_precision"), "a longer --tpot, fewer sequences, or more devices"),
    "batch_is_not_divisible": (("dp", "micro_batch"), "a --batch that more products of dp and micro_batch divide"),
    "no_network": (("tp", "pp", "dp"), "a system that describes one (scale_up_bandwidth)"),
    "no_scale_out_network": (("tp", "pp", "dp"), "a system that describes one (scale_out_bandwidth), or fewer devices"),
}
"""Fields and remedies of reasons that other plans of the space do not always answer."""


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes:
        name: of it.
        plans: how many it was the first to refuse.
        fields: that it is about.
        example: the message of the first of them; empty where it has none.
        remedy: what would let such plans in.
    """

    name: str
    plans: int
    fields: tuple[str, ...]
    example: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "reason": self.name,
            "plans": self.plans,
            "fields": list(self.fields),
            "example": self.example or None,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        words = self.name.replace("_", " ")
        told = f"{words}: {self.example}" if self.example else words
        return f"{told}; what helps: {self.remedy}" if self.name in REMEDIES else told


def reasons(survey: Survey) -> list[Reason]:
    """The reasons of a survey, the most frequent first."""
    found = []
    for name, plans in sorted(survey.rejected.items(), key=lambda item: (-item[1], item[0])):
        example = survey.examples.get(name, "")
        if name == "does_not_fit" and survey.least is not None:
            need, have = (size / 2**30 for size in survey.least)
            example = f"the smallest needs {need:.2f} GiB of {have:.2f} GiB"
        fields, remedy = REMEDIES.get(name, ((), ""))
        about = tuple(dict.fromkeys(word for word in WORD.findall(example) if word in NAMES))
        fields = fields or about or tuple(dict.fromkeys(part for part in name.split("_") if part in NAMES))
        asked = " and ".join(f"--require {field.replace('_', '-')}=..." for field in fields[:1])
        found.append(Reason(name, plans, fields, example, remedy or f"another value: {asked or '--explain'}"))
    return found


def name_of(error: InputError, model: str) -> str:
    """The reason of a refusal: the name of its rule, or else its message without numbers and the model's name."""
    found = reason_of(error)
    if found != IMPOSSIBLE:
        return found
    text = str(error).replace(f" of {model}", "").replace(model, "").split(";")[0]
    return "_".join(word for word in WORD.findall(text) if word != "found").lower()
