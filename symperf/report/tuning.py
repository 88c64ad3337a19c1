"""A step of several models, as JSON and in words: its phases with their shares, and what they hold together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scaled import gibibytes, percent, seconds

if TYPE_CHECKING:
    from ..runs.tuning import Tuning

WHOLE = ("total", "reserved")
"""Sums of the memory of all models, beside its parts."""


class TuningReport:
    """What is said of a step."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def to_dict(self) -> dict[str, Any]:
        """As plain data; the object around it is of the update alone."""
        step, generation = self.tuning, self.tuning.generation
        tokens = step.batch * step.sequence
        return {
            "name": step.name,
            "time_s": step.time,
            "tokens_per_s": tokens / step.time,
            "sequences": step.batch,
            "phases": [{"name": each.name, "time_s": each.time_s, "share": each.share} for each in step.timed],
            "generation": generation
            and {"waves": generation.waves, "sequences": generation.run.work.batch, "plan": str(generation.run.plan)},
            "memory_bytes": step.memory,
            "fits": step.fits,
            "warnings": list(step.warnings),
        }

    def lines(self) -> list[str]:
        """In words."""
        step = self.tuning
        phases = [f"  {each.name:<14}{seconds(each.time_s):>10}  {percent(each.share):>7}" for each in step.timed]
        held = ", ".join(f"{name} {gibibytes(size)}" for name, size in step.memory.items() if name not in WHOLE)
        verdict = "fits" if step.fits else "does not fit"
        found = [f"a step of {step.name} ({step.method.sentence}): {seconds(step.time)}", *phases]
        if step.generation:
            found.append(
                f"  generated in {step.generation.waves} wave(s) of {step.generation.run.work.batch} sequences"
            )
        whole, reserved = (gibibytes(step.memory[name]) for name in WHOLE)
        found.append(f"  memory of all: {whole} ({reserved} reserved), {verdict}: {held}")
        found += [f"  warning: {text}" for text in step.warnings]
        return [*found, "", f"of it {step.timed[-1].name}:"]
