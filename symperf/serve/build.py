"""Builds the closed forms of serving and compiles them; the only module of it that needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.lower import lower
from ..formulas.generation import closed_loops, disaggregation, lockstep, serving, speculative
from ..formulas.generation import queueing as waits
from ..formulas.language.atoms import less_one
from ..formulas.language.formula import REGISTRY
from ..formulas.language.symbols import (
    SYMBOLS,
    chunk,
    collective_buffer_bytes,
    context_bytes,
    fragmentation,
    generate,
    pp,
    prompt,
    statistic_bytes,
    step_tokens,
    strip_units,
    vocab_size,
    workspace_bytes,
)
from ..infer.footprint import exchange_buffers, footprint, sequence_cache, sequence_terms
from ..operations.schedule import Op, terms, time_of
from .iteration import KINDS, trees
from .program import Iterations

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..infer.structure import InferenceStructure

PAGES = (serving, waits, closed_loops, disaggregation, lockstep, speculative)


def build(structure: InferenceStructure, *, differing: bool = False) -> Iterations:
    """Compile the iterations of a structure, and what its memory holds; `differing` where prompts differ."""
    definitions, outputs = [], {}
    for kind, node in trees(structure, differing=differing).items():
        named = terms(node)
        stand_ins = {path: sympy.Symbol(path, nonnegative=True) for path in named}
        definitions += [(stand_ins[p], strip_units(leaf.time)) for p, leaf in named.items() if isinstance(leaf, Op)]
        outputs[kind] = strip_units(time_of(node, lambda leaf: stand_ins[leaf.path]))  # noqa: B023 - called at once
    outputs |= {name: strip_units(form) for name, form in memory(structure).items()}
    program = lower(definitions, outputs, share=True)
    resources = {name: SYMBOLS[name].resource for name in program.inputs}
    assert set(KINDS) <= set(program.outputs)
    return Iterations(program, {name: resource for name, resource in resources.items() if resource is not None})


def memory(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes on the fullest device: always there, for each sequence, and of the cache of a prompt and of the mean.

    The activations of new tokens are those of `footprint`, for a token: a residual stream and one block's tensors. A
    recurrent layer keeps the state behind each token of a step, until the step is verified.
    """
    named = footprint(structure)
    weights = sympy.Add(*(form for name, form in named.items() if name.startswith("weights/")))
    lost = 1 + fragmentation
    token, logits = lost * _activations_of_a_token(structure), lost * vocab_size * statistic_bytes
    kept = sequence_terms(structure).get("state", 0)
    workspace = workspace_bytes + context_bytes + collective_buffer_bytes + named.get("workspace/offload", 0)
    workspace += sum(exchange_buffers(structure).values())
    if structure.architecture.draft_head != "none":
        # It runs between steps of the model, in the model's own buffers.
        workspace = token = logits = sympy.S.Zero
    return {
        "memory/weights": weights,
        "memory/fixed": weights + workspace + chunk * token + logits,
        "memory/sequence": sequence_cache(structure)
        + less_one(step_tokens) * kept
        + step_tokens * (token + logits) / pp,
        "cache/sequence": sequence_cache(structure),
        "cache/prompt": sequence_cache(structure, prompt),
        "cache/mean": sequence_cache(structure, prompt + generate / 2),
    }


def _activations_of_a_token(structure: InferenceStructure) -> Any:
    from ..formulas.language.symbols import micro_batch
    from ..infer.footprint import activations

    one = activations(structure).xreplace({micro_batch: sympy.S.One})
    return (one - vocab_size * statistic_bytes) / prompt


def forms() -> dict[str, Program]:
    """Every formula of the pages of serving as a program of its own."""
    pages = {page.__name__ for page in PAGES}
    return {
        name: lower([], {name: strip_units(record.expression)})
        for name, record in REGISTRY.items()
        if record.module in pages
    }
