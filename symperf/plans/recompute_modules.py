"""Modules of a layer that the backward pass may compute again each by itself, and what each needs of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..models.architecture import Architecture

MODULES: Final = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts", "op")
"""Modules as Megatron-Core names them (--recompute-modules), and `op`: all but every second product and the core of
attention, as torchtitan's selective checkpointing by operations has it."""
NEEDS: Final = {
    "core_attn": "attention",
    "layernorm": "norms before its parts",
    "mla_up_proj": "latent attention",
    "mlp": "a dense MLP",
    "moe": "experts",
    "moe_act": "experts",
    "shared_experts": "shared experts",
    "op": "attention over plain heads in every layer",
}
"""What a model must have."""
_PLAIN: Final = ("attention", "local_attention")


def has_module(architecture: Architecture, module: str) -> bool:
    """Whether some layer of a model has a module; of `op`, whether all layers have products that can be told apart."""
    kinds = architecture.kinds
    match module:
        case "mla_up_proj":
            return any(kind.mixer == "latent_attention" and not kind.traits for kind in kinds)
        case "mlp":
            return any(kind.ffn in ("dense", "dense_experts") for kind in kinds)
        case "moe" | "moe_act":
            return architecture.routed
        case "shared_experts":
            return architecture.shared_experts
        case "layernorm":
            return architecture.block_norms > 0
        case "op":
            return not architecture.parallel_block and all(
                kind.mixer in _PLAIN and not kind.beside and not kind.cross and kind.ffn != "none" for kind in kinds
            )
        case _:
            return any("attention" in kind.mixer for kind in kinds)


def modules_of(recompute: str, text: str | None) -> tuple[str, ...]:
    """The modules that are computed again: those of a list, or under selective recomputation the core of attention.

    >>> modules_of("selective", None), modules_of("none", "mlp,moe"), modules_of("full", None)
    (('core_attn',), ('mlp', 'moe'), ())
    """
    if text:
        return tuple(text.split(","))
    return ("core_attn",) if recompute == "selective" else ()


def missing_module(architecture: Architecture, modules: tuple[str, ...]) -> str:
    """The first of some modules that a model has not; empty where it has all."""
    return next((name for name in modules if not has_module(architecture, name)), "")
