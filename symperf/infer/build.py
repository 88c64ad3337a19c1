"""Builds the closed forms of an inference and compiles them; the only module of it that needs SymPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ..codegen.lower import lower
from ..formulas.language.atoms import Max, less_one
from ..formulas.language.named_calls import remember_forms
from ..formulas.language.symbols import (
    SYMBOLS,
    UNITS,
    batch,
    dp,
    encoder_sequence,
    generate,
    matrix_rate,
    memory_bandwidth,
    pp,
    prompt,
    strip_units,
    tp,
)
from ..formulas.language.symbols import sequence as sequence_length
from ..formulas.memory.parameters import flops_utilization
from ..models import counts
from ..operations.compiled import Compiled, Term
from ..operations.executed import executed_utilization
from ..operations.groups import parts
from ..operations.schedule import Op, count_operations, executions, terms, time_of
from ..operations.schedule import sequence as in_sequence
from .footprint import footprint, needed, sequence_cache, whole_cache
from .host_memory import host_memory
from .passes import decode, layers_of, micro_batches, prefill, worked
from .prefix import new_tokens
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ..operations.schedule import Idle, Node
    from .structure import InferenceStructure

PHASES = ("prefill", "decode")


@remember_forms(maxsize=16)
def trees(structure: InferenceStructure) -> dict[str, Node]:
    """The schedule tree of each phase."""
    return {"prefill": prefill(structure), "decode": decode(structure)}


def tree(structure: InferenceStructure) -> Node:
    """The schedule tree of the whole inference."""
    return in_sequence(*trees(structure).values())


def mean_step(structure: InferenceStructure, known: dict[str, Any]) -> Any:
    """The mean time of a decode step; of the first one where there is none.

    Args:
        structure: what gives it its form.
        known: what stands for the time of each operation that is no sum over steps, by path.
    """
    count = Max(1, less_one(generate))

    def leaf(op: Op | Idle) -> Any:
        if isinstance(op, Op) and op.summed:
            return op.time / count
        return known[op.path]

    return time_of(decode(structure, count).child, leaf)


def prefill_flops(structure: InferenceStructure) -> Any:
    """Model FLOPs of the prefill of all prompts: attention in full, scans as fused kernels do them.

    Logits are those of the last tokens, and of all tokens where none is generated. The decoder behind an encoder has
    one token.
    """
    architecture = structure.architecture
    lengths = {sequence_length: prompt, encoder_sequence: prompt}
    own = sympy.S.One if architecture.stacks == 2 else new_tokens(structure)
    forward = {
        name: strip_units(form).xreplace(lengths)
        for name, form in counts.forward_flops(architecture, own, prompt if structure.prefixed else own).items()
    }
    if architecture.head == "vocabulary":
        forward["lm_head"] = forward["lm_head"] / own
    if "ssm_scan" in forward:
        forward["ssm_scan"] = strip_units(scan_flops(structure))
    return sympy.Add(*forward.values())


def scan_flops(structure: InferenceStructure) -> Any:
    """FLOPs of the scans of all prompts on all devices: without padding of groups, and without products of chunks.

    `counts` counts what PyTorch executes, which repeats B and C for every head and passes states by a product.
    """
    layers = layers_of(structure, "prefill")
    scans = (
        n * mixer.scan_flops(batch, new_tokens(structure))
        for layer, n in layers
        for mixer in layer.mixers
        if isinstance(mixer, Recurrent)
    )
    return sum(scans).xreplace({tp: sympy.S.One})


def decode_bytes(structure: InferenceStructure) -> Any:
    """Bytes of device memory that the operations of a mean decode step move on one device.

    A device runs its stage m times a step, of the max(m, p) times that the step waits for a stage.
    """
    each = decode(structure, Max(1, less_one(generate))).child
    count = executions(each)
    moved = (count[path] * op.demand.memory_bytes for path, op in terms(each).items() if isinstance(op, Op))
    return sympy.Add(*moved) * micro_batches() / Max(micro_batches(), pp)


def devices_of(structure: InferenceStructure) -> Any:
    """Devices of all replicas."""
    return tp * pp * dp * parts(structure)


def prefill_counts(structure: InferenceStructure) -> dict[Op, Any]:
    """How often each operation of the prefill of all prompts runs, on all devices together."""
    return count_operations(trees(structure)["prefill"], devices_of(structure), worked, share=1 / pp)


def metrics(structure: InferenceStructure, prefill_time: Any, step: Any, time: Any) -> dict[str, Any]:
    """Closed forms of a run's answers, given its times; tokens are those generated, or read where none are."""
    devices = devices_of(structure)
    flops = prefill_flops(structure)
    found = {
        "tokens_per_s": batch * generate / time,
        "tokens_per_s_per_device": batch * generate / time / devices,
        "devices": devices,
        "parameters": counts.total_parameters(structure.architecture),
        "prefill_flops": flops,
        "prefill_mfu": flops_utilization(flops, prefill_time, devices, matrix_rate),
        "prefill_mfu_executed": executed_utilization(prefill_counts(structure), prefill_time, devices),
    }
    if structure.offload:
        found |= {f"host/{name}": form for name, form in host_memory(structure, whole_cache(structure)).items()}
    if not structure.generates:
        return found | {
            "tokens_per_s": batch * prompt / time,
            "tokens_per_s_per_device": batch * prompt / time / devices,
        }
    read = decode_bytes(structure)
    return found | {
        "decode_mbu": read / (step * memory_bandwidth),
        "sequence_cache": sequence_cache(structure),
    }


