"""Which resources the mean iteration of a serving system is due to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .program import compile_iterations

if TYPE_CHECKING:
    from .images import PromptImages
    from .serving import Serving
    from .state import State


def shares(serving: Serving, state: State) -> dict[str, float]:
    """The share of each resource in the mean iteration of the model in a steady state."""
    kind = "prefill" if serving.asked.generate == 1 else "mixed"
    groups = min(float(serving.plan.pp), 1 + state.decoding)
    values = {
        "decoding": (1 + state.decoding) / groups,
        "chunk_tokens": state.chunk_tokens,
        "step_tokens": serving.draft_length + 1.0,
        "groups_in_flight": groups,
    }
    resources = compile_iterations(serving.run.structure, differing=not serving.requests.alike).resources
    weight = 1.0 if kind == "prefill" else state.chunk_share * state.mixed / state.iteration
    total = dict.fromkeys(sorted(set(resources.values())), 0.0)
    for name, part in ((kind, weight), ("decode", 1 - weight)):
        if part:
            each = serving.evaluators[0].shares(name, resources, **values)
            if name != "decode" and serving.images is not None:
                encoder = groups * serving.images.seconds(state.chunk_tokens / serving.prefilled)
                each = _with_images(serving.images, each, serving.evaluators[0](name, **values), encoder)
            for resource, share in each.items():
                total[resource] = total.get(resource, 0.0) + part * share
    return total


def _with_images(images: PromptImages, shares: dict[str, float], seconds: float, before: float) -> dict[str, float]:
    """The shares of an iteration of so many seconds, with the encoder's pass before it."""
    encoder, part = images.one.shares(), before / (before + seconds)
    return {name: (1 - part) * shares.get(name, 0.0) + part * encoder.get(name, 0.0) for name in {**shares, **encoder}}
