"""The layers of a structure, a decoder for each kind of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.language.symbols import num_layers
from ...models import counts
from ...models.architecture import UNIFORM
from ..layers.shared_block import SharedBlock
from ..layers.transformer import Decoder

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure


def decoders_of(structure: Structure) -> tuple[Decoder, list[tuple[Decoder, Any]]]:
    """The layers of each kind with their count; and those of the stack that ends in the head.

    Kinds that differ only by a window are one where attention computes every pair.
    """
    kinds = structure.architecture.kinds
    if structure.architecture.uniform_dense and (len(kinds) == 1 or structure.attention == "eager"):
        decoder = Decoder(structure, kinds[0] if len(kinds) == 1 else UNIFORM)
        return decoder, [(decoder, num_layers)]
    found = [
        (
            (SharedBlock if kind.shared else Decoder)(structure, kind, root_of(kind) if len(kinds) > 1 else "layer"),
            counts.count_of(kind),
        )
        for kind in kinds
    ]
    return found[-1][0], found


def root_of(kind: LayerKind) -> str:
    """The first part of the paths of a kind of layers, in a model of several: what its count is called.

    >>> from symperf.models.architecture import LayerKind
    >>> root_of(LayerKind("ssm", "none", "num_ssm_layers"))
    'layer/ssm'
    """
    return f"layer/{kind.label}"
