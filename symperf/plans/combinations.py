"""Choices of a plan that do not go together, whatever the numbers are, as rules."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..models.architecture import RECURRENT
from .input_rules import check_inputs
from .plan_fields import FIELDS
from .recompute_modules import NEEDS, missing_module
from .rule import BrokenRuleError, Rule
from .structure import MATRIX_MIXERS, SPLIT

if TYPE_CHECKING:
    from ..models.architecture import Architecture
    from ..models.model import Model
    from .plan import Plan

NAMES = (
    "pooled",
    "selects",
    "all_gather",
    "forward_only",
    "two_towers",
    "shared_blocks",
    "flash",
    "relative_positions",
    "parts",
    "two_stacks",
    "recurrent",
    "splits_backward",
    "interleaved",
    "zero",
    "hybrid",
    "node_limited",
    "routed",
    "some_layers",
    "recomputes_all",
    "modules_given",
    "modules_known",
    "operations_alone",
    "at_once",
    "matrices_at_once",
    "gradients_without_optimizer",
    "drives_without_host",
    "adam",
    "adafactor",
    "matrix_optimizer",
    "low_precision",
    "all_matrices",
    "keeps_state",
    "keeps_optimizer",
    "keeps_weights",
    "first_given",
    "last_given",
    "uneven",
    "counted",
    "laid_out",
    "kinds_in_turn",
)
"""What conditions on choices read: 0 or 1, and the ZeRO stage."""


def _rule(name: str, condition: str, message: str) -> Rule:
    return Rule(name, condition, message, NAMES)


COMBINATION_RULES = (
    _rule(
        "pooled_indexes_are_counted_only",
        "pooled == 0",
        "{model} has layers whose indexer scores pools of keys: symperf inspect counts them, and their time and memory "
        "in runs are not modelled yet; expected a model without",
    ),
    _rule(
        "selected_keys_need_flash_attention",
        "selects == 0 or flash == 1",
        "attention: {model} has layers that attend to selected or compressed keys, for which kernels gather them; "
        "expected flash, found eager",
    ),
    _rule(
        "cp_with_selected_keys_needs_all_gather",
        "parts == 0 or selects == 0 or all_gather == 1",
        "cp_kind: {model} has layers that select or compress keys of the whole sequence, of which every device needs "
        "all; expected all-gather, found {cp_kind}",
    ),
    _rule(
        "shared_blocks_need_whole_weights",
        "shared_blocks == 0 or zero <= 2",
        "zero: blocks of {model} are shared between layers, which would gather them at every use; expected up to 2",
    ),
    _rule(
        "what_runs_forward_only_is_not_trained",
        "forward_only == 0",
        "{model} has {forward_part}, whose gradients are not modelled yet: symperf inspect and infer have them; "
        "expected a model without",
    ),
    _rule(
        "two_towers_are_not_trained",
        "two_towers == 0",
        "{model} compares images with texts, and a step over both of its towers is not modelled yet: symperf inspect "
        "and infer have them; expected a model without",
    ),
    _rule(
        "relative_positions_need_eager_attention",
        "flash == 0 or relative_positions == 0",
        "attention: {model} learns biases of relative positions, for which flash kernels have no gradient; expected "
        "eager",
    ),
    _rule(
        "cp_with_an_encoder_and_a_decoder",
        "parts == 0 or two_stacks == 0",
        "cp: {model} has an encoder and a decoder, and attention from parts of one sequence to parts of another is "
        "not modelled; expected cp = 1",
    ),
    _rule(
        "cp_with_recurrent_layers",
        "parts == 0 or recurrent == 0",
        "cp: {model} has layers with a recurrent state ({recurrent_mixer}), whose tokens cannot be dealt to devices; "
        "expected cp = 1",
    ),
    _rule(
        "cp_needs_flash_attention",
        "parts == 0 or flash == 1",
        "cp: parts of a sequence need flash attention, found eager; add --attention flash",
    ),
    _rule(
        "schedule_needs_whole_gradients_and_weights",
        "splits_backward == 0 or zero <= 1",
        "zero: stages 2 and 3 do not go with schedule {schedule}, which needs gradients and weights whole until the "
        "last weight gradient; found zero = {zero}",
    ),
    _rule(
        "zero_shards_need_zero",
        "hybrid == 0 or zero > 0",
        "zero_shards: hybrid sharding needs state to shard, found zero = 0; add --zero 1, 2 or 3",
    ),
    _rule(
        "node_limit_needs_experts",
        "node_limited == 0 or routed == 1",
        "node_limit: found {node_limit}, but {model} has no experts",
    ),
    _rule(
        "recompute_layers_need_full_recomputation",
        "some_layers == 0 or recomputes_all == 1",
        "recompute_layers: counts layers of full recomputation, found recompute = {recompute}; add --recompute full",
    ),
    _rule(
        "recompute_modules_need_selective_recomputation",
        "modules_given == 0 or recomputes_all == 0",
        "recompute_modules: are computed again by selective recomputation, found recompute = full, which computes all "
        "again; expected --recompute selective",
    ),
    _rule(
        "recompute_modules_of_the_model",
        "modules_known == 1",
        "recompute_modules: {missing_module} needs {missing_part}, which {model} has not",
    ),
    _rule(
        "operations_are_recomputed_alone",
        "operations_alone == 1",
        "recompute_modules: op says of every operation whether it is computed again; expected it alone",
    ),
    _rule(
        "optimizer_in_backward_updates_by_element",
        "at_once == 0 or (matrices_at_once == 0 and keeps_optimizer == 0)",
        "optimizer_in_backward: updates each weight on the device as its gradient comes, found optimizer = {optimizer} "
        "and offload = {offload}; expected Adam or SGD, and no optimizer on the host",
    ),
    _rule(
        "offloaded_gradients_need_the_optimizer",
        "gradients_without_optimizer == 0",
        "offload: gradients on the host are for its optimizer; add --offload gradients,optimizer",
    ),
    _rule(
        "drives_hold_what_is_offloaded",
        "drives_without_host == 0",
        "nvme: holds what the host keeps, found nvme = {nvme} and offload = {offload}; add --offload {nvme}",
    ),
    _rule(
        "adafactor_needs_whole_matrices",
        "adafactor == 0 or zero == 0",
        "optimizer: adafactor keeps sums over rows and columns of whole matrices, which shards of flattened parameters "
        "do not have; expected zero = 0, found {zero}",
    ),
    _rule(
        "precision_needs_listed_matrices",
        "low_precision == 0 or all_matrices == 1",
        "precision: {precision} needs the matrices of every layer, and those of {unlisted} are not listed",
    ),
    _rule(
        "optimizer_needs_listed_matrices",
        "matrix_optimizer == 0 or all_matrices == 1",
        "optimizer: {optimizer} needs the matrices of every layer, and those of {unlisted} are not listed",
    ),
    _rule(
        "offload_needs_equal_or_uneven_stages",
        "keeps_state == 0 or (first_given == 0 and counted == 0 and laid_out == 0)",
        "offload: {kept_state} and {unequal} do not go together; expected equal or uneven stages",
    ),
    _rule(
        "host_updates_with_adam_only",
        "keeps_optimizer == 0 or adam == 1",
        "offload: the host updates with Adam only (DeepSpeed's CPU-Adam), found optimizer = {optimizer}",
    ),
    _rule(
        "schedule_needs_whole_weights",
        "keeps_weights == 0 or splits_backward == 0",
        "offload: weights do not go with schedule {schedule}, which needs them whole until the last weight gradient",
    ),
    _rule(
        "first_stage_layers_need_last",
        "first_given == 0 or last_given == 1",
        "first_stage_layers: needs last_stage_layers too, expected both or neither",
    ),
    _rule(
        "last_stage_layers_need_first",
        "last_given == 0 or first_given == 1",
        "last_stage_layers: needs first_stage_layers too, expected both or neither",
    ),
    _rule(
        "given_chunks_need_layers_of_one_kind",
        "interleaved == 0 or first_given == 0 or kinds_in_turn == 0",
        "first_stage_layers: {model} has layers of several kinds one after another, of which a layout says how many "
        "every virtual stage has; expected vpp = 1 or layout",
    ),
    _rule(
        "layout_says_all_of_stages",
        "laid_out == 0 or (uneven == 0 and first_given == 0 and counted == 0)",
        "layout: says what every stage has, and {unequal} says it too; expected one of them",
    ),
    _rule(
        "ends_count_where_stages_are_not_given",
        "counted == 0 or first_given == 0",
        "account_for: deals the ends of the model with its layers, and {unequal} says otherwise; expected one of them",
    ),
    _rule(
        "recompute_layers_need_stages_of_layers",
        "some_layers == 0 or (counted == 0 and laid_out == 0)",
        "recompute_layers: counts layers of each stage, and {unequal} leaves stages without; expected neither",
    ),
)
"""What the choices of a plan must satisfy with a model."""


def check_combination(plan: Plan, model: Model, attention: str) -> None:
    """Refuse choices that do not go together.

    Raises:
        BrokenRuleError: one line that says which, and what would do.
    """
    values = _values(plan, model, attention)
    broken = _first_broken(tuple(int(values[name]) for name in NAMES))
    if broken is not None:
        raise BrokenRuleError.of(broken, values | _words(plan, model))
    check_inputs(plan, model)


@lru_cache(maxsize=4096)
def _first_broken(values: tuple[int, ...]) -> Rule | None:
    """The first rule that values of `NAMES` break: a search has thousands of combinations, and few such values."""
    known = dict(zip(NAMES, values, strict=True))
    return next((rule for rule in COMBINATION_RULES if not rule.holds(known)), None)


def _values(plan: Plan, model: Model, attention: str) -> dict[str, Any]:
    """What conditions read."""
    architecture, schedule = model.architecture, plan.effective_schedule
    low, by_matrices = plan.precision in ("fp8", "fp4"), plan.optimizer in ("adafactor", "muon")
    return {
        "pooled": any("pooled_index" in kind.traits for kind in architecture.kinds),
        "selects": architecture.selects,
        "all_gather": plan.cp_kind == "all-gather",
        "two_towers": any(tower.grid.apart for tower in model.towers),
        "forward_only": bool(_forward_part(model)),
        "shared_blocks": _shares_blocks(model),
        "flash": attention == "flash",
        "relative_positions": architecture.positions == "relative",
        "parts": plan.cp > 1,
        "two_stacks": architecture.stacks == 2,
        "recurrent": plan.cp > 1 and bool(_first_recurrent(architecture)),
        "splits_backward": schedule in SPLIT,
        "interleaved": schedule == "interleaved",
        "zero": plan.zero,
        "hybrid": plan.zero_shards is not None,
        "node_limited": plan.node_limit is not None,
        "routed": architecture.routed,
        "some_layers": plan.recompute_layers is not None,
        "recomputes_all": plan.recompute == "full",
        "modules_given": plan.recompute_modules is not None,
        "modules_known": not missing_module(architecture, _modules(plan)),
        "at_once": plan.optimizer_in_backward,
        "matrices_at_once": by_matrices,
        "gradients_without_optimizer": "gradients" in plan.offloads and "optimizer" not in plan.offloads,
        "drives_without_host": bool({*plan.on_drives} - {*plan.offloads}),
        "operations_alone": "op" not in _modules(plan) or _modules(plan) == ("op",),
        "adam": plan.optimizer == "adam",
        "adafactor": plan.optimizer == "adafactor",
        "matrix_optimizer": by_matrices,
        "low_precision": low,
        "all_matrices": not ((low or by_matrices) and _first_unlisted(model)),
        "keeps_state": bool({"activations", "weights"} & set(plan.offloads)),
        "keeps_optimizer": "optimizer" in plan.offloads,
        "keeps_weights": "weights" in plan.offloads,
        "first_given": plan.first_stage_layers is not None,
        "last_given": plan.last_stage_layers is not None,
        "uneven": plan.uneven_stages,
        "counted": plan.account_for != "none",
        "laid_out": plan.layout is not None,
        "kinds_in_turn": bool(model.segments),
    }


def _words(plan: Plan, model: Model) -> dict[str, Any]:
    """What messages tell beside the values."""
    ways = ("first_stage_layers", "last_stage_layers", "account_for", "uneven_stages", "layout")
    given = [name for name in ways if getattr(plan, name) != FIELDS[name].default]
    missing = missing_module(model.architecture, _modules(plan))
    return {
        "model": model.name,
        "missing_module": missing,
        "missing_part": NEEDS.get(missing, ""),
        "schedule": plan.effective_schedule,
        "cp_kind": plan.cp_kind,
        "node_limit": plan.node_limit,
        "recompute": plan.recompute,
        "precision": plan.precision,
        "offload": plan.offload or "none",
        "nvme": plan.nvme,
        "optimizer": plan.optimizer,
        "recurrent_mixer": _first_recurrent(model.architecture),
        "unlisted": _first_unlisted(model),
        "forward_part": _forward_part(model),
        "kept_state": next((what for what in plan.offloads if what != "optimizer"), ""),
        "unequal": given[0] if given else "",
    }


def _modules(plan: Plan) -> tuple[str, ...]:
    """The modules that the plan names."""
    return tuple(plan.recompute_modules.split(",")) if plan.recompute_modules else ()


def _forward_part(model: Model) -> str:
    """What a model has that no training step has; empty where there is nothing."""
    if model.architecture.positions == "disentangled":
        return "scores of contents with relative positions"
    return "a head that pools patches by attention" if model.architecture.head == "pooled" else ""


def _shares_blocks(model: Model) -> bool:
    """Whether several layers share their weights."""
    return any(kind.shared for kind in model.architecture.kinds)


@lru_cache(maxsize=256)
def _first_recurrent(architecture: Architecture) -> str:
    """The first of a model's mixers whose tokens need those before them, one after another; empty where none does."""
    convolved = any("convolved" in kind.traits for kind in architecture.kinds)
    return next((name for name in sorted(RECURRENT) if architecture.has(name)), "convolutions" if convolved else "")


def _first_unlisted(model: Model) -> str:
    """The first of a model's layers whose matrices are not listed one by one; empty where all are."""
    architecture = model.architecture
    other = sorted({kind.mixer for kind in architecture.kinds} - set(MATRIX_MIXERS))
    if other:
        return other[0]
    if any(kind.cross for kind in architecture.kinds):
        return "attention to an encoder"
    if _shares_blocks(model):
        return "blocks that layers share"
    if any(trait in kind.traits for kind in architecture.kinds for trait in ("convolved", "distance_bias")):
        return "attention with convolutions or biases by distance"
    if architecture.side_blocks:
        return "low-rank residuals, features or streams beside them"
    return "attention with a gate for each head" if architecture.head_gate else ""
