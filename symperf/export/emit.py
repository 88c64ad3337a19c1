"""`symperf.emit`: the options of a framework that run a plan."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError, nearest, quote
from ..plans.plan import Plan
from .sheet import ExportRequest

if TYPE_CHECKING:
    from ..models.model import Model
    from ..systems.system import System
    from .sheet import Option, Sheet

FRAMEWORKS = {
    "megatron": "megatron",
    "megatron-bridge": "megatron_bridge",
    "torchtitan": "torchtitan",
    "deepspeed": "deepspeed",
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
}
"""Modules by the name of the framework; each has `OPTIONS`, `sheet` and `text`."""


@dataclass(frozen=True)
class Emission:
    """A plan in the words of a framework.

    Attributes:
        framework: its name.
        text: command-line flags, overrides or a configuration file; ends with a line break.
        settings: values by option.
        notes: fields of the plan that no option expresses, each with why.
        sources: addresses that document the options, by option.
    """

    framework: str
    text: str
    settings: dict[str, Any]
    notes: tuple[tuple[str, str], ...]
    sources: dict[str, str]

    def __str__(self) -> str:
        return self.text

    @property
    def warnings(self) -> list[str]:
        """One line for each note."""
        return [f"{self.framework}: {name}: {text}" for name, text in self.notes]

    def as_json(self) -> dict[str, Any]:
        """The object under `emitted`."""
        return {
            "framework": self.framework,
            "text": self.text,
            "settings": self.settings,
            "notes": [{"field": name, "text": text} for name, text in self.notes],
            "sources": self.sources,
        }


def emit(
    plan: Plan,
    framework: str,
    *,
    model: Model | None = None,
    system: System | None = None,
    batch: int | None = None,
    sequence: int | None = None,
) -> Emission:
    """A plan as options of a framework.

    Args:
        plan: any plan; what the framework cannot express is a note.
        framework: "megatron", "megatron-bridge", "torchtitan", "deepspeed", "vllm", "sglang" or "trtllm".
        model: what runs; some options need its number of layers.
        system: what it runs on; it decides the precision that a plan leaves open.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.

    Returns:
        An `Emission`, which prints as its text.

    Raises:
        InputError: an unknown framework, or a batch that the plan does not divide.
    """
    if not isinstance(framework, str) or framework not in FRAMEWORKS:
        hint = nearest(framework, FRAMEWORKS) if isinstance(framework, str) else ""
        raise InputError(f"emit: found {quote(framework)}, expected {' or '.join(FRAMEWORKS)}{hint}")
    if not isinstance(plan, Plan):
        raise InputError(f"emit: found {quote(plan)}, expected a Plan")
    share = plan.dp * (plan.micro_batch or 1)
    if batch is not None and batch % share:
        raise InputError(f"emit: batch {batch} is not divisible by dp x micro_batch = {share}")
    module = importlib.import_module(f".{FRAMEWORKS[framework]}", __package__)
    options: dict[str, Option] = module.OPTIONS
    sheet: Sheet = module.sheet(ExportRequest(plan, model, system, batch, sequence)).finish(plan)
    sources = {name: options[name].source for name in sheet.settings}
    return Emission(framework, module.text(sheet), dict(sheet.settings), tuple(sheet.notes), sources)
