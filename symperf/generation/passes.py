"""The schedule trees of an inference: the prefill of a batch of prompts, and the decode steps of a generation.

The first generated token comes out of prefill; each of the other G - 1 needs a decode step. The i-th step reads the
keys of the prompt and of i generated tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas import pipeline as pipe
from ..formulas.atoms import Max, less_one
from ..formulas.symbols import batch, dp, generate, micro_batch, num_layers, pp, prompt, tp
from ..kernels import pipeline_group
from ..schedule import Ends, Node, Repeat, Sequence, Steps
from ..schedule import sequence as in_sequence
from .ends import ModelEnds

if TYPE_CHECKING:
    from .structure import InferenceStructure

MICRO_BATCHES = pipe.micro_batch_count(batch, micro_batch, dp)
"""Micro-batches of a replica."""


def prefill(structure: InferenceStructure) -> Node:
    """All prompts through the model: micro-batches fill the pipeline one after the other.

    Time is (m + p - 1) times a stage's, and what the ends of the model add (`end_stages_time`).
    """
    ends = ModelEnds(structure, "prefill", micro_batch * prompt)
    stage = _stage(ends, ends.layer(*ends.prefill_attention(prompt)))
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
    stage = _stage(ends, ends.layer(*ends.decode_attention(count, prompt + 1)))
    each = in_sequence(
        Repeat(stage, Max(MICRO_BATCHES, pp)),
        Ends(ends.embedding(), ends.head(), MICRO_BATCHES, pp),
    )
    return Steps(each, count)


def _stage(ends: ModelEnds, layer: Sequence) -> Sequence:
    """A device's layers for one micro-batch, and the transfer to the next stage."""
    path = ends.path("pipeline/send")
    return in_sequence(
        Repeat(layer, num_layers / pp), ends.kernels.send(path, ends.stream_message / tp, pipeline_group())
    )