def build(structure: InferenceStructure) -> Compiled:
    """Compile an inference."""
    each = trees(structure)
    named = terms(in_sequence(*each.values()))
    stand_ins: dict[str, Any] = {path: sympy.Symbol(path, nonnegative=True) for path in named}
    definitions = [(stand_ins[path], leaf.time) for path, leaf in named.items() if isinstance(leaf, Op)]
    times = {phase: sympy.Symbol(phase, nonnegative=True) for phase in PHASES}
    for phase, node in each.items():
        definitions.append((times[phase], time_of(node, lambda leaf: stand_ins[leaf.path])))
    step, time = sympy.Symbol("time_per_token", positive=True), sympy.Symbol("time", positive=True)
    if structure.generates:
        definitions.append((step, mean_step(structure, stand_ins)))
    definitions.append((time, sympy.Add(*times.values())))
    outputs: dict[str, Any] = {"time": time, **times} | ({"time_per_token": step} if structure.generates else {})
    outputs |= metrics(structure, times["prefill"], step, time)
    memory = {f"memory/{name}": form for name, form in footprint(structure).items()}
    outputs |= memory | {"memory": sympy.Add(*memory.values()), "needed": needed(structure)}
    outputs |= demands(named, executions(in_sequence(*each.values())))
    program = lower(definitions, outputs, share=True, stand_for=UNITS)
    resources = {name: SYMBOLS[name].resource for name in program.inputs}
    return Compiled(
        program,
        tuple(Term(path, idle=False) for path in named),
        {name: resource for name, resource in resources.items() if resource is not None},
    )


def demands(named: dict[str, Op | Idle], counts_of: dict[str, Any]) -> dict[str, Any]:
    """Outputs of what each operation needs: executions, FLOPs and bytes of one, and the shape of a product."""
    outputs: dict[str, Any] = {}
    for path, leaf in named.items():
        assert isinstance(leaf, Op)
        outputs[f"term/{path}/count"] = counts_of[path]
        outputs[f"term/{path}/flops"] = leaf.demand.flops
        outputs[f"term/{path}/bytes"] = leaf.demand.memory_bytes
        outputs[f"term/{path}/message"] = leaf.demand.message_bytes
        if leaf.shape:
            outputs |= {f"term/{path}/{letter}": size for letter, size in zip("mnkg", leaf.shape, strict=True)}
    return outputs
