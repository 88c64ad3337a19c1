"""What each training framework runs of all plans, so that a search for it finds no other, and its file says all of it.

Each limit is a check of the framework, or what its options do not say; see the module of each for its pages.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from ..plans.offloaded_inputs import INPUTS
from ..plans.plan import Plan, attention_of
from ..plans.recompute_modules import MODULES
from ..plans.rule import Rule
from ..plans.software_limits import SoftwareLimits, choice_rule

if TYPE_CHECKING:
    from ..models.model import Model

FIXED: Final[dict[str, tuple[Any, ...]]] = {
    "node_limit": (None,),
    "freeze": (None,),
    "overlap_ep": (1.0,),
    "loss": ("unfused",),
    "compiled": (False,),
    "eager": (False,),
    "eager_parts": (None,),
    "fp32_residual": (False,),
    "recompute_modules": (None,),
    "nvme": (None,),
    "optimizer_in_backward": (False,),
    "lora_rank": (None,),
    "lora_targets": (None,),
    "dora": (False,),
    "base_precision": (None,),
}
"""Fields that no option of a framework sets, unless its own limits say otherwise."""
NAMED: Final = tuple(name for name in MODULES if name != "op")
"""Modules that Megatron-Core computes again by name; `op` is none of a layer."""
SWITCH: Final = (0.0, 1.0)
"""What a switch can set of a fraction."""
NO_STAGES: Final[dict[str, tuple[Any, ...]]] = {
    "uneven_stages": (False,),
    "first_stage_layers": (None,),
    "last_stage_layers": (None,),
    "account_for": ("none",),
    "layout": (None,),
}
MEGATRON_RULES: Final = (
    Rule(
        "megatron_cuts_sequences_in_two_chunks_a_part",
        "cp == 1 or sequence % (2 * cp) == 0",
        "cp: Megatron-LM wants sequences divisible by 2 cp = 2 x {cp}, found {sequence}",
    ),
    Rule(
        "megatron_replicates_experts_as_the_rest_where_pipelines_lie_inside",
        "pipeline_inside == 0 or routed == 0 or pp == 1 or ep * expert_tp == tp * cp",
        "rank_order: with tp-cp-pp-dp Megatron-LM wants ep x expert_tp = tp x cp, found {ep} x {expert_tp} and {tp} x "
        "{cp}; expected tp-cp-dp-pp",
    ),
    Rule(
        "megatron_recomputes_layers_of_every_virtual_stage",
        "some_layers == 0 or recompute_layers % vpp == 0",
        "recompute_layers: {recompute_layers} of a stage are no whole number of each of its vpp = {vpp} virtual stages",
    ),
)
TWO_STAGES: Final = Rule(
    "megatron_hides_transfers_of_two_interleaved_stages",
    "pp != 2 or vpp == 1 or hides_transfers == 1",
    "overlap_pp: found 0, but Megatron-LM always hides transfers of two interleaved stages; expected overlap_pp = 1",
)
MEGATRON_CHOICES: Final = (
    choice_rule(
        "megatron_has_no_muon_with_sharded_state",
        "muon == 0 or zero == 0",
        "optimizer: Megatron-LM runs muon without its distributed optimizer and FSDP; expected zero = 0, found {zero}",
    ),
    choice_rule(
        "megatron_fsdp_has_no_interleaved_stages",
        "zero <= 1 or interleaved == 0",
        "zero: {zero} is Megatron-FSDP, which runs no interleaved stages; expected zero up to 1, or schedule 1f1b",
    ),
    choice_rule(
        "megatron_gathers_beside_work_only_where_it_reduces_so",
        "gathers_beside == 0 or reduces_beside == 1",
        "overlap_dp: found 0, but Megatron-LM has --overlap-param-gather only with --overlap-grad-reduce; expected "
        "overlap_dp = 1",
    ),
)
MEGATRON: Final = SoftwareLimits(
    "megatron",
    FIXED
    | {
        "schedule": ("1f1b", "interleaved"),
        "loss": ("unfused", "fused"),
        "fp32_residual": (False, True),
        "overlap_tp": (1.0,),
        "overlap_dp": SWITCH,
        "overlap_parameters": SWITCH,
        "overlap_gather": SWITCH,
        "optimizer": ("adam", "sgd-momentum", "muon"),
        "precision": (None, "bf16", "fp16", "fp8", "fp4"),
    },
    {"overlap_dp": 1.0, "overlap_parameters": 1.0},
    MEGATRON_CHOICES,
    (*MEGATRON_RULES, TWO_STAGES),
    {"offload": ("optimizer", "activations", *INPUTS), "recompute_modules": NAMED},
)
ADAPTERS: Final = ("lora_rank", "lora_targets")
BRIDGE: Final = SoftwareLimits(
    "megatron-bridge",
    {
        **{name: values for name, values in MEGATRON.values.items() if name not in ADAPTERS},
        **NO_STAGES,
        "cp_kind": ("ring",),
        "loss": ("unfused",),
        "vocab_multiple": (None,),
        "fp32_residual": (False,),
        "zero": (0, 1),
        "zero_shards": (None,),
        "attention": ("flash",),
        "optimizer": ("adam",),
        "precision": (None, "bf16", "fp16", "fp8"),
        "offload": (None,),
    },
    MEGATRON.usual,
    MEGATRON_CHOICES,
    MEGATRON_RULES,
    {"recompute_modules": NAMED},
)
TORCHTITAN: Final = SoftwareLimits(
    "torchtitan",
    FIXED
    | {
        "schedule": ("1f1b", "gpipe", "interleaved"),
        "layout": (None,),
        "zero": (2, 3),
        "recompute": ("none", "full"),
        "recompute_layers": (None,),
        "cp_kind": ("ring", "all-gather"),
        "attention": ("flash",),
        "rank_order": ("tp-cp-dp-pp",),
        "overlap_tp": (0.0,),
        "overlap_dp": (1.0,),
        "overlap_parameters": (1.0,),
        "overlap_gather": (1.0,),
        "optimizer": ("adam",),
        "precision": (None, "bf16", "fp8"),
        "offload": (None, "optimizer,weights"),
        "expert_tp": (None,),
        "vocab_multiple": (None,),
        "dropout": (None, False),
    },
    {"overlap_tp": 0.0, "overlap_dp": 1.0, "overlap_parameters": 1.0},
    (),
    (
        Rule(
            "torchtitan_has_sequence_parallelism_with_tp",
            "tp == 1 or sequence_parallel == 1",
            "sequence_parallel: torchtitan's tensor parallelism includes it; expected true with tp = {tp}",
        ),
        Rule(
            "torchtitan_counts_layers_of_stages",
            "interleaved == 0 or vpp == 2 or (num_layers + counted + (num_layers + counted - 1) // (pp * vpp)) "
            "// ((num_layers + counted - 1) // (pp * vpp) + 1) == pp * vpp",
            "vpp: torchtitan takes a number of layers a stage, and none makes pp x vpp = {pp} x {vpp} stages of "
            "{num_layers}{ends_counted}",
        ),
        Rule(
            "torchtitan_deals_a_layer_to_every_stage",
            "pp * vpp <= num_layers + counted",
            "pp x vpp: {stages} stages, but {model} has {num_layers} layers{ends_counted}",
        ),
        Rule(
            "torchtitan_shards_over_whole_replicas",
            "hybrid == 0 or zero_shards % cp == 0",
            "zero_shards: torchtitan shards over cp and some replicas, and {zero_shards} is no multiple of cp = {cp}",
        ),
        Rule(
            "torchtitan_deals_experts_over_replicas",
            "ep == 1 or (ep % cp == 0 and dp * cp % ep == 0)",
            "ep: torchtitan deals experts over cp and replicas: ep = {ep} is to be a multiple of cp = {cp} that "
            "divides dp x cp = {dp} x {cp}",
        ),
    ),
)
DEEPSPEED: Final = SoftwareLimits(
    "deepspeed",
    FIXED
    | NO_STAGES
    | {
        "pp": (1,),
        "cp": (1,),
        "vpp": (1,),
        "schedule": ("1f1b",),
        "sequence_parallel": (False,),
        "recompute": ("none", "full"),
        "recompute_layers": (None,),
        "rank_order": ("tp-cp-dp-pp",),
        "overlap_tp": SWITCH,
        "overlap_dp": SWITCH,
        "overlap_parameters": (0.0,),
        "overlap_gather": (1.0,),
        "optimizer": ("adam", "muon"),
        "precision": (None, "bf16", "fp16"),
        "zero_shards": (None,),
        "expert_tp": (None,),
        "vocab_multiple": (None,),
        "dropout": (None,),
    },
    {},
    (
        choice_rule(
            "deepspeed_reduces_beside_work_with_zero",
            "reduces_beside == 0 or zero > 0",
            "overlap_dp: overlap_comm is a key of zero_optimization; expected zero above 0",
        ),
        choice_rule(
            "deepspeed_offloads_what_it_shards",
            "(keeps_optimizer == 0 or zero > 0) and (keeps_weights == 0 or zero == 3)",
            "offload: the optimizer on the host needs zero above 0, weights zero = 3; found zero = {zero}",
        ),
        choice_rule(
            "deepspeed_offloads_what_is_recomputed",
            "keeps_activations == 0 or recomputes == 1",
            "offload: activations on the host are those of checkpointing; expected recompute = full",
        ),
    ),
    (),
    {"offload": ("optimizer", "weights", "activations")},
)


def training_limits(framework: str, model: Model) -> SoftwareLimits:
    """What a framework runs of a model; one that does not train has no limits here."""
    if framework == "torchtitan" and model.architecture.dropout:
        return _with(TORCHTITAN, {"dropout": (False,)}, {"dropout": False})
    if framework == "deepspeed":
        return _with(DEEPSPEED, {"attention": (attention_of(Plan(), model),)}, {})
    known = {each.name: each for each in (MEGATRON, BRIDGE, TORCHTITAN)}
    return known.get(framework, SoftwareLimits())


def _with(limits: SoftwareLimits, values: dict[str, tuple[Any, ...]], usual: dict[str, Any]) -> SoftwareLimits:
    return dataclasses.replace(limits, values={**limits.values, **values}, usual={**limits.usual, **usual})
