"""What a plan must satisfy, as named rules: one table, read by a single run and by sweeps.

A single run evaluates each rule on whole numbers and refuses with its message. A sweep compiles the same rules into
its program and marks a point with the first rule that it breaks.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..common.frozen import Frozen
from .adapters import ADAPTER_RULES
from .combinations import COMBINATION_RULES
from .frozen_parts import FREEZE_RULES
from .host_rules import HOST_RULES
from .input_rules import INPUT_RULES
from .parallel_rules import KIND_RULES, PARALLEL_RULES
from .plan_fields import NUMBERS
from .rule import ABSENT as ABSENT
from .rule import FLAGS as FLAGS
from .rule import IMPOSSIBLE as IMPOSSIBLE
from .rule import NAMES as NAMES
from .rule import BrokenRuleError as BrokenRuleError
from .rule import Rule as Rule
from .rule import reason_of as reason_of
from .rule import refuse as refuse
from .structure import COUNTED, ZERO_BUBBLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..systems.system import System
    from .plan import Plan

PLAN_RULES = (
    Rule(
        "interleaved_needs_vpp_above_1",
        "interleaved_asked == 0 or vpp > 1",
        "schedule: interleaved needs vpp above 1, found vpp = {vpp}",
    ),
    Rule(
        "schedule_has_one_stage_per_device",
        "one_stage_asked == 0 or vpp == 1",
        "schedule: {schedule} has one stage per device, found vpp = {vpp}",
    ),
    Rule(
        "layout_has_not_as_many_stages",
        "layout_stages == 0 or layout_stages == pp * vpp",
        "layout: has {layout_stages} stages, expected pp x vpp = {pp} x {vpp}",
    ),
    Rule("vpp_needs_a_pipeline", "vpp == 1 or pp > 1", "vpp: {vpp} virtual stages need a pipeline, found pp = {pp}"),
)
"""What a plan must satisfy by itself."""

MODEL_RULES = (
    Rule(
        "heads_are_no_multiple_of_key_value_heads",
        "num_attention_heads % max(num_key_value_heads, 1) == 0",
        "num_attention_heads: {num_attention_heads} is not a multiple of the {num_key_value_heads} key-value heads "
        "(num_key_value_heads)",
    ),
)
"""What the sizes of a model must satisfy."""

RUN_RULES = (
    Rule(
        "tp_does_not_divide_heads",
        "num_attention_heads % tp == 0",
        "tp: {tp} does not divide the {num_attention_heads} attention heads of {model}",
    ),
    Rule(
        "tp_does_not_divide_intermediate_size",
        "intermediate_size % tp == 0",
        "tp: {tp} does not divide the intermediate size {intermediate_size} of {model}",
    ),
    Rule(
        "stages_do_not_divide_layers",
        "uneven == 1 or (num_layers + counted) % (pp * vpp) == 0",
        "pp x vpp: {stages} does not divide the {num_layers} layers of {model}{ends_counted}; "
        "uneven_stages spreads them",
    ),
    Rule(
        "batch_is_not_divisible",
        "batch % (dp * micro_batch) == 0",
        "batch: {batch} sequences are not divisible by dp x micro_batch = {dp} x {micro_batch} = {share}",
    ),
    Rule(
        "optimizer_in_backward_needs_one_micro_batch",
        "at_once == 0 or batch == dp * micro_batch",
        "optimizer_in_backward: gradients are not accumulated, found {micro_batches} micro-batches of a replica; "
        "expected micro_batch = batch / dp, and pp = 1",
    ),
    Rule(
        "interleaved_micro_batches_not_divisible_by_pp",
        "interleaved == 0 or batch // (dp * micro_batch) % pp == 0",
        "schedule: interleaved needs micro-batches divisible by pp, found batch / (dp x micro_batch) = "
        "{micro_batches} and pp = {pp}",
    ),
    Rule(
        "sequence_parallel_needs_tp_above_1",
        "sequence_parallel == 0 or tp > 1",
        "sequence_parallel: needs tp above 1, found tp = {tp}",
    ),
    Rule(
        "tp_does_not_divide_sequence",
        "sequence_parallel == 0 or sequence % tp == 0",
        "sequence_parallel: sequence {sequence} is not divisible by tp = {tp}",
    ),
    Rule(
        "sequence_exceeds_learned_positions",
        "position_rows == 0 or sequence <= position_rows",
        "sequence: {sequence} tokens, but {model} has {position_rows} learned positions",
    ),
    Rule(
        "ep_needs_experts",
        "routed == 1 or ep == 1",
        "ep: found {ep}, but {model} has no experts",
    ),
    Rule(
        "ep_does_not_divide_experts",
        "routed == 0 or num_experts % ep == 0",
        "ep: {ep} does not divide the {num_experts} experts of {model}",
    ),
    Rule(
        "expert_tp_does_not_divide_experts_width",
        "routed == 0 or expert_intermediate_size % expert_tp == 0",
        "expert_tp: {expert_tp} does not divide the width {expert_intermediate_size} of an expert of {model}",
    ),
    Rule(
        "experts_do_not_fill_the_replicas",
        "routed == 0 or tp * dp * cp % (ep * expert_tp) == 0",
        "ep: ep x expert_tp = {ep} x {expert_tp} does not divide tp x cp x dp = {tp} x {cp} x {dp}",
    ),
    Rule(
        "experts_under_tp_need_sequence_parallel",
        "routed == 0 or tp == 1 or sequence_parallel == 1",
        "sequence_parallel: experts with tp above 1 need it, found tp = {tp} without; add --sequence-parallel",
    ),
    Rule(
        "adapters_are_narrower_than_the_model",
        "lora_rank <= hidden_size",
        "lora_rank: found {lora_rank}, expected 1 to the {hidden_size} features of {model}",
    ),
    *KIND_RULES,
    *PARALLEL_RULES,
    Rule(
        "no_network",
        "tiers >= 1 or tp * pp * dp * cp == 1",
        "system {system}: describes no network (scale_up_bandwidth), but the plan uses {devices} devices",
    ),
    Rule(
        "no_scale_out_network",
        "tiers >= 2 or tp * pp * dp * cp == 1 or tp * pp * dp * cp <= scale_up_size",
        "system {system}: describes no scale-out network (scale_out_bandwidth), but the plan uses {devices} devices "
        "and a scale-up domain has {scale_up_size}",
    ),
)
"""What a plan must satisfy with a model, a system, a batch and a sequence."""

RULES = (*PLAN_RULES, *MODEL_RULES, *RUN_RULES)
CHOICE_RULES = (*COMBINATION_RULES, *INPUT_RULES, *FREEZE_RULES, *ADAPTER_RULES, *HOST_RULES)
"""What is known before any number is: choices that do not go together."""


def flags(plan: Plan, tiers: int) -> dict[str, int]:
    """The structural names of the rules."""
    return {
        **schedule_flags(plan.schedule),
        "interleaved": int(plan.effective_schedule == "interleaved"),
        "sequence_parallel": int(plan.sequence_parallel),
        "tiers": tiers,
        "routed": 0,
        "two_stacks": 0,
        "balanced": int(plan.cp > 1 and plan.cp_kind != "all-to-all"),
        "dealt": int(plan.cp > 1 and plan.cp_kind == "all-to-all"),
        "uneven": int(plan.stages != "even"),
        "counted": sum(COUNTED[plan.account_for]),
        "layout_stages": len(plan.stage_letters),
        "layout_layers": "".join(plan.stage_letters).count("t"),
        "layout_modules": "".join(plan.stage_letters).count("m"),
        "given_stages": int(plan.stages == "given"),
        "hybrid": int(plan.zero_shards is not None),
        "zero_bubble": int(plan.schedule in ZERO_BUBBLE),
        "zb_h2": int(plan.schedule == "zb-h2"),
        "zb_2p": int(plan.schedule == "zero-bubble-2p"),
        "dual_pipe": int(plan.schedule == "dualpipe"),
        "some_layers": int(plan.recompute_layers is not None),
        "at_once": int(plan.optimizer_in_backward),
        **flags_of_order(plan.rank_order),
        "hides_transfers": int(plan.overlap_pp > 0),
    }


def flags_of_order(order: str) -> dict[str, int]:
    """What rules read of the order of ranks, and nothing else of a plan's choices does."""
    return {"pipeline_inside": int(order == "tp-cp-pp-dp")}


