"""Builds the closed forms of serving and compiles them; the only module of it that needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.lower import lower
from ..formulas.generation import closed_loops, disaggregation, lockstep, request_way, serving, speculative
from ..formulas.generation import queueing as waits
from ..formulas.language.formula import REGISTRY
from ..formulas.language.symbols import (
    SYMBOLS,
    UNITS,
    generate,
    prompt,
    strip_units,
)
from ..infer.footprint import parts, sequence_cache
from ..operations.schedule import Op, terms, time_of
from .iteration import KINDS, trees
from .program import Iterations

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..infer.structure import InferenceStructure

PAGES = (serving, request_way, waits, closed_loops, disaggregation, lockstep, speculative)


def build(structure: InferenceStructure, *, differing: bool = False) -> Iterations:
    """Compile the iterations of a structure, and what its memory holds; `differing` where prompts differ."""
    definitions, outputs = [], {}
    for kind, node in trees(structure, differing=differing).items():
        named = terms(node)
        stand_ins = {path: sympy.Symbol(path, nonnegative=True) for path in named}
        definitions += [(stand_ins[p], leaf.time) for p, leaf in named.items() if isinstance(leaf, Op)]
        outputs[kind] = time_of(node, lambda leaf: stand_ins[leaf.path])  # noqa: B023 - called at once
    outputs |= memory(structure)
    program = lower(definitions, outputs, share=True, stand_for=UNITS)
    resources = {name: SYMBOLS[name].resource for name in program.inputs}
    assert set(KINDS) <= set(program.outputs)
    return Iterations(program, {name: resource for name, resource in resources.items() if resource is not None})


def memory(structure: InferenceStructure) -> dict[str, Any]:
    """Bytes on the fullest device: of weights, and of the cache of a sequence, of its prompt and of its mean length."""
    return {
        "memory/weights": parts(structure)["weights"],
        "cache/sequence": sequence_cache(structure),
        "cache/prompt": sequence_cache(structure, prompt),
        "cache/mean": sequence_cache(structure, prompt + generate / 2),
    }


def forms() -> dict[str, Program]:
    """Every formula of the pages of serving as a program of its own."""
    pages = {page.__name__ for page in PAGES}
    return {
        name: lower([], {name: strip_units(record.expression)})
        for name, record in REGISTRY.items()
        if record.module in pages
    }
