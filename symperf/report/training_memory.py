"""Memory of a training step: what its tensors take, what is held beside them, and whether a device has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .run_parts import by_class
from .scaled import gibibytes, percent
from .stages import CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..runs.training_run import Run


def memory_classes(run: Run) -> dict[str, float]:
    """Bytes on the fullest device by class, their total, and what is reserved with all that is held beside them."""
    return by_class(run.memory_terms(), CLASSES, run.value("memory")) | {"reserved": run.needed_bytes}


def memory_rows(run: Run) -> list[tuple[str, str]]:
    """Rows of a report: the verdict, the parts of what is allocated, and those of what is reserved beside it."""
    have, memory = run.value("capacity_bytes"), memory_classes(run)
    verdict = "fits" if run.fits else "does not fit"
    whole = (
        f"{gibibytes(memory['reserved'])} reserved of {gibibytes(have)}: {verdict}, "
        f"margin {percent(1 - memory['reserved'] / have)}"
    )
    held = {name: size for name, size in memory.items() if name in CLASSES}
    allocated = f"{gibibytes(memory['total'])} allocated: {_listed(held)}"
    return [("memory", whole), ("", allocated), ("", f"beside it: {_listed(run.reserved_parts())}")]


def _listed(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {gibibytes(size)}" for name, size in parts.items() if size) or "nothing"
