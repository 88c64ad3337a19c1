"""The schedule trees of an inference: the prefill of a batch of prompts, and the decode steps of a generation.

The first generated token comes out of prefill; each of the other G - 1 needs a decode step. The i-th step of a decoder
reads the keys of the prompt and of i generated tokens. Where there is an encoder too, it reads the prompt: prefill is
its pass, keys and values of its output for the decoder, and the decoder's first step, whose token stands for the start;
the i-th step then attends to i + 1 tokens, and to the prompt. An encoder alone has prefill only.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import sympy

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
from ..formulas.memory import stage_memory as each
from ..formulas.parallel import pipeline as pipe
from ..models import counts
from ..models.sparse_counts import handed_selection
from ..operations.dealing import Dealing
from ..operations.groups import parts
from ..operations.kernels import pipeline_group
from ..operations.schedule import ZERO, Ends, Node, Repeat, Scheduled, Sequence, StepSeries
from ..operations.schedule import sequence as in_sequence
from .embedding_and_head import ModelEnds
from .hosted import Cached, beside_transfers
from .launches import launched, recorded
from .layer import Layer
from .prefix import behind_prefix, new_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Several

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
    layers, the first micro-batch passes all of them, and the others come at the pace of the slowest, with its end.
    """
    two = structure.architecture.stacks == 2
    last = ModelEnds(
        structure, "prefill", micro_batch if two else micro_batch * new_tokens(structure) / parts(structure)
    )
    # Both stacks look up tokens, but an encoder of sound makes its own of spectra.
    texts = two and not structure.architecture.spectra
    first = ModelEnds(structure, "prefill", micro_batch * (prompt + 1)) if texts else last
    layers = [(_prefill(layer), layer.kind) for layer, _ in layers_of(structure, "prefill")]
    ends = Ends(in_sequence(first.embedding(), *_encoder_ends(structure)), last.head(), micro_batches(), pp)
    passes = passes_of_stages(
        structure,
        last,
        (layers, ends),
        waits()[0],
        lambda all_, most: all_ + most * less_one(micro_batches()),
        [(micro_batch, prompt)],
    )
    return launched(structure, "prefill/launches", passes, micro_batch * new_tokens(structure) / parts(structure))


def _encoder_ends(structure: InferenceStructure) -> list[Any]:
    """What an encoder has before and after its layers, beside the embedding."""
    ends = ModelEnds(structure, "prefill", micro_batch * prompt)
    if structure.architecture.stacks == 1:
        return []
    spectra = ends.spectra() if structure.architecture.spectra else ()
    return [*spectra, ends.relative_bias(), ends.norm("encoder/norm") if structure.architecture.final_norm else None]


def _prefill(layer: Layer) -> Sequence:
    if layer.kind.cross:
        own = layer.mixer.over(1)  # type: ignore[union-attr]
        return layer.layer(lambda _: [own], cross=layer.cross.block(prompt, first=True))
    return layer.layer(behind_prefix if layer.structure.prefixed else lambda mixer: mixer.prefill(prompt))


def decode(structure: InferenceStructure, steps: Any = None) -> StepSeries:
    """The decode steps of a generation; in each, every micro-batch passes every stage once.

    A step takes max(m, p) times a stage's time: with fewer micro-batches than stages, a token waits for its
    predecessor to leave the last one. Where stages have other layers, it takes m times the slowest one's, or that of
    all of them.

    Args:
        structure: what gives it its form.
        steps: of the generation, by default G - 1.
    """
    count = less_one(generate) if steps is None else steps
    if not structure.generates:
        return StepSeries(in_sequence(), count)
    ends = ModelEnds(structure, "decode", micro_batch)
    layers = [(_decode(layer, count), layer.kind) for layer, _ in layers_of(structure, "decode")]
    both = Ends(ends.embedding(), ends.head(), micro_batches(), pp)
    step = passes_of_stages(
        structure,
        ends,
        (layers, both),
        waits()[1],
        lambda all_, most: Max(all_, most * micro_batches()),
        [(micro_batch, prompt + generate / 2)],
    )
    return StepSeries(recorded(structure, "decode/launches", step, micro_batch), count)


