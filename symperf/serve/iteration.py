"""One iteration of continuous batching as a schedule tree: new tokens of decoding sequences, and chunks of prompts.

Linear layers see all new tokens of a group in one product; attention to the caches of decoding sequences and that of
the chunks are kernels of their own. With p pipeline stages, up to p groups of sequences are in flight, and an
iteration is one pass of every group through every stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max
from ..formulas.language.symbols import chunk_tokens, decoding, groups_in_flight, pp, prompt, step_tokens
from ..infer.embedding_and_head import ModelEnds
from ..infer.launches import launched, recorded
from ..infer.passes import number_of, passes_of_stages, root_of
from ..operations.schedule import Ends, Node
from .attention import NEW_TOKENS, IterationLayer

if TYPE_CHECKING:
    from ..infer.structure import InferenceStructure

KINDS = ("decode", "mixed", "prefill")
"""Iterations that only decode, that do both, and that only prefill."""


def trees(structure: InferenceStructure) -> dict[str, Node]:
    """The schedule tree of each kind of iteration."""
    return {kind: tree(structure, kind) for kind in KINDS}


def tree(structure: InferenceStructure, kind: str) -> Node:
    """The schedule tree of a kind: every stage for one group, repeated, and the ends of the model for each group.

    Where stages have other layers, all groups pass the slowest, or one passes all, whichever takes longer.
    """
    ends = ModelEnds(structure, kind, NEW_TOKENS[kind])
    passed = [(layer.tree(), layer.kind) for layer, _ in layers(structure, kind)]
    both = Ends(ends.embedding(), ends.head(logit_rows(kind)), groups_in_flight, pp)
    passes = passes_of_stages(
        structure, ends, (passed, both), pp, lambda all_, most: Max(all_, most * groups_in_flight)
    )
    return recorded(structure, passes) if kind == "decode" else launched(structure, f"{kind}/launches", passes)


def layers(structure: InferenceStructure, kind: str) -> list[tuple[IterationLayer, Any]]:
    """The layers of each kind that a model has, and how many there are."""
    found = structure.architecture.kinds
    return [
        (
            IterationLayer(structure, kind, NEW_TOKENS[kind], each, root_of(each, len(found))),
            number_of(each, len(found)),
        )
        for each in found
    ]


def logit_rows(kind: str) -> Any:
    """Tokens that need logits: those of decoding sequences, and the last one of each prompt that ends."""
    rows = decoding * step_tokens if kind != "prefill" else 0
    return rows + (chunk_tokens / prompt if kind != "decode" else 0)
