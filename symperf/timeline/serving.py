"""An iteration of continuous batching as a timeline: one that only decodes, and behind it one that prefills too.

Both are of a replica in the steady state of the load that is asked for: the sequences that decode to the next whole
one, and the mean prompt tokens of an iteration that prefills.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..formulas.language.named_calls import name_calls
from ..serve.iteration import tree
from ..serve.program import compile_iterations
from .chrome import Event, Timeline
from .stages import Drawing, Phase
from .values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..serve.serving import Serving


def serving_timeline(serving: Serving) -> Timeline:
    """The timeline of the iterations at the load of the answer.

    Raises:
        InputError: there is no steady state.
    """
    if serving.answer is None or (state := serving.answer.state) is None:
        raise InputError("timeline: there is no steady state of which iterations could be drawn")
    structure, p, evaluator = serving.run.structure, serving.plan.pp, serving.evaluators[0]
    sequences = max(1, math.ceil(state.decoding))
    groups = min(p, sequences)
    varying = {
        "decoding": sequences / groups,
        "chunk_tokens": max(1.0, state.chunk_tokens),
        "step_tokens": serving.draft_length + 1.0,
        "groups_in_flight": float(groups),
        "prefilling_ranks": 1.0,
    }
    kinds = ["decode"] * (serving.asked.generate > 1) + ["prefill" if serving.run.stack.apart else "mixed"]
    differing = not serving.requests.alike
    nodes = {kind: tree(structure, kind, differing=differing) for kind in kinds}
    with name_calls():
        named = [tree(structure, kind, differing=differing) for kind in kinds]
    values = Values(compile_iterations(structure, differing=differing), evaluator.inputs | varying, named)
    seconds = {kind: evaluator(kind, **varying) for kind in kinds}
    drawn = [
        Drawing(values, Phase.of(nodes[kind]), kind, (groups, p), seconds[kind], recurs=True, layers=True)
        for kind in kinds
    ]
    about = {
        "what": f"iterations of a replica as symperf predicts them: {serving!r}",
        "load_requests_per_s": serving.answer.load,
        "decoding_sequences": sequences,
        "chunk_tokens": varying["chunk_tokens"],
        **{f"{kind}_s": each for kind, each in seconds.items()},
    }
    names = tuple(f"stage {stage + 1} of {p}" for stage in range(p))
    return Timeline(values, names, about, _events(drawn, seconds))


def _events(drawn: list[Drawing], seconds: dict[str, float]) -> Iterator[Event]:
    begin = 0
    for each, (kind, time) in zip(drawn, seconds.items(), strict=True):
        for stage in range(each.p):
            yield Event(stage, begin, each.duration, "step", f"{kind} iteration", {"seconds": time})
        yield from each.events(begin, {})
        begin += each.duration
