"""`symperf inspect`: what a model has and costs by itself, exactly, without a system or a plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .codegen.interpret import exact, run
from .codegen.program import Program
from .compiled import kept
from .plan import STATE_BYTES, positive_integer

if TYPE_CHECKING:
    from .configs import Architecture
    from .model import Model

FLOP_CLASSES = ("attention_scores", "projections", "mlp", "lm_head")


def inspect(model: Model, *, batch: int = 1, sequence: int = 1, causal_half: bool = False) -> dict[str, Any]:
    """Parameters, KV-cache bytes and forward FLOPs of a model, as exact integers.

    Args:
        model: the model.
        batch: sequences.
        sequence: tokens in a sequence.
        causal_half: count only the s (s + 1) / 2 visible pairs of attention, not the whole square.

    Returns:
        The `inspect` object of the public contract: 2 m n k FLOPs per product; KV bytes at 2 bytes an element.

    Raises:
        InputError: `batch` or `sequence` is not a positive whole number.
    """
    positive_integer("batch", batch)
    positive_integer("sequence", sequence)
    program = _program(model.architecture)
    inputs = {**model.sizes, "batch": batch, "sequence": sequence, "element_bytes": STATE_BYTES["activation_bytes"]}
    values = run(program, inputs, exact())
    number = {name: int(values[position]) for name, position in program.outputs.items()}
    if causal_half:
        number["attention_scores"] = number["attention_scores"] * (sequence + 1) // (2 * sequence)
    total, tables = number["total"], number["tables"]
    flops = {name: number[name] for name in FLOP_CLASSES}
    return {
        "model": model.name,
        "family": model.family,
        "parameters": {
            "total": total,
            "embedding": tables,
            "non_embedding": total - tables,
            "active_per_token": total,
            "per_layer": number["per_layer"],
        },
        "kv_bytes_per_token": number["kv"],
        "flops_forward": {"total": sum(flops.values()), **flops},
        "layers": [{"kind": "attention + MLP", "count": model.sizes["num_layers"]}],
        "sizes": dict(model.sizes),
        "architecture": asdict(model.architecture),
        "warnings": list(model.warnings),
    }


def _program(architecture: Architecture) -> Program:
    def make() -> Program:
        from . import counts
        from .codegen.lower import lower
        from .formulas.memory import kv_cache_bytes
        from .formulas.symbols import element_bytes, head_dim, num_key_value_heads, num_layers, strip_units

        outputs = {
            "total": counts.total_parameters(architecture),
            "tables": counts.table_parameters(architecture),
            "per_layer": counts.layer_parameters(architecture),
            "kv": kv_cache_bytes(1, num_layers, num_key_value_heads, head_dim, element_bytes),
            **counts.forward_flops(architecture),
        }
        return lower([], {name: strip_units(expr) for name, expr in outputs.items()})

    text = repr(sorted(asdict(architecture).items()))
    return kept("inspect", text, make, Program.to_json, Program.from_json)
