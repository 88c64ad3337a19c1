"""What a device holds beside the tensors of a step, and with it all that it must have: what nvidia-smi shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.language.atoms import Max
from ...formulas.language.symbols import context_bytes, cp, dp, ep, library_bytes, num_layers, pp, strip_units, tp
from ...formulas.memory.reserved_memory import communicator_count, communicator_memory
from ...formulas.memory.stage_memory import fragmentation_memory
from ...operations.vocabulary import pad_vocabulary
from .device_share import dealing_of, stage_share
from .footprint import footprint, shares_of_largest, stage_footprint, stage_logits

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...plans.structure import Structure


def reserved_terms(structure: Structure, activations: Any) -> dict[str, Any]:
    """Bytes beside the tensors of a device by name, given those of its activations."""
    parts = cp if structure.context != "none" else 1
    experts = ep if structure.architecture.routed else 1
    return {
        "fragmentation": fragmentation_memory(activations),
        "context": context_bytes,
        "communicators": communicator_memory(communicator_count(tp, pp, dp, parts, experts)),
        "libraries": library_bytes,
    }


def reserved(structure: Structure, name: Callable[[Any], Any] = lambda form: form) -> Any:
    """Bytes that the fullest device must have: its tensors, and what is held beside them.

    Args:
        structure: of the step.
        name: what stands for a form in the result, such as a symbol that other structures use too.
    """
    if structure.told_apart:
        dealing = dealing_of(structure)
        forms = {
            term: [name(form) for form in dealing.on_deciding(f)] for term, f in stage_footprint(structure).items()
        }
        totals = [name(sympy.Add(*each)) for each in zip(*forms.values(), strict=True)]
        shares = zip(shares_of_largest(totals), forms["activations"], strict=True)
        tensors, activations = Max(*totals), sympy.Add(*(share * form for share, form in shares))
    else:
        terms = {term: name(form) for term, form in footprint(structure).items()}
        tensors, activations = sympy.Add(*terms.values()), terms["activations"]
    return tensors + sympy.Add(*reserved_terms(structure, activations).values())


def stage_forms(structure: Structure) -> dict[str, Any]:
    """The terms of stage i, their sum `total`, what it must have, `reserved`, and its `logits` among the activations.

    With them its `layers`, and the micro-batches `in_flight` that it holds.
    """
    share = stage_share(structure)
    terms = {name: strip_units(form) for name, form in stage_footprint(structure).items()}
    beside = reserved_terms(structure, terms["activations"])
    layers = share.layers_of(num_layers) * (2 if structure.schedule == "dualpipe" else 1)
    total = sympy.Add(*terms.values())
    return terms | {
        "total": total,
        "reserved": total + sympy.Add(*beside.values()),
        "logits": strip_units(pad_vocabulary(structure, stage_logits(structure))),
        "layers": strip_units(layers),
        "in_flight": strip_units(share.in_flight),
    }
