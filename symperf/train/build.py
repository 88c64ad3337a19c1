"""Builds the closed forms of a structure and compiles them; the only module of a prediction that needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.lower import lower
from ..formulas.language.named_calls import remember_forms
from ..formulas.language.symbols import (
    SYMBOLS,
    UNITS,
    batch,
    matrix_rate,
    pp,
    sequence,
    tp,
)
from ..formulas.memory.parameters import flops_utilization
from ..models import counts
from ..operations.compiled import Compiled, Term
from ..operations.executed import executed_utilization
from ..operations.groups import replicas
from ..operations.schedule import Idle, Op, count_operations, executions, terms, time_of
from ..operations.vocabulary import pad_vocabulary
from .memory.encoder_counts import encoder_bytes
from .memory.footprint import footprint, memory, saved_activations
from .memory.reserved import reserved_terms
from .model_flops import model_flops, recomputed_flops, trained_adapter_parameters
from .step.step import TrainingStep

if TYPE_CHECKING:
    from ..operations.schedule import Node
    from ..plans.structure import Structure


@remember_forms(maxsize=16)
def step_tree(structure: Structure) -> Node:
    """The schedule tree of a structure's training step."""
    return pad_vocabulary(structure, TrainingStep(structure).tree())


def totals(structure: Structure) -> dict[str, Any]:
    """Closed forms of a step over all devices: model FLOPs, executed FLOPs, tokens, devices.

    FLOPs are also those of modules for multi-token prediction, as Megatron-LM counts them; parameters are the model's.
    """
    whole = model_flops(structure)
    return {
        "model_flops": whole,
        "hardware_flops": whole + recomputed_flops(structure),
        "tokens": batch * sequence,
        "devices": tp * pp * replicas(structure),
        "parameters": counts.total_parameters(structure.architecture),
        **({"adapter_parameters": trained_adapter_parameters(structure)} if structure.adapted else {}),
    }


@remember_forms(maxsize=16)
def step_counts(structure: Structure) -> dict[Op, Any]:
    """How often each operation of a step runs, on all devices together: stages have the mean number of layers."""
    node = pad_vocabulary(structure, TrainingStep(structure).work())
    return count_operations(node, tp * pp * replicas(structure), share=1 / pp)


def metrics(structure: Structure, time: Any) -> dict[str, Any]:
    """Closed forms of a run's answers, given its time or a symbol for it."""
    total = totals(structure)
    per_device = total["model_flops"] / (time * total["devices"])
    return {
        **total,
        "tokens_per_s": total["tokens"] / time,
        "tokens_per_s_per_device": total["tokens"] / time / total["devices"],
        "flops_per_s_per_device": per_device,
        "mfu": flops_utilization(total["model_flops"], time, total["devices"], matrix_rate),
        "hfu": flops_utilization(total["hardware_flops"], time, total["devices"], matrix_rate),
        "mfu_executed": executed_utilization(step_counts(structure), time, total["devices"]),
    }


def build(structure: Structure) -> Compiled:
    """Compile a structure's step."""
    tree = step_tree(structure)
    named = terms(tree)
    stand_ins: dict[str, Any] = {path: sympy.Symbol(path, nonnegative=True) for path in named}

    def stand_in(leaf: Op | Idle) -> Any:
        return stand_ins[leaf.path]

    definitions = [(stand_ins[path], leaf.time) for path, leaf in named.items() if isinstance(leaf, Op)]
    definitions += [
        (stand_ins[path], leaf.count * time_of(leaf.child, stand_in))
        for path, leaf in named.items()
        if isinstance(leaf, Idle)
    ]
    time = sympy.Symbol("time", positive=True)
    definitions.append((time, time_of(tree, stand_in)))
    outputs: dict[str, Any] = {"time": time}
    outputs |= metrics(structure, time)
    held = footprint(structure)
    beside = reserved_terms(structure, held["activations"])
    outputs |= {f"memory/{name}": expr for name, expr in held.items()}
    outputs |= {f"beside/{name}": expr for name, expr in beside.items()}
    outputs["memory"] = memory(structure)
    outputs["saved_activations"] = saved_activations(structure)
    outputs["reserved"] = outputs["memory"] + sympy.Add(*beside.values())
    outputs |= {f"encoders/{name}": expr for name, expr in encoder_bytes(structure).items()}
    outputs |= _demands(named, executions(tree))
    program = lower(definitions, outputs, share=True, stand_for=UNITS)
    resources = {name: SYMBOLS[name].resource for name in program.inputs}
    return Compiled(
        program,
        tuple(Term(path, isinstance(leaf, Idle)) for path, leaf in named.items()),
        {name: resource for name, resource in resources.items() if resource is not None},
    )


def _demands(named: dict[str, Op | Idle], counts_of: dict[str, Any]) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    for path, leaf in named.items():
        if isinstance(leaf, Op):
            outputs[f"term/{path}/count"] = counts_of[path]
            outputs[f"term/{path}/flops"] = leaf.demand.flops
            outputs[f"term/{path}/bytes"] = leaf.demand.memory_bytes
            outputs[f"term/{path}/message"] = leaf.demand.message_bytes
    return outputs
