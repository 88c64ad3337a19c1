"""Encoders of images and sound as operations: before the embedding, on the first stage of a pipeline.

Megatron-Core has the encoder of a multimodal model on the first stage only (megatron/core/models/multimodal/
llava_model.py, `add_encoder`), and so it is here, projector and embedding with it: every micro-batch passes them there,
and what they add to that stage may pace the pipeline. Of sizes and splits see `memory.encoder_counts`. Layers are
recomputed as the language model's are. Stem and projector are products alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models import counts
from ...operations.kernels import Kernels
from ...operations.schedule import Repeat
from ...operations.schedule import sequence as in_sequence
from ...plans.gradients import gradients_of
from ..layers.transformer import Decoder
from ..memory.encoder_counts import encoder_structure, in_sizes, rows

if TYPE_CHECKING:
    from ...models.towers import Product
    from ...operations.schedule import Node, Sequence
    from ...plans.encoders import EncoderInput, EncoderPart
    from ...plans.structure import Structure


class Encoders:
    """Both passes of a micro-batch's images and recordings through the encoders of a structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure, self.gradients = structure, gradients_of(structure)
        self.kernels = Kernels(encoder_structure(structure, structure.encoders[0]))

    def forward(self) -> Sequence:
        """Stem, layers and projector of each."""
        return in_sequence(*(self._forward(*each) for each in self._inputs()))

    def backward(self) -> Sequence:
        """Gradients of what is trained of them: of images none are needed."""
        return in_sequence(*(self._backward(*each) for each in reversed(self._inputs())))

    def _inputs(self) -> list[tuple[EncoderPart, EncoderInput, str]]:
        """Each input with its encoder, and the first part of its paths."""
        return [
            (part, read, part.part if len(part.inputs) == 1 else f"{part.part}/{place}")
            for part in self.structure.encoders
            for place, read in enumerate(part.inputs, 1)
        ]

    def _layers(self, part: EncoderPart, read: EncoderInput, root: str, *, backward: bool = False) -> list[Node]:
        found: list[Node] = []
        kinds = counts.kinds_with_counts(part.architecture)
        for count, kind in kinds:
            path = f"{root}/layer/{kind.label}" if len(kinds) > 1 else f"{root}/layer"
            decoder = Decoder(encoder_structure(self.structure, part), kind, path)
            node = Repeat(decoder.layer_backward() if backward else decoder.layer_forward(), count)
            found.append(in_sizes(node, part, read))
        return found

    def _forward(self, part: EncoderPart, read: EncoderInput, root: str) -> Sequence:
        return in_sequence(
            *(self._product(f"{root}/stem/{each.name}", each, read, "forward") for each in part.stem),
            *self._layers(part, read, root),
            *(self._product(f"{root}/projector/{each.name}", each, read, "forward") for each in part.projector),
        )

    def _backward(self, part: EncoderPart, read: EncoderInput, root: str) -> Sequence:
        inside, outside = self.gradients.trains(part.part), self.gradients.trains("projector")
        found: list[Node] = []
        for chain in reversed(part.chains):
            for each in reversed(chain):
                path = f"{root}/projector/{each.name}"
                if inside or (outside and each is not chain[0]):
                    found.append(self._product(path, each, read, "backward_input"))
                if outside:
                    found.append(self._product(path, each, read, "backward_weight"))
        if inside:
            found += reversed(self._layers(part, read, root, backward=True))
            stem = reversed(part.stem)
            found += [self._product(f"{root}/stem/{each.name}", each, read, "backward_weight") for each in stem]
        return in_sequence(*found)

    def _product(self, path: str, product: Product, read: EncoderInput, phase: str) -> Node:
        many, shape = rows(product, read), (product.inputs, product.outputs)
        if phase == "backward_weight":
            op = self.kernels.weight_gradient(f"{path}/{phase}", many, *shape)
        else:
            inner, columns = shape if phase == "forward" else shape[::-1]
            op = self.kernels.matmul(f"{path}/{phase}", many, columns, inner)
        return Repeat(op, product.copies) if product.copies > 1 else op