def passes_of_stages(
    structure: InferenceStructure,
    model_ends: ModelEnds,
    parts: tuple[Several[tuple[Node, LayerKind]], Ends],
    count: Any,
    paced: Callable[[Any, Any], Any],
    cached: list[Cached],
) -> Node:
    """The passes of all micro-batches through the stages, and the ends of the model.

    Args:
        structure: what gives it its form.
        model_ends: have the transfer to the next stage.
        parts: one layer of each kind that a pass runs, with its kind; and the ends.
        count: how often a stage is waited for where stages are equal.
        paced: the time where they have other layers, from that of all of them and that of the slowest, each with ends.
        cached: sequences, and the tokens of each that a pass reads in the cache or writes into it.
    """
    layers, ends = parts
    dealing, kinds = dealing_of(structure), len(structure.architecture.kinds)
    path, group = model_ends.path("pipeline/send"), pipeline_group(model_ends.structure)
    of_host = functools.partial(beside_transfers, structure, model_ends.phase)
    layers = [(of_host(layer, kind, root_of(kind, kinds), cached), kind) for layer, kind in layers]
    handed = model_ends.tokens * handed_selection(structure.architecture) * statistic_bytes
    send = model_ends.kernels.send(path, (model_ends.stage_message + handed) / tp, group)

    def stage(held: Callable[[Any], Any]) -> Sequence:
        return in_sequence(*(Repeat(layer, held(number_of(kind, kinds))) for layer, kind in layers), send)

    mean = stage(lambda of_model: of_model / pp)
    if not dealing.differs:
        return in_sequence(Repeat(mean, count), ends)
    stages = [stage(functools.partial(dealing.on_stage, number=number)) for number in dealing.deciding]
    # Once each, whose number is known to be that of the ends.
    both = [Ends(end, in_sequence(), sympy.S.One, sympy.S.One) for end in (ends.first, ends.last)]

    def rule(mean_time: Any, first_time: Any, last_time: Any, *times: Any) -> Any:
        slowest = Max(
            *(
                time + each.is_first_stage(number) * first_time + each.is_last_stage(number, pp) * last_time
                for number, time in zip(dealing.deciding, times, strict=True)
            )
        )
        return paced(mean_time * pp + first_time + last_time, slowest)

    counts = (count, *(ends.micro_batches,) * 2, *(ZERO,) * len(stages))
    return Scheduled((mean, *both, *stages), counts, rule)


def dealing_of(structure: InferenceStructure) -> Dealing:
    """How the layers of a structure are dealt to stages."""
    return Dealing(structure.segments, structure.stages)


def _decode(layer: Layer, steps: Any) -> Sequence:
    first = 2 if layer.kind.cross else prompt + 1
    cross = layer.cross.block(prompt, first=False) if layer.kind.cross else ()
    return layer.layer(lambda mixer: mixer.decode((steps, first)), cross=cross)


def layers_of(structure: InferenceStructure, phase: str) -> list[tuple[Layer, Any]]:
    """The layers of each kind that a phase runs, and how many there are; a decode step leaves out an encoder."""
    kinds = structure.architecture.kinds
    return [
        (
            Layer(structure, phase, _tokens(structure, kind, phase), kind, root_of(kind, len(kinds))),
            number_of(kind, len(kinds)),
        )
        for kind in kinds
        if not (kind.encoder and phase == "decode")
    ]


def number_of(kind: LayerKind, kinds: int) -> Any:
    """The number of layers of a kind."""
    return num_layers if kinds == 1 else counts.count_of(kind)


def root_of(kind: LayerKind, kinds: int) -> str:
    """The folder of the paths of a kind of layers; each has its own where there are several."""
    return "layer" if kinds == 1 else f"layer/{kind.label}"


def _tokens(structure: InferenceStructure, kind: LayerKind, phase: str) -> Any:
    """New tokens of a pass on one device: of prompts its part, of a decode step all."""
    return micro_batch if phase == "decode" or kind.cross else micro_batch * new_tokens(structure) / parts(structure)
