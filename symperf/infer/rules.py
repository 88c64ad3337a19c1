"""What an inference must satisfy, and what it warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.errors import InputError
from ..plans.combinations import COMBINATION_RULES
from ..plans.plan import FIELDS
from ..plans.rule import BrokenRuleError
from ..plans.validity import MODEL_RULES, RUN_RULES, refuse, run_values
from ..systems.widening import widening
from .formats import rate_asked
from .host_rules import check_offload
from .parallel_rules import check_layout

if TYPE_CHECKING:
    from ..models.model import Model
    from ..plans.plan import Plan
    from ..systems.system import System
    from .binding import Work

_APPLY = (
    "tp_does_not_divide_heads",
    "tp_does_not_divide_intermediate_size",
    "more_stages_than_layers",
    "batch_is_not_divisible",
    "ep_needs_experts",
    "ep_does_not_divide_experts",
    "expert_tp_does_not_divide_experts_width",
    "experts_do_not_fill_the_replicas",
    "experts_lie_across_pipelines",
    "side_blocks_in_a_pipeline",
    "shared_blocks_in_a_pipeline",
    "attention_residuals_in_a_pipeline",
    "no_network",
    "no_scale_out_network",
)
RULES = (*MODEL_RULES, *(rule for rule in RUN_RULES if rule.name in _APPLY))
"""The rules of a training run that an inference shares."""
ALWAYS = {"vpp": 1, "uneven": 1}
"""What every plan of an inference is: stages need not divide the layers."""


def check(plan: Plan, model: Model, system: System, work: Work) -> tuple[str, ...]:
    """Refuse what cannot run; return warnings about what can.

    Raises:
        InputError: one line that says what does not divide what, or what is missing.
    """
    for name, field in FIELDS.items():
        if field.inference == "refused" and getattr(plan, name) != field.default:
            raise InputError(f"{name}: is modelled in training only")
    if any("pooled_index" in kind.traits for kind in model.architecture.kinds):
        rule = next(rule for rule in COMBINATION_RULES if rule.name == "pooled_indexes_are_counted_only")
        raise BrokenRuleError.of(rule, {"model": model.name})
    what, longest = _check_lengths(model, work)
    values = run_values(plan, model.name, model.sizes, system, (work.batch, longest))
    rules = RULES if model.sizes["num_attention_heads"] else [rule for rule in RULES if rule not in MODEL_RULES]
    # With copies, e divides the slots and not the experts (`check_layout`).
    waived = "ep_does_not_divide_experts" if plan.redundant_experts else ""
    refuse([rule for rule in rules if rule.name != waived], values | ALWAYS)
    if plan.node_limit is not None and not model.architecture.routed:
        raise InputError(f"node_limit: found {plan.node_limit}, but {model.name} has no experts")
    _check_shards(plan, model)
    check_layout(plan, model, work.prompt)
    check_offload(plan, model, system)
    return (*_warnings(plan, model, what, longest), *widening(system, rate_asked(plan, system)))


def require_decoder(model: Model) -> None:
    """Refuse to serve a model with an encoder: its prompts are no chunks, and continuous batching has no step for it.

    Raises:
        InputError: the model has an encoder.
    """
    if any(kind.encoder for kind in model.architecture.kinds):
        raise InputError(
            f"{model.name}: has an encoder, expected a decoder: serving splits prompts into chunks, and an encoder "
            "reads them whole (symperf infer does that)"
        )


def require_one_stage(draft: Model, plan: Plan) -> None:
    """Refuse a head in a pipeline: it reads hidden states of the last stage, and of stages before (EAGLE-3).

    Raises:
        InputError: there are several stages, and a head drafts.
    """
    if draft.architecture.draft_head != "none" and plan.pp > 1:
        raise InputError(f"pp: found {plan.pp}, expected 1: a head that drafts in a pipeline is not modelled")


def _check_lengths(model: Model, work: Work) -> tuple[str, int]:
    """Refuse lengths that a model cannot have; what its longest sequence is, and its tokens."""
    architecture, sizes = model.architecture, model.sizes
    if all(kind.encoder for kind in architecture.kinds) and work.generate != 1:
        raise InputError(
            f"generate: found {work.generate}, expected 1: {model.name} is an encoder, which has one pass and "
            "generates no tokens"
        )
    if architecture.patches and work.prompt != model.image_positions:
        raise InputError(
            f"prompt: found {work.prompt}, expected {model.image_positions}: {model.name} reads "
            f"{sizes['num_patches']} patches of an image" + (" and a token for its class" * architecture.class_token)
        )
    if architecture.spectra and work.prompt != sizes["encoder_position_rows"]:
        rows = sizes["encoder_position_rows"]
        raise InputError(
            f"prompt: found {work.prompt}, expected {rows}: the encoder of {model.name} reads {2 * rows} spectra of "
            f"sound, to which shorter recordings are filled up, as {rows} tokens"
        )
    rows = sizes["position_rows"]
    for what, tokens in _sequences(model, work).items():
        if rows and tokens > rows:
            raise InputError(f"{what} tokens, but {model.name} has {rows} learned positions")
    what, longest = max(_sequences(model, work).items(), key=lambda each: each[1])
    return what.partition(":")[0], longest


def _sequences(model: Model, work: Work) -> dict[str, int]:
    """Tokens of each kind of sequence, by how they come about."""
    if all(kind.encoder for kind in model.architecture.kinds):
        return {f"prompt: {work.prompt}": work.prompt}
    if model.architecture.stacks == 2:
        made, read = 1 + work.generate, 0 if model.architecture.spectra else work.prompt
        return {f"prompt: {read}": read, f"1 + generate: 1 + {work.generate} = {made}": made}
    total = work.prompt + work.generate
    return {f"prompt + generate: {work.prompt} + {work.generate} = {total}": total}


_DEALT = {
    "ssm_num_heads": "heads of the Mamba-2 layers",
    "ssm_inner_size": "channels of the Mamba-1 layers",
    "lru_width": "channels of the gated linear recurrent units",
    "linear_num_key_heads": "key heads of the linear attention",
    "linear_num_value_heads": "value heads of the linear attention",
    "output_groups": "groups of heads that the output is projected in",
}
"""Sizes of layers of which every device of a tensor-parallel group has its share."""


def _check_shards(plan: Plan, model: Model) -> None:
    for name, words in _DEALT.items():
        size = model.sizes.get(name, 0)
        if size % plan.tp:
            raise InputError(f"tp: {plan.tp} does not divide the {size} {words} of {model.name}")
    if model.architecture.stacks == 2 and plan.pp > 1:
        raise InputError(f"pp: found {plan.pp}, expected 1: a pipeline of an encoder and a decoder is not modelled")


def _warnings(plan: Plan, model: Model, what: str, longest: int) -> list[str]:
    found = []
    kv_heads, groups = model.sizes["num_key_value_heads"], model.sizes.get("ssm_groups", 0)
    if groups % plan.tp:
        found.append(f"tp = {plan.tp} does not divide {groups} groups of B and C: the fullest device is counted")
    if plan.tp > kv_heads > 0:
        found.append(f"tp = {plan.tp} exceeds {kv_heads} key-value heads: each device holds a copy of one")
    elif kv_heads % plan.tp:
        found.append(f"tp = {plan.tp} does not divide {kv_heads} key-value heads: the fullest device is counted")
    if model.sizes["vocab_size"] % plan.tp:
        found.append(f"tp = {plan.tp} does not divide the vocabulary of {model.sizes['vocab_size']}: it is padded")
    if model.context and longest > model.context:
        found.append(f"{what} = {longest} exceeds the {model.context} tokens that {model.name} is made for")
    if model.architecture.multi_token_head:
        found.append("the layers for multi-token prediction are not run: every step yields one token")
    ignored = [n for n, field in FIELDS.items() if field.inference == "ignored" and getattr(plan, n) != field.default]
    if ignored:
        found.append(f"{', '.join(ignored)}: means nothing in inference and is ignored")
    return found
