"""`symperf inspect`: what a model has and costs by itself, exactly, without a system or a plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..codegen.interpret import exact, run
from ..common.artefacts import load_or_make_program
from ..common.errors import InputError
from ..models.families import defaults_of
from ..models.model import encoder_of
from ..models.stored_modules import class_bytes
from ..plans.plan import STATE_BYTES, positive_integer

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..models.architecture import Architecture, LayerKind
    from ..models.model import Model

FLOP_CLASSES = ("attention_scores", "projections", "mlp", "lm_head")
"""Classes of products that every answer has; others where the model has such layers."""
OTHER_CLASSES = (
    "router",
    "experts",
    "expert_projections",
    "shared_experts",
    "ssm",
    "indexer_projections",
    "indexer_scores",
    "compressor",
    "hyper_connections",
    "attention_residuals",
    "cross_attention_scores",
    "cross_projections",
    "patch_embedding",
    "spectrum_embedding",
    "head_transform",
    "side_blocks",
    "side_projections",
)
SSM_PARTS = ("projections", "convolution", "scan")
RECURRENT_STATE_BYTES = 4
"""Recurrent states are kept in FP32; the convolution's window has the width of activations."""


def inspect(
    model: Model,
    *,
    batch: int = 1,
    sequence: int = 1,
    causal_half: bool = False,
    encoder_sequence: int | None = None,
    context: int | None = None,
    absorbed: bool = False,
) -> dict[str, Any]:
    """Parameters, cache bytes and forward FLOPs of a model, as exact integers.

    Args:
        model: the model.
        batch: sequences.
        sequence: new tokens in a sequence.
        causal_half: count only the pairs of attention that the masks leave (causal, windows), not the whole square.
        encoder_sequence: tokens of the encoder's sequence, where there are an encoder and a decoder; by default
            `sequence`, or as many as an encoder of sound fills every recording up to.
        context: tokens cached before the new ones, as in generation, which attend to them and to themselves; windows
            are then as full as they get. By default nothing is cached.
        absorbed: with a context, latent attention attends to the cached latents; else to expanded heads, cached.

    Returns:
        The `inspect` object of the public contract: 2 m n k FLOPs per product; cache bytes at 2 bytes an element.
        Beside encoders, `embedding`, `active_per_token`, layers, cache and FLOPs are those of the language model.
        `kv_bytes_per_token` is that of all layers while no window is full, and `kv_cache` tells its parts.

    Raises:
        InputError: a length is not a positive whole number, or lengths contradict each other.
    """
    positive_integer("batch", batch)
    positive_integer("sequence", sequence)
    positive_integer("encoder_sequence", 1 if encoder_sequence is None else encoder_sequence)
    keys = sequence + (0 if context is None else positive_integer("context", context, lowest=0))
    if causal_half and context is not None:
        raise InputError("causal_half: found true with a context, expected one of the two")
    form = "prefill" if context is None else "absorbed" if absorbed else "stepwise"
    program = _program(model.architecture, form)
    inputs = {
        **model.sizes,
        "batch": batch,
        "sequence": sequence,
        "context": keys,
        "encoder_sequence": encoder_sequence or model.sizes.get("encoder_position_rows", sequence),
        "element_bytes": STATE_BYTES["activation_bytes"],
        "state_bytes": RECURRENT_STATE_BYTES,
    }
    values = run(program, inputs, exact())
    number = {name: int(values[position]) for name, position in program.outputs.items()}
    if causal_half:
        number["attention_scores"] = number["visible_scores"]
    return _answer(model, number)


