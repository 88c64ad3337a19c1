"""The questions that symperf answers: `training`, `inference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from .generation.run import InferenceRun
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


def inference(
    model: Model,
    system: System,
    plan: Plan | None = None,
    *,
    batch: int,
    prompt: int,
    generate: int,
    stack: str | os.PathLike[str] | None = None,
    kv_precision: str | None = None,
    **values: Any,
) -> InferenceRun:
    """Cost of `batch` prompts of `prompt` tokens, and of `generate` tokens generated for each.

    Args:
        model: what runs.
        system: what it runs on.
        plan: how the work is laid out; by default one device.
        batch: sequences, over all replicas.
        prompt: tokens of each prompt.
        generate: tokens generated for each; prefill yields the first, a decode step each other one.
        stack: name of a serving software's profile (`symperf list stacks`), or the path of one.
        kv_precision: format of the key-value cache; by default 16 bits.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        An `InferenceRun`: closed forms, and the values that their symbols take.

    Raises:
        InputError: an impossible plan, a system that lacks what the plan needs, or an unknown name.
    """
    from .generation.run import InferenceRun as _Run
    from .generation.stack import DEFAULT
    from .plan import Plan as _Plan

    return _Run(
        model,
        system,
        plan or _Plan(),
        batch=batch,
        prompt=prompt,
        generate=generate,
        stack=stack or DEFAULT,
        kv_precision=kv_precision,
        values=values,
    )
