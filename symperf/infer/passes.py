"""The schedule trees of an inference: the prefill of a batch of prompts, and the decode steps of a generation.

The first generated token comes out of prefill; each of the other G - 1 needs a decode step. The i-th step of a decoder
reads the keys of the prompt and of i generated tokens. Where there is an encoder too, it reads the prompt: prefill is
its pass, keys and values of its output for the decoder, and the decoder's first step, whose token stands for the start;
the i-th step then attends to i + 1 tokens, and to the prompt. An encoder alone has prefill only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max, less_one
from ..formulas.language.symbols import batch, dp, generate, micro_batch, num_layers, pp, prompt, tp
from ..formulas.parallel import pipeline as pipe
from ..models import counts
from ..operations.kernels import pipeline_group
from ..operations.schedule import Ends, Node, Repeat, Sequence, StepSeries
from ..operations.schedule import sequence as in_sequence
from .embedding_and_head import ModelEnds
from .layer import Layer

if TYPE_CHECKING:
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

    Time is (m + p - 1) times a stage's, and what the ends of the model add (`end_stages_time`).
    """
    two = structure.architecture.stacks == 2
    last = ModelEnds(structure, "prefill", micro_batch if two else micro_batch * prompt)
    first = ModelEnds(structure, "prefill", micro_batch * (prompt + 1)) if two else last
    return in_sequence(
        Repeat(
            _stage(last, [(_prefill(layer), n) for layer, n in layers_of(structure, "prefill")]),
            waits()[0],
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
    predecessor to leave the last one.

    Args:
        structure: what gives it its form.
        steps: of the generation, by default G - 1.
    """
    count = less_one(generate) if steps is None else steps
    if not structure.generates:
        return StepSeries(in_sequence(), count)
    ends = ModelEnds(structure, "decode", micro_batch)
    stage = _stage(ends, [(_decode(layer, count), n) for layer, n in layers_of(structure, "decode")])
    each = in_sequence(
        Repeat(stage, waits()[1]),
        Ends(ends.embedding(), ends.head(), micro_batches(), pp),
    )
    return StepSeries(each, count)


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


def _stage(ends: ModelEnds, layers: list[tuple[Sequence, Any]]) -> Sequence:
    """A device's layers for one micro-batch, and the transfer to the next stage."""
    path = ends.path("pipeline/send")
    return in_sequence(
        *(Repeat(layer, count / pp) for layer, count in layers),
        ends.kernels.send(path, ends.stream_message / tp, pipeline_group(ends.structure)),
    )
