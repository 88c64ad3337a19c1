"""Parts of a layer whose inputs the host may keep by name, and what each needs of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..models.architecture import Architecture, LayerKind

INPUTS: Final = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act")
"""Parts as Megatron-Core names them (--offload-modules): each sends its input to the host until its backward pass."""
NEEDS: Final = {
    "attn_norm": "a norm before attention",
    "qkv_linear": "attention",
    "core_attn": "softmax or latent attention in full",
    "attn_proj": "softmax or latent attention in full",
    "mlp_norm": "a norm before the MLP",
    "expert_fc1": "experts",
    "moe_act": "experts",
}
"""What a model must have."""
MIXERS: Final = ("attention", "local_attention", "latent_attention")
"""Mixers whose operands are known by name."""


def inputs_of(offload: Iterable[str]) -> tuple[str, ...]:
    """Of what the host keeps, the parts of layers."""
    return tuple(name for name in offload if name in INPUTS)


def has_input(architecture: Architecture, kind: LayerKind, name: str) -> bool:
    """Whether layers of a kind have a part that can send its input to the host."""
    core = kind.mixer in MIXERS and not kind.traits and not kind.beside
    match name:
        case "attn_norm":
            return kind.mixer != "none" and architecture.block_norms > 0 and not kind.traits
        case "mlp_norm":
            return kind.ffn != "none" and architecture.block_norms > 1 and not architecture.parallel_block
        case "expert_fc1" | "moe_act":
            return kind.ffn in ("experts", "dense_experts")
        case "qkv_linear":
            return kind.mixer != "none" and not kind.beside
        case _:
            return core


def missing_input(architecture: Architecture, offload: Iterable[str]) -> str:
    """The first part that no layer of a model has; "" where all are there."""
    kinds = architecture.kinds
    found = (name for name in inputs_of(offload) if not any(has_input(architecture, kind, name) for kind in kinds))
    return next(found, "")
