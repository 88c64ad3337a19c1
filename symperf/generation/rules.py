"""What an inference must satisfy, and what it warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..architecture import MODELLED_FFNS, MODELLED_MIXERS
from ..errors import InputError
from ..validity import MODEL_RULES, RUN_RULES, refuse, run_values

if TYPE_CHECKING:
    from ..model import Model
    from ..plan import Plan
    from ..system import System
    from .binding import Work

_APPLY = (
    "tp_does_not_divide_heads",
    "tp_does_not_divide_intermediate_size",
    "stages_do_not_divide_layers",
    "batch_is_not_divisible",
    "ep_needs_experts",
    "ep_does_not_divide_experts",
    "expert_tp_does_not_divide_experts_width",
    "experts_do_not_fill_the_replicas",
    "no_network",
    "no_scale_out_network",
)
RULES = (*MODEL_RULES, *(rule for rule in RUN_RULES if rule.name in _APPLY))
"""The rules of a training run that an inference shares."""
_TRAINING_ONLY = {
    "vpp": 1,
    "recompute": "none",
    "sequence_parallel": False,
    "zero": 0,
    "schedule": None,
    "dropout": None,
    "overlap_tp": 1.0,
    "overlap_dp": 0.0,
    "overlap_ep": 1.0,
    "overlap_gather": 1.0,
    "zero_shards": None,
    "node_limit": None,
    "cp_kind": "ring",
}
"""Fields of a plan that mean nothing here, with the value that says nothing."""


def check(plan: Plan, model: Model, system: System, work: Work) -> tuple[str, ...]:
    """Refuse what cannot run; return warnings about what can.

    Raises:
        InputError: one line that says what does not divide what, or what is missing.
    """
    _require_modelled(model)
    if plan.cp > 1 or plan.stages != "even":
        name = "cp" if plan.cp > 1 else "uneven_stages"
        raise InputError(f"{name}: is modelled in training only")
    total = work.prompt + work.generate
    values = run_values(plan, model.name, model.sizes, system, (work.batch, total))
    refuse(RULES, values | {"stages": plan.pp, "vpp": 1})
    if plan.ep > 1 and plan.effective_expert_tp > 1:
        raise InputError(
            f"expert_tp: found {plan.effective_expert_tp}, expected 1 with ep = {plan.ep}: experts are dealt whole"
        )
    rows = model.sizes["position_rows"]
    if rows and total > rows:
        raise InputError(
            f"prompt + generate: {work.prompt} + {work.generate} = {total} tokens, "
            f"but {model.name} has {rows} learned positions"
        )
    return tuple(_warnings(plan, model, total))


def _require_modelled(model: Model) -> None:
    architecture = model.architecture
    plain = all(
        kind.mixer in MODELLED_MIXERS and kind.ffn in MODELLED_FFNS and not (kind.encoder or kind.cross)
        for kind in architecture.kinds
    )
    special = architecture.attention_gate or architecture.global_heads or architecture.chunked_attention
    if not plain or special or architecture.head != "vocabulary":
        model.require_uniform_dense("inference")


def _warnings(plan: Plan, model: Model, total: int) -> list[str]:
    found = []
    kv_heads = model.sizes["num_key_value_heads"]
    if plan.tp > kv_heads:
        found.append(f"tp = {plan.tp} exceeds {kv_heads} key-value heads: each device holds a copy of one")
    elif kv_heads % plan.tp:
        found.append(f"tp = {plan.tp} does not divide {kv_heads} key-value heads: the fullest device is counted")
    if model.sizes["vocab_size"] % plan.tp:
        found.append(f"tp = {plan.tp} does not divide the vocabulary of {model.sizes['vocab_size']}: it is padded")
    if model.context and total > model.context:
        found.append(f"prompt + generate = {total} exceeds the {model.context} tokens that {model.name} is made for")
    if model.architecture.multi_token_head:
        found.append("the layers for multi-token prediction are not run: every step yields one token")
    ignored = [name for name, default in _TRAINING_ONLY.items() if getattr(plan, name) != default]
    if ignored:
        found.append(f"{', '.join(ignored)}: means nothing in inference and is ignored")
    return found
