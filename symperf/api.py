"""The questions that symperf answers: `training`, `inference`, `serving`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InputError, shown

if TYPE_CHECKING:
    from .batching.run import Serving
    from .generation.run import InferenceRun
    from .model import Model
    from .plan import Plan
    from .run import Run
    from .system import System

    Loaded = TypeVar("Loaded", Model, System)


def loaded_model(model: Model | str | os.PathLike[str]) -> Model:
    """A model, or the one of a name or a path.

    Raises:
        InputError: there is none, or it is something else.
    """
    from .model import Model as _Model

    return _loaded(_Model, model)


def loaded_system(system: System | str | os.PathLike[str]) -> System:
    """A system, or the one of a name or a path.

    Raises:
        InputError: there is none, or it is something else.
    """
    from .system import System as _System

    return _loaded(_System, system)


def _loaded(kind: type[Loaded], given: Loaded | str | os.PathLike[str]) -> Loaded:
    """What is given, or what its kind loads by that name or path."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str | os.PathLike):
        return kind.load(given)
    name = kind.__name__
    raise InputError(f"{name.lower()}: found {shown(given)}, expected a {name}, a name of the catalogue or a path")


def loaded_plan(plan: Plan | None) -> Plan:
    """A plan, or where there is none that of one device.

    Raises:
        InputError: it is something else.
    """
    from .plan import Plan as _Plan

    if plan is None:
        return _Plan()
    if isinstance(plan, _Plan):
        return plan
    raise InputError(f"plan: found {shown(plan)}, expected a Plan, such as Plan(tp=8, dp=2)")


def training(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    batch: int,
    sequence: int,
    stack: str | os.PathLike[str] | None = None,
    **values: Any,
) -> Run:
    """Cost of a training step of `batch` sequences of `sequence` tokens.

    Args:
        model: what to train, or the name or path that `Model.load` takes.
        system: what to train on, or the name or path that `System.load` takes.
        plan: how the work is laid out; by default one device.
        batch: sequences in the global batch.
        sequence: tokens in a sequence.
        stack: name of a training software's profile (`symperf list stacks`), or the path of one; by default the best
            published kernels of the device.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        A `Run`: closed forms, and the values that their symbols take.

    Raises:
        InputError: an impossible plan, a system that lacks what the plan needs, or an unknown symbol.
    """
    from .run import Run as _Run

    loaded = loaded_system(system)
    if stack is not None:
        from .software import Software

        loaded = Software.load(stack).on(loaded)
    return _Run(loaded_model(model), loaded, loaded_plan(plan), batch=batch, sequence=sequence, values=values)


def inference(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
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
        model: what runs, or the name or path that `Model.load` takes.
        system: what it runs on, or the name or path that `System.load` takes.
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

    return _Run(
        loaded_model(model),
        loaded_system(system),
        loaded_plan(plan),
        batch=batch,
        prompt=prompt,
        generate=generate,
        stack=stack or DEFAULT,
        kv_precision=kv_precision,
        values=values,
    )


def serving(
    model: Model | str | os.PathLike[str],
    system: System | str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    prompt: int,
    generate: int,
    ttft: float | None = None,
    tpot: float | None = None,
    load: float | None = None,
    chunk: int | None = None,
    draft: Model | str | os.PathLike[str] | None = None,
    acceptance: float | None = None,
    draft_length: int | None = None,
    stack: str | os.PathLike[str] | None = None,
    kv_precision: str | None = None,
    **values: Any,
) -> Serving:
    """Continuous batching of requests that arrive at random, in a steady state.

    Args:
        model: what runs, or the name or path that `Model.load` takes.
        system: what it runs on, or the name or path that `System.load` takes.
        plan: how a replica is laid out, and how many there are (`dp`); by default one device.
        prompt: tokens of each prompt.
        generate: tokens generated for each.
        ttft: longest mean time to the first token, in seconds.
        tpot: longest mean time of each later token, in seconds.
        load: requests a second, at all replicas; without it the largest within the targets is the answer.
        chunk: prompt tokens that an iteration may process.
        draft: a draft model for speculative decoding, on the same devices; as `model`.
        acceptance: probability that a drafted token is accepted, between 0 and 1.
        draft_length: tokens drafted for each step; by default the best for a request alone.
        stack: name of a serving software's profile (`symperf list stacks`), or the path of one.
        kv_precision: format of the key-value cache; by default 16 bits.
        values: other values of symbols, such as `memory_bandwidth=4.8e12`.

    Returns:
        A `Serving`: `.answer` at the load, `.largest`, `.curve`, `.pools`, `.speculation()`.

    Raises:
        InputError: an impossible plan, an unknown name, or a value out of range.
    """
    from .batching.asked import CHUNK, Asked
    from .batching.run import Serving as _Serving
    from .generation.stack import DEFAULT

    asked = Asked(prompt, generate, ttft, tpot, load, CHUNK if chunk is None else chunk, acceptance, draft_length)
    return _Serving(
        loaded_model(model),
        loaded_system(system),
        loaded_plan(plan),
        asked,
        draft=None if draft is None else loaded_model(draft),
        stack=stack or DEFAULT,
        kv_precision=kv_precision,
        values=values,
    )
