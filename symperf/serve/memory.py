"""What fits on the devices of a replica that serves: models, what a step reserves, what requests hold and share."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..models.draft_heads import head_modules
from .program import Evaluator

if TYPE_CHECKING:
    from ..infer.room import Room
    from ..runs.inference_run import InferenceRun
    from .serving import Serving


def room_of(serving: Serving, length: int, values: dict[str, float]) -> Room:
    """The room of a replica with a draft length, at other values of some symbols where they are given.

    An encoder of images runs between passes of the language model, whose activations are then free: an iteration
    reserves the larger of both.
    """
    held = {} if serving.requests.alike else serving.requests.memory_inputs()
    most = serving.asked.workload.max_num_seqs
    capped = {"max_num_seqs": float(most)} if most else {}
    given = {"chunk": serving.chunk, **capped, **held, **values}
    whole = given | ({"prompt": float(serving.requests.sent)} if held else {}) | values
    found = _of_steps(serving.run, given, whole, step_tokens=length + 1.0)
    if length and serving.draft is not None:
        found = found.beside(_of_steps(serving.draft, given, whole), head_modules(serving.draft.model))
    if serving.images is not None:
        own = serving.images
        found = dataclasses.replace(
            found,
            weights=found.weights + own.weight_bytes,
            reserved=found.reserved + max(0.0, own.activation_bytes - _of_chunk(serving)),
        )
    return dataclasses.replace(found, shared=shared_bytes(serving))


def _of_steps(run: InferenceRun, own: dict[str, float], whole: dict[str, float], **more: float) -> Room:
    """The room of sequences that hold what is their own; what software reserves for a step is for whole contexts."""
    found = run.room(**own, **more)
    if own == whole or run.structure.step == "prompts":
        return found
    return dataclasses.replace(found, reserved=run.room(**whole, **more).reserved)


def _of_chunk(serving: Serving) -> float:
    """Bytes of the activations of the language model's prompt tokens in an iteration, which grow with the chunk."""
    once, twice = (serving.run.room(chunk=count * serving.chunk).reserved for count in (1.0, 2.0))
    return twice - once


def shared_bytes(serving: Serving) -> float:
    """Bytes of the cache of a prefix that all requests share."""
    load = serving.asked.workload
    if not load.prefix or not load.hits:
        return 0.0
    evaluators = serving.evaluators
    return sum(Evaluator(each.program, each.inputs | {"prompt": load.prefix})("cache/prompt") for each in evaluators)
