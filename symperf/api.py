"""The questions that symperf answers: `training`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import Model
    from .plan import Plan
    from .run import Run
    from .system import System


def training(
    model: Model, system: System, plan: Plan | None = None, *, batch: int, sequence: int, **values: Any
) -> Run:
    """Cost of a training step of `batch` sequences of `sequence` tokens.

    Args:
        model: what to train.
        system: what to train on.
        plan: how the work is laid out; by default one device.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        A `Run`: closed forms, and the values that their symbols take.

    Raises:
        InputError: an impossible plan, a system that lacks what the plan needs, or an unknown symbol.
    """
    from .plan import Plan as _Plan
    from .run import Run as _Run

    return _Run(model, system, plan or _Plan(), batch=batch, sequence=sequence, values=values)
