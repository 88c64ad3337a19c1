"""Closed forms of a saturated iteration: its tree, its memory and its metrics; needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.lower import lower
from ..formulas.generation.serving import prompt_chunks, prompts_of_a_chunk, saturated_chunk_tokens
from ..formulas.language.atoms import less_one
from ..formulas.language.named_calls import remember_forms
from ..formulas.language.symbols import (
    SYMBOLS,
    UNITS,
    chunk,
    chunk_tokens,
    chunks,
    decoding,
    dp,
    generate,
    groups_in_flight,
    prompt,
)
from ..infer.build import demands, devices_of
from ..infer.footprint import parts
from ..models import counts
from ..operations.compiled import Compiled, Term
from ..operations.schedule import Op, executions, substitute, terms, time_of
from .build import memory
from .iteration import tree

if TYPE_CHECKING:
    from ..infer.structure import InferenceStructure
    from ..operations.schedule import Node


def prompt_tokens() -> Any:
    """Prompt tokens of the mean iteration of one group."""
    chunks_of_prompt = prompt_chunks(prompt, chunk)
    together = prompts_of_a_chunk(prompt, chunk)
    return saturated_chunk_tokens(decoding, prompt, less_one(generate), chunks_of_prompt, together)


@remember_forms(maxsize=16)
def iteration(structure: InferenceStructure) -> Node:
    """The schedule tree of the mean iteration."""
    return substitute(tree(structure, "mixed"), {chunk_tokens: prompt_tokens(), chunks: prompt_chunks(prompt, chunk)})


def memory_terms(structure: InferenceStructure) -> dict[str, Any]:
    """Named terms of the bytes on the fullest device."""
    found, sequences = parts(structure), decoding * groups_in_flight
    return {
        "weights": found["weights"],
        "workspace": found["runtime"],
        "kv_cache": sequences * found["sequence"],
        "activations": found["reserved"] + sequences * found["prompt"],
    }


def metrics(structure: InferenceStructure, time: Any) -> dict[str, Any]:
    """Closed forms of the answers; a request ends for each prompt that is prefilled."""
    devices = devices_of(structure)
    requests = dp * groups_in_flight * prompt_tokens() / prompt / time
    return {
        "time_per_token": time,
        "requests_per_s": requests,
        "tokens_per_s": requests * generate,
        "tokens_per_s_per_device": requests * generate / devices,
        "devices": devices,
        "parameters": counts.total_parameters(structure.architecture),
        "sequence_cache": memory(structure)["cache/sequence"],
    }


def build(structure: InferenceStructure) -> Compiled:
    """Compile the iteration of a structure."""
    node = iteration(structure)
    named = terms(node)
    stand_ins = {path: sympy.Symbol(path, nonnegative=True) for path in named}
    definitions = [(stand_ins[p], leaf.time) for p, leaf in named.items() if isinstance(leaf, Op)]
    time = sympy.Symbol("time", positive=True)
    definitions.append((time, time_of(node, lambda leaf: stand_ins[leaf.path])))
    outputs: dict[str, Any] = {"time": time}
    outputs |= metrics(structure, time)
    held = {f"memory/{name}": form for name, form in memory_terms(structure).items()}
    outputs |= held | {"memory": sympy.Add(*held.values())}
    outputs |= demands(named, executions(node))
    program = lower(definitions, outputs, share=True, stand_for=UNITS)
    resources = {name: SYMBOLS[name].resource for name in program.inputs}
    return Compiled(
        program,
        tuple(Term(path, idle=False) for path in named),
        {name: resource for name, resource in resources.items() if resource is not None},
    )
