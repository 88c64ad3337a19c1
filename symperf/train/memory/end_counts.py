"""Parameters of the ends of a model on one device in training: tables, encoders before them, norm and head.

Frozen classes of parameters may be left out: what is left has gradients and a state of the optimizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max, above_one, ceil_div, complement
from ...formulas.language.symbols import hidden_size, pp, stage_number, tp, vocab_size
from ...formulas.memory import parameters as par
from ...formulas.memory import stage_memory as each
from ...models import counts
from ...plans.freezing import end_classes
from ...plans.gradients import gradients_of
from .encoder_counts import encoder_parameters
from .multi_token_counts import apart, copied_parameters, is_module_stage

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...plans.structure import Structure

ZERO = sympy.S.Zero


def fullest_ends(structure: Structure, frozen: Collection[str] = ()) -> Any:
    """Parameters of the larger end, as `counts.stage_end_parameters`; under DualPipe one device has both."""
    first, last = first_end(structure, frozen), last_end(structure, frozen)
    if structure.schedule == "dualpipe":
        return first + last
    copies = _tied_copy(structure, frozen) + _copied(structure, frozen)
    return Max(first + complement(above_one(pp)) * last, above_one(pp) * (last + copies))


def stage_ends(structure: Structure, frozen: Collection[str] = ()) -> Any:
    """Parameters of the tables, norm and head on the device of stage i; a tied table is copied to the last stage."""
    tables, head = first_end(structure, frozen), last_end(structure, frozen)
    first, last = each.is_first_stage(stage_number), each.is_last_stage(stage_number, pp)
    if structure.schedule == "dualpipe":
        return (first + last) * (tables + head)
    if structure.architecture.tied_embeddings:
        head += above_one(pp) * _tied_copy(structure, frozen)
    if apart(structure):
        # The modules' stage has the table that they read, tied to another or not.
        copied = _copied(structure, frozen) + _tied_copy(structure, frozen)
        at = is_module_stage(structure)
        return first * tables + last * head + at * copied
    head += above_one(pp) * _copied(structure, frozen)
    return first * tables + last * head


def first_end(structure: Structure, frozen: Collection[str] = ()) -> Any:
    """Parameters before the first layer: tables, and encoders of images or sound."""
    total = sum((encoder_parameters(part, frozen) for part in structure.encoders), ZERO)
    tables = counts.embedding_parameters(structure.architecture, tp)
    if gradients_of(structure).table == "embedding":
        return total if "embedding" in frozen else total + tables
    if {"embedding", "table"} & {*frozen}:
        table = par.linear_parameters(hidden_size, ceil_div(vocab_size, tp))
        alone = "embedding" in frozen or "embedding" not in end_classes(structure.architecture)
        rest = ZERO if alone else sympy.expand(tables - table)
        return total + rest + (ZERO if "table" in frozen else table)
    return total + tables


def last_end(structure: Structure, frozen: Collection[str] = ()) -> Any:
    """Parameters behind the last layer: the norm and the head."""
    architecture = structure.architecture
    norm = ZERO if "final_norm" in frozen else counts.final_norm_parameters(architecture)
    name = "head" if "head" in end_classes(architecture) else "table"
    return norm + (ZERO if name in frozen else counts.head_parameters(architecture, tp))


def _tied_copy(structure: Structure, frozen: Collection[str]) -> Any:
    """Parameters of the copy of a tied table that the last of several stages has."""
    if not structure.architecture.tied_embeddings or "table" in frozen:
        return ZERO
    return par.linear_parameters(hidden_size, ceil_div(vocab_size, tp))


def _copied(structure: Structure, frozen: Collection[str]) -> Any:
    """Parameters of the copy of a table for modules of multi-token prediction."""
    return ZERO if gradients_of(structure).table in frozen else copied_parameters(structure)