def schedule_flags(schedule: str | None) -> dict[str, int]:
    """What the rules of a plan alone read of its schedule."""
    return {
        "interleaved_asked": int(schedule == "interleaved"),
        "one_stage_asked": int(schedule not in (None, "interleaved")),
    }


def plan_values(plan: Plan) -> dict[str, Any]:
    """What the plan's own rules and their messages read."""
    return {**flags(plan, 0), "schedule": plan.schedule, "vpp": plan.vpp, "pp": plan.pp}


def model_flags(sizes: Mapping[str, int]) -> dict[str, int]:
    """The structural names that a model's sizes give."""
    return {"routed": int("num_experts" in sizes), "two_stacks": int("num_decoder_layers" in sizes)}


DIVIDED = ("num_attention_heads", "intermediate_size", "expert_intermediate_size")
"""Sizes of layers that are divided over devices, which layers may have of their own (`intermediate_size_2`)."""


def divided_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """What must be divided where layers have sizes of their own: their greatest common divisor.

    >>> divided_sizes({"intermediate_size": 96, "intermediate_size_2": 64, "num_attention_heads": 8})
    {'intermediate_size': 32}
    """
    found = {}
    for name in DIVIDED:
        own = [size for key, size in sizes.items() if re.fullmatch(rf"{name}_[0-9]+", key)]
        if own:
            found[name] = math.gcd(sizes[name], *own)
    return found


@lru_cache(maxsize=256)
def _divided(sizes: Frozen[int]) -> dict[str, int]:
    return divided_sizes(sizes)


def run_values(
    plan: Plan,
    model: str,
    sizes: Mapping[str, int],
    system: System,
    work: tuple[int, int],
    encoder_sequence: int | None = None,
) -> dict[str, Any]:
    """What the rules and their messages read.

    Args:
        plan: the plan.
        model: its name.
        sizes: of the model.
        system: gives the network.
        work: batch and sequence.
        encoder_sequence: of the encoder before a decoder; by default as the decoder's.
    """
    batch, sequence = work
    return {
        **flags(plan, len(system.tiers)),
        **ABSENT,
        **sizes,
        **_divided(Frozen(sizes)),
        **model_flags(sizes),
        **{name: int(plan.number(name)) for name, each in NUMBERS.items() if each.whole},
        "schedule": plan.schedule,
        "batch": batch,
        "sequence": sequence,
        "encoder_sequence": encoder_sequence or sequence,
        "scale_up_size": int(system.value("scale_up_size")) if system.tiers else 1,
        "model": model,
        "system": system.name,
    }
