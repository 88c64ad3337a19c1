"""What the tests of every architecture's training step share: runs, and the work of their operations by class."""

from __future__ import annotations

from typing import Any

import symperf as sf

SYSTEM = sf.System.load("h100-sxm")
CLASSES = {
    "mlp": ("/mlp/up", "/mlp/down", "/mlp/adapter/down", "/mlp/adapter/up"),
    "experts": ("/experts/up", "/experts/down"),
    "router": ("/experts/router", "/shared/gate"),
    "shared_experts": ("/shared/up", "/shared/down"),
    "attention_scores": ("/attention/core/scores", "/attention/core/context"),
    "cross_attention_scores": ("/cross/core/scores", "/cross/core/context"),
    "cross_projections": ("/cross/query", "/cross/key_value", "/cross/output"),
    "projections": (
        "/attention/qkv",
        "/attention/query",
        "/attention/query_down",
        "/attention/query_up",
        "/attention/latent_down",
        "/attention/latent_up",
        "/attention/gate_in",
        "/attention/output",
        *("/attention/adapter/down", "/attention/adapter/up", "/mlp/joining"),
    ),
    "ssm_projections": (
        "/ssm/in",
        "/ssm/narrow",
        "/ssm/time_step",
        "/ssm/output",
        "/linear_attention/in",
        "/linear_attention/decay",
        "/linear_attention/gate",
        "/linear_attention/output",
        *(f"/wkv/{name}" for name in ("receptance", "key", "value", "output")),
        *(f"/wkv/{name}_{end}" for name in ("decay", "rate", "taken", "gate") for end in ("down", "up")),
        "/matrix_memory/in",
        "/matrix_memory/output",
        *(f"/lightning_attention/{end}" for end in ("in", "gate_in", "output")),
        *(f"/gated_lru/{end}" for end in ("in", "gates", "output")),
    ),
    "ssm_scan": ("/scan",),
    "head_transform": ("head/transform",),
    "lm_head": ("head/logits",),
    "patch_embedding": ("embedding/patches",),
    "multi_token_projection": ("multi_token/projection",),
    "distance_biases": ("/attention/distances",),
    "side_blocks": (
        *("/side/predict", "/side/predict_router", "/side/predict_coefficients"),
        *("/side/correct_router", "/side/correct_coefficients", "/side/low_rank_down", "/side/low_rank_up"),
        *("/side/input_gate", "/side/input_up"),
    ),
    "side_projections": ("/side/input_projection", "/side/split", "/side/join"),
}
"""The products of each class of `inspect`, by the ends of their paths."""


def length_of(model: sf.Model, otherwise: int) -> int:
    """Tokens of a sequence: those of an image, or any number."""
    return model.sizes["position_rows"] if model.architecture.patches else otherwise


def train(model: sf.Model | str, sequence: int = 512, batch: int = 8, values: Any = None, **plan: Any) -> sf.Run:
    """A step on a common system."""
    loaded = sf.Model.load(model) if isinstance(model, str) else model
    return sf.training(
        loaded, SYSTEM, sf.Plan(**plan), batch=batch, sequence=length_of(loaded, sequence), **(values or {})
    )


def work(run: sf.Run, phase: str = "forward", *, modules: bool = False) -> dict[str, float]:
    """FLOPs of a step's products on one device in one phase, by class: the model's, or its multi-token modules'."""
    found = dict.fromkeys(CLASSES, 0.0)
    for term in run.compiled.terms:
        path, _, last = term.path.rpartition("/")
        for name, ends in CLASSES.items():
            if last == phase and path.endswith(ends) and path.startswith("multi_token/") == modules:
                found[name] += run.value(f"term/{term.path}/flops") * run.value(f"term/{term.path}/count")
    return {name: flops for name, flops in found.items() if flops}


def all_terms(run: sf.Run) -> list[str]:
    """Paths of a step's operations."""
    return [term.path for term in run.compiled.terms if not term.idle]
