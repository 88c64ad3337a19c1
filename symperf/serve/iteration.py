"""One iteration of continuous batching as a schedule tree: new tokens of decoding sequences, and chunks of prompts.

Linear layers see all new tokens of a group in one product; attention to the caches of decoding sequences and that of
the chunks are kernels of their own. With p pipeline stages, up to p groups of sequences are in flight, and an
iteration is one pass of every group through every stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.language.atoms import Max
from ..formulas.language.symbols import chunk_tokens, decoding, generate, groups_in_flight, pp, prompt, step_tokens
from ..infer.embedding_and_head import ModelEnds
from ..infer.launches import launched, recorded
from ..infer.passes import number_of, passes_of_stages, root_of
from ..operations.schedule import Ends, Node
from .attention import CONTEXT, COUNT, IterationLayer, new_tokens

if TYPE_CHECKING:
    from ..infer.structure import InferenceStructure

KINDS = ("decode", "mixed", "prefill")
"""Iterations that only decode, that do both, and that only prefill."""


def trees(structure: InferenceStructure, *, differing: bool = False) -> dict[str, Node]:
    """The schedule tree of each kind of iteration."""
    return {kind: tree(structure, kind, differing=differing) for kind in KINDS}


def tree(structure: InferenceStructure, kind: str, *, differing: bool = False) -> Node:
    """The schedule tree of a kind: every stage for one group, repeated, and the ends of the model for each group.

    Where stages have other layers, all groups pass the slowest, or one passes all, whichever takes longer.
    """
    ends = ModelEnds(structure, kind, new_tokens(structure, kind))
    passed = [(layer.tree(), layer.kind) for layer, _ in layers(structure, kind, differing=differing)]
    rows = logit_rows(kind, drafts=structure.architecture.draft_head != "none")
    both = Ends(ends.embedding(), ends.head(rows), groups_in_flight, pp)
    cached = [(decoding, prompt + generate / 2)] if kind != "prefill" else []
    cached += [(COUNT, CONTEXT)] if kind != "decode" else []
    passes = passes_of_stages(
        structure, ends, (passed, both), pp, lambda all_, most: Max(all_, most * groups_in_flight), cached
    )
    started = recorded if kind == "decode" else launched
    of_sequences = (kind, structure.graphs) == ("decode", "decoding")
    tokens = decoding if of_sequences else new_tokens(structure, kind)
    return started(structure, f"{kind}/launches", passes, tokens)


def layers(structure: InferenceStructure, kind: str, *, differing: bool = False) -> list[tuple[IterationLayer, Any]]:
    """The layers of each kind that a model has, and how many there are."""
    found = []
    for each in structure.architecture.kinds:
        count = len(structure.architecture.kinds)
        layer = IterationLayer(structure, kind, new_tokens(structure, kind), each, root_of(each, count))
        layer.differing = differing
        found.append((layer, number_of(each, count)))
    return found


def logit_rows(kind: str, *, drafts: bool = False) -> Any:
    """Tokens that need logits: those of decoding sequences, and the last one of each prompt that ends.

    A head drafts behind the last token of a sequence only (vLLM, v1/spec_decode/eagle.py).
    """
    rows = decoding * (1 if drafts else step_tokens) if kind != "prefill" else 0
    return rows + (chunk_tokens / prompt if kind != "decode" else 0)