def _answer(model: Model, number: dict[str, int]) -> dict[str, Any]:
    architecture = model.architecture
    language, tables = number["total"], number["tables"]
    source = defaults_of(model.family)
    beside = _parts(model, language) if model.towers else {}
    total = beside["full_model"] if beside else language
    stored = class_bytes(model, language)
    if any(tower.grid.apart for tower in model.towers):
        # Of two towers neither is beside the other.
        number["active"] += total - language
    for tower in model.towers:
        count = _tower(beside, tower.part) or 0
        row = {"module_class": tower.part, "format": "bf16", "parameters": count}
        stored.append({**row, "weight_bytes": 2 * count, "scale_bytes": 0})
    parts = {part: number[f"ssm_{part}"] for part in SSM_PARTS if f"ssm_{part}" in number}
    if parts:
        number["ssm"] = sum(parts.values())
    flops = {name: number[name] for name in (*FLOP_CLASSES, *OTHER_CLASSES) if name in number}
    kinds = [(str(kind), model.sizes[kind.count], number[f"layer/{i}"]) for i, kind in enumerate(architecture.kinds)]
    each = {parameters for _, _, parameters in kinds}
    return {
        "model": model.name,
        "family": model.family,
        "parameters": {
            "total": total,
            "embedding": tables,
            "non_embedding": total - tables,
            "active_per_token": number["active"],
            "per_layer": each.pop() if len(each) == 1 else None,
            "language": None if architecture.patches else language,
            "vision": language if architecture.patches else _tower(beside, "vision"),
            "audio": _tower(beside, "audio"),
        },
        "kv_bytes_per_token": number["kv"],
        "flops_forward": {"total": sum(flops.values()), **flops},
        "layers": [{"kind": kind, "count": count} for kind, count, _ in kinds],
        "parameters_per_layer": {kind: parameters for kind, _, parameters in kinds},
        "multi_token_parameters": number["multi_token"],
        "kv_cache": {
            "growing_bytes_per_token": number["kv"] - number["kv_windows"],
            "window_bytes_per_token": number["kv_windows"],
            "window_tokens": model.sliding_window,
            "bytes_per_sequence": number["kv_sequence"],
            "state_bytes_per_sequence": number["state"],
            "cross_bytes_per_encoder_token": number["kv_cross"],
        },
        "flops_ssm": parts or None,
        "sizes": dict(model.sizes),
        "architecture": {**asdict(architecture), "kinds": [_kind(k) for k in architecture.kinds]},
        "checkpoint": {
            "bytes": sum(each["weight_bytes"] + each["scale_bytes"] for each in stored),
            "quantization": model.quantization.method if model.quantization else None,
            "classes": stored,
        },
        **({"parts": beside} if beside else {}),
        "order": [{"kind": str(architecture.kinds[place]), "count": count} for place, count in model.layers],
        "class_defaults": [{"key": key, "value": value, "source": source} for key, value in model.defaults],
        "warnings": list(model.warnings),
    }


def _parts(model: Model, language: int) -> dict[str, Any]:
    """Parameters of the encoders beside the language model, of that itself, and of all together."""
    found, whole = {}, language
    for tower in model.towers:
        layers = inspect(encoder_of(model, tower))["parameters"]["total"]
        encoder = layers + tower.stem_parameters
        found[tower.part] = {"encoder": encoder, "projector": tower.projector_parameters}
        whole += encoder + tower.projector_parameters
    return {"full_model": whole, "language_model": language, **found}


def _tower(parts: dict[str, Any], part: str) -> int | None:
    """Parameters of an encoder with its projector; None where there is none."""
    return sum(parts[part].values()) if part in parts else None


def _kind(kind: LayerKind) -> dict[str, Any]:
    return {**asdict(kind), "own": dict(kind.own), "traits": list(kind.traits), "beside": list(kind.beside)}


def _program(architecture: Architecture, form: str) -> Program:
    def make() -> Program:
        from ..codegen.lower import lower
        from ..formulas.language.symbols import context, sequence, strip_units
        from ..models import counts, layer_counts

        if form == "prefill":
            flops = counts.forward_flops(architecture)
        elif form == "absorbed":
            flops = counts.absorbed_flops(architecture, sequence, context)
        else:
            flops = counts.forward_flops(architecture, sequence, context, stepwise=True)
        kinds = enumerate(architecture.kinds)
        outputs = {
            "total": counts.total_parameters(architecture),
            "active": counts.active_parameters(architecture),
            "tables": counts.table_parameters(architecture),
            "multi_token": counts.multi_token_parameters(architecture),
            **{f"layer/{i}": layer_counts.layer_parameters(architecture, kind) for i, kind in kinds},
            "kv": counts.cache_bytes(architecture, 1, whole=False),
            "kv_windows": counts.cache_bytes(architecture, 1, windows=True, whole=False),
            "kv_sequence": counts.cache_bytes(architecture, context),
            "kv_cross": counts.cross_cache_bytes(architecture),
            "state": counts.state_bytes(architecture),
            "visible_scores": counts.visible_score_flops(architecture),
            **flops,
        }
        return lower([], {name: strip_units(expr) for name, expr in outputs.items()})

    text = repr((form, sorted(asdict(architecture).items())))
    return load_or_make_program("inspect", text, make)
