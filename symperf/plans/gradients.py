"""What of a training step needs gradients, where parts of the model are frozen.

A product of a frozen layer has no gradient of its weights; that of its input is needed where something trained lies
below, that is, earlier in the forward pass. A layer of which nothing, and below which nothing, is trained has no
backward pass at all. Of the layers, kinds that come one after another (`Structure.segments`) are told apart; of kinds
that interleave, gradients reach all if they reach one. In the lowest layer that has something trained they end there;
where adapters are trained they pass the whole of it, as under transformers' `enable_input_require_grads`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from .adapted_layers import layers_adapted
from .freezing import LAYERS, end_classes, layer_classes

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from .structure import Structure


class Gradients:
    """Which parts of a structure's step have gradients.

    Args:
        structure: of the step.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure, self.architecture = structure, structure.architecture
        self.frozen = frozenset(structure.frozen)

    def trains(self, name: str) -> bool:
        """Whether a class of parameters is trained, if the model has it."""
        return name not in self.frozen

    @property
    def table(self) -> str:
        """The class of the table of tokens."""
        return "table" if self.architecture.tied_embeddings else "embedding"

    @property
    def vocabulary(self) -> str:
        """The class of the product that gives the logits."""
        return "table" if self.architecture.tied_embeddings else "head"

    def trained_in(self, kind: LayerKind) -> set[str]:
        """The classes of a layer that are trained."""
        return {*layer_classes(self.architecture, kind)} - self.frozen

    def adapts(self, kind: LayerKind) -> set[str]:
        """The linear layers of a kind of layer that have adapters."""
        return layers_adapted(self.architecture, kind, self.structure.adapted)

    def reads(self, name: str, *layers: str) -> bool:
        """Whether a gradient of weights reads the input of linear layers: their class is trained, or an adapter."""
        return self.trains(name) or any(layer in self.structure.adapted for layer in layers)

    @property
    def encoders(self) -> bool:
        """Whether something is trained of what makes tokens of images or sound."""
        return any(self.trains(each.part) or self.trains("projector") for each in self.structure.encoders)

    @property
    def embeds(self) -> bool:
        """Whether something is trained before the first layer: tables, or what makes tokens of images or sound."""
        ends = {*end_classes(self.architecture)} & {"embedding", "table"}
        return bool(ends - self.frozen) or self.encoders

    def flows(self, kind: LayerKind) -> bool:
        """Whether gradients reach layers of a kind."""
        if not self.frozen or self.embeds:
            return True
        place, kinds = self._place(kind), self.architecture.kinds
        return any((self.trained_in(each) or self.adapts(each)) and self._place(each) <= place for each in kinds)

    def _place(self, kind: LayerKind) -> int:
        """The group of kinds, in the order of the layers, that a kind belongs to."""
        return next((at for at, group in enumerate(self.structure.segments) if kind.count in group), 0)

    @property
    def through_layers(self) -> bool:
        """Whether gradients leave the head for the layers."""
        return any(self.flows(kind) for kind in self.architecture.kinds)

    @property
    def through_modules(self) -> bool:
        """Whether gradients pass the layers of modules for multi-token prediction."""
        return self.trains("multi_token") or self.through_layers

    def ends_in(self, kind: LayerKind) -> bool:
        """Whether gradients end in the lowest layer of a kind."""
        if not self.frozen or self.embeds or not self.trained_in(kind):
            return False
        kinds = [each for each in self.architecture.kinds if self.trained_in(each)]
        return kind.count == kinds[0].count or self.architecture.uniform_dense


@lru_cache(maxsize=256)
def gradients_of(structure: Structure) -> Gradients:
    """Which parts of a structure's step have gradients."""
    return Gradients(structure)


def module_frozen(structure: Structure) -> tuple[str, ...]:
    """What is frozen in the layer of a module for multi-token prediction: all of it, or nothing."""
    return LAYERS if "multi_token" in structure.frozen else ()
