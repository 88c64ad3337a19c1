"""What layouts need that only an inference has: split caches, copies of experts, tokens that are gathered for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..models.architecture import RECURRENT

if TYPE_CHECKING:
    from ..models.architecture import LayerKind
    from ..models.model import Model
    from ..plans.plan import Plan


def check_layout(plan: Plan, model: Model, prompt: int) -> None:
    """Refuse a layout of caches and experts that no software has, or that is not modelled.

    Raises:
        InputError: one line that says what does not divide what, or what is not modelled.
    """
    _check_experts(plan, model)
    _check_decode_context(plan, model)
    _check_context(plan, model, prompt)


def replicas_of_experts(plan: Plan, model: Model) -> int:
    """Replicas whose tokens pass the same experts, and which are in lock step for it."""
    shared = plan.ep * plan.effective_expert_tp if model.architecture.routed else 1
    return max(1, shared // (plan.tp * plan.cp))


def _check_experts(plan: Plan, model: Model) -> None:
    copies, gathered = plan.redundant_experts, plan.expert_exchange == "gather"
    if not model.architecture.routed:
        for name, given in (("redundant_experts", copies is not None), ("expert_exchange", gathered)):
            if given:
                raise InputError(f"{name}: found {getattr(plan, name)}, but {model.name} has no experts")
        return
    experts, inside = model.sizes["num_experts"], plan.effective_expert_tp
    if copies is not None and plan.ep == 1:
        raise InputError(f"redundant_experts: found {copies}, expected none with ep = 1: every device has all experts")
    if copies is not None and (experts + copies) % plan.ep:
        raise InputError(
            f"redundant_experts: ep = {plan.ep} does not divide the {experts} + {copies} slots of the experts of "
            f"{model.name}"
        )
    if gathered and plan.ep * inside % plan.tp:
        raise InputError(
            f"expert_exchange: tokens are gathered from whole replicas, and tp = {plan.tp} does not divide ep x "
            f"expert_tp = {plan.ep} x {inside}"
        )
    if not gathered and plan.ep > 1 and inside > 1:
        raise InputError(
            f"expert_tp: found {inside}, expected 1 with ep = {plan.ep}: experts are dealt whole; tokens are gathered "
            "for parts of them under --expert-exchange gather"
        )
    if not gathered and inside > plan.tp:
        raise InputError(
            f"expert_tp: found {inside}, expected at most tp = {plan.tp}: experts over several replicas need their "
            "tokens gathered, as under --expert-exchange gather"
        )


def _check_decode_context(plan: Plan, model: Model) -> None:
    """As vLLM: a cache is split over those devices of a tensor-parallel group that would have copies of it."""
    if plan.dcp == 1:
        return
    if plan.tp % plan.dcp:
        raise InputError(f"dcp: found {plan.dcp}, expected a divisor of tp = {plan.tp}, of whose devices it takes some")
    _check_kinds(model, "dcp", plan.dcp)
    heads = 1 if _latent(model) else model.sizes["num_key_value_heads"]
    copies = max(plan.tp // heads, 1)
    if plan.dcp > copies or plan.tp % heads:
        whose = "the latent of all heads" if _latent(model) else f"each of the {heads} key-value heads"
        raise InputError(
            f"dcp: found {plan.dcp}, expected at most {copies}: tp = {plan.tp} makes as many copies of {whose} of "
            f"{model.name}, and as many devices may share one"
        )


def _check_context(plan: Plan, model: Model, prompt: int) -> None:
    if plan.cp == 1:
        return
    _check_kinds(model, "cp", plan.cp)
    if plan.cp_kind == "all-to-all":
        raise InputError("cp_kind: all-to-all is modelled in training only, expected ring or all-gather")
    if prompt % plan.cp:
        raise InputError(f"cp: found {plan.cp}, expected a divisor of the prompt of {prompt} tokens: parts are equal")


def _check_kinds(model: Model, name: str, degree: int) -> None:
    """Refuse layers of which it is not modelled what they do with a part of a sequence."""
    architecture = model.architecture
    for kind in architecture.kinds:
        if kind.mixer == "none":
            continue
        if not _plain(kind) or architecture.positions in ("relative", "disentangled"):
            raise InputError(
                f"{name}: found {degree}, expected 1: parts of a sequence are modelled for attention to all keys or "
                f"latents, and {model.name} has layers of {kind}"
            )


def _plain(kind: LayerKind) -> bool:
    recurrent = any(each in RECURRENT for each in (kind.mixer, *kind.beside))
    usual = kind.mixer in ("attention", "latent_attention") and not (kind.encoder or kind.cross or kind.beside)
    return usual and not recurrent and not kind.traits and not kind.shared


def _latent(model: Model) -> bool:
    return all(kind.mixer in ("latent_attention", "none") for kind in model.architecture.kinds)
