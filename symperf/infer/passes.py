"""The schedule trees of an inference: the prefill of a batch of prompts, and the decode steps of a generation.

The first generated token comes out of prefill; each of the other G - 1 needs a decode step. The i-th step of a decoder
reads the keys of the prompt and of i generated tokens. Where there is an encoder too, it reads the prompt: prefill is
its pass, keys and values of its output for the decoder, and the decoder's first step, whose token stands for the start;
the i-th step then attends to i + 1 tokens, and to the prompt. An encoder alone has prefill only.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max, less_one
from ..formulas.language.symbols import (
    batch,
    dp,
    generate,
    micro_batch,
    num_layers,
    pp,
    prompt,
    statistic_bytes,
    tp,
)
from ..formulas.parallel import pipeline as pipe
from ..models import counts
from ..models.sparse_counts import handed_selection
from ..operations.dealing import Dealing
from ..operations.kernels import pipeline_group
from ..operations.schedule import ZERO, Ends, Node, Repeat, Scheduled, Sequence, StepSeries
from ..operations.schedule import sequence as in_sequence
from .embedding_and_head import ModelEnds
from .layer import Layer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.architecture import LayerKind
    from .structure import InferenceStructure


def micro_batches() -> Any:
    """Micro-batches of a replica."""
    return pipe.micro_batch_count(batch, micro_batch, dp)


def waits() -> tuple[Any, Any]:
    """How often a stage is waited for in prefill and in a decode step; it works once for each micro-batch."""
    return micro_batches() + less_one(pp), Max(micro_batches(), pp)


def worked(count: Any) -> Any:
    """How often a device runs what the time counts `count` times, in `count_operations`."""
    return micro_batches() if count in waits() else count


def prefill(structure: InferenceStructure) -> Node:
    """All prompts through the model: micro-batches fill the pipeline one after the other.

    Time is (m + p - 1) times a stage's, and what the ends of the model add (`end_stages_time`). Where stages have other
    kinds of layers, the first micro-batch passes all of them, and the others come at the pace of the slowest.
    """
    two = structure.architecture.stacks == 2
    last = ModelEnds(structure, "prefill", micro_batch if two else micro_batch * prompt)
    first = ModelEnds(structure, "prefill", micro_batch * (prompt + 1)) if two else last
    layers = [(_prefill(layer), layer.kind) for layer, _ in layers_of(structure, "prefill")]
    return in_sequence(
        passes_of_stages(
            structure, last, layers, waits()[0], lambda mean, most: mean * pp + most * less_one(micro_batches())
        ),
        Ends(in_sequence(first.embedding(), *_encoder_ends(structure)), last.head(), micro_batches(), pp),
    )


def _encoder_ends(structure: InferenceStructure) -> list[Any]:
    """What an encoder has before and after its layers, beside the embedding."""
    ends = ModelEnds(structure, "prefill", micro_batch * prompt)
    if structure.architecture.stacks == 1:
        return []
    return [ends.relative_bias(), ends.norm("encoder/norm") if structure.architecture.final_norm else None]


def _prefill(layer: Layer) -> Sequence:
    if layer.kind.cross:
        own = layer.mixer.over(1)  # type: ignore[union-attr]
        return layer.layer(own, cross=layer.cross.block(prompt, first=True))
    return layer.layer(*(layer.mixer.prefill(prompt) if layer.mixer else ()))


def decode(structure: InferenceStructure, steps: Any = None) -> StepSeries:
    """The decode steps of a generation; in each, every micro-batch passes every stage once.

    A step takes max(m, p) times a stage's time: with fewer micro-batches than stages, a token waits for its
    predecessor to leave the last one. Where stages have other kinds of layers, it takes m times the slowest one's, or
    that of all of them.

    Args:
        structure: what gives it its form.
        steps: of the generation, by default G - 1.
    """
    count = less_one(generate) if steps is None else steps
    if not structure.generates:
        return StepSeries(in_sequence(), count)
    ends = ModelEnds(structure, "decode", micro_batch)
    layers = [(_decode(layer, count), layer.kind) for layer, _ in layers_of(structure, "decode")]
    each = in_sequence(
        passes_of_stages(
            structure, ends, layers, waits()[1], lambda mean, most: Max(mean * pp, most * micro_batches())
        ),
        Ends(ends.embedding(), ends.head(), micro_batches(), pp),
    )
    return StepSeries(each, count)


def passes_of_stages(
    structure: InferenceStructure,
    ends: ModelEnds,
    layers: list[tuple[Sequence, LayerKind]],
    count: Any,
    paced: Callable[[Any, Any], Any],
) -> Node:
    """The passes of all micro-batches through the stages, without the ends of the model.

    Args:
        structure: what gives it its form.
        ends: have the transfer to the next stage.
        layers: one layer of each kind that a pass runs, with its kind.
        count: how often a stage is waited for where stages are equal.
        paced: the time where they have other kinds of layers, from that of the mean stage and that of the slowest.
    """
    dealing, kinds = Dealing(structure.segments), len(structure.architecture.kinds)
    handed = ends.tokens * handed_selection(structure.architecture) * statistic_bytes
    message = (ends.stage_message + handed) / tp
    send = ends.kernels.send(ends.path("pipeline/send"), message, pipeline_group(ends.structure))

    def stage(held: Callable[[Any], Any]) -> Sequence:
        return in_sequence(*(Repeat(layer, held(number_of(kind, kinds))) for layer, kind in layers), send)

    mean = stage(lambda of_model: of_model / pp)
    if not dealing.unequal:
        return Repeat(mean, count)
    stages = [stage(functools.partial(dealing.on_stage, number=number)) for number in dealing.deciding]
    return Scheduled((mean, *stages), (count, *(ZERO,) * len(stages)), lambda mean, *each: paced(mean, Max(*each)))


def _decode(layer: Layer, steps: Any) -> Sequence:
    first = 2 if layer.kind.cross else prompt + 1
    core = layer.mixer.decode((steps, first)) if layer.mixer else []
    return layer.layer(*core, cross=layer.cross.block(prompt, first=False) if layer.kind.cross else ())


def layers_of(structure: InferenceStructure, phase: str) -> list[tuple[Layer, Any]]:
    """The layers of each kind that a phase runs, and how many there are; a decode step leaves out an encoder."""
    kinds = structure.architecture.kinds
    return [
        (Layer(structure, phase, _tokens(kind, phase), kind, root_of(kind, len(kinds))), number_of(kind, len(kinds)))
        for kind in kinds
        if not (kind.encoder and phase == "decode")
    ]


def number_of(kind: LayerKind, kinds: int) -> Any:
    """The number of layers of a kind."""
    return num_layers if kinds == 1 else counts.count_of(kind)


def root_of(kind: LayerKind, kinds: int) -> str:
    """The folder of the paths of a kind of layers; each has its own where there are several."""
    return "layer" if kinds == 1 else f"layer/{kind.label}"


def _tokens(kind: LayerKind, phase: str) -> Any:
    return micro_batch if phase == "decode" or kind.cross else micro_batch * prompt
