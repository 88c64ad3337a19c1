"""The schedule trees of an inference: the prefill of a batch of prompts, and the decode steps of a generation.

The first generated token comes out of prefill; each of the other G - 1 needs a decode step. The i-th step reads the
keys of the prompt and of i generated tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import counts
from ..formulas import pipeline as pipe
from ..formulas.atoms import Max, less_one
from ..formulas.symbols import batch, dp, generate, micro_batch, num_layers, pp, prompt, tp
from ..kernels import pipeline_group
from ..schedule import Ends, Node, Repeat, Sequence, Steps
from ..schedule import sequence as in_sequence
from .ends import ModelEnds
from .layer import Layer

if TYPE_CHECKING:
    from .structure import InferenceStructure

MICRO_BATCHES = pipe.micro_batch_count(batch, micro_batch, dp)
"""Micro-batches of a replica."""


def prefill(structure: InferenceStructure) -> Node:
    """All prompts through the model: micro-batches fill the pipeline one after the other.

    Time is (m + p - 1) times a stage's, and what the ends of the model add (`end_stages_time`).
    """
    ends = ModelEnds(structure, "prefill", micro_batch * prompt)
    stage = _stage(ends, [(layer.layer(*layer.prefill_attention(prompt)), n) for layer, n in layers_of(ends)])
    return in_sequence(
        Repeat(stage, MICRO_BATCHES + less_one(pp)),
        Ends(ends.embedding(), ends.head(), MICRO_BATCHES, pp),
    )


def decode(structure: InferenceStructure, steps: Any = None) -> Steps:
    """The decode steps of a generation; in each, every micro-batch passes every stage once.

    A step takes max(m, p) times a stage's time: with fewer micro-batches than stages, a token waits for its
    predecessor to leave the last one.

    Args:
        structure: what gives it its form.
        steps: of the generation, by default G - 1.
    """
    count = less_one(generate) if steps is None else steps
    ends = ModelEnds(structure, "decode", micro_batch)
    stage = _stage(ends, [(layer.layer(*layer.decode_attention(count, prompt + 1)), n) for layer, n in layers_of(ends)])
    each = in_sequence(
        Repeat(stage, Max(MICRO_BATCHES, pp)),
        Ends(ends.embedding(), ends.head(), MICRO_BATCHES, pp),
    )
    return Steps(each, count)


def layers_of(ends: ModelEnds) -> list[tuple[Layer, Any]]:
    """The layers of each kind, and how many there are; a kind has its own folder of paths where there are several."""
    kinds = ends.architecture.kinds
    if len(kinds) == 1:
        return [(Layer(ends.structure, ends.phase, ends.tokens, kinds[0]), num_layers)]
    return [
        (
            Layer(ends.structure, ends.phase, ends.tokens, kind, f"layer/{kind.mixer}_{kind.ffn}"),
            counts.count_of(kind),
        )
        for kind in kinds
    ]


def _stage(ends: ModelEnds, layers: list[tuple[Sequence, Any]]) -> Sequence:
    """A device's layers for one micro-batch, and the transfer to the next stage."""
    path = ends.path("pipeline/send")
    return in_sequence(
        *(Repeat(layer, count / pp) for layer, count in layers),
        ends.kernels.send(path, ends.stream_message / tp, pipeline_group()),
    )
