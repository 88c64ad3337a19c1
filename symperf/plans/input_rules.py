"""What inputs of parts that the host keeps need of a plan and its model, as rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .offloaded_inputs import NEEDS, inputs_of, missing_input
from .rule import Rule, refuse

if TYPE_CHECKING:
    from ..models.model import Model
    from .plan import Plan


NAMES: Final = ("known", "whole", "all_again", "single_again", "frozen", "equal", "operands")
INPUT_RULES: Final = (
    Rule(
        "offloaded_inputs_of_the_model",
        "known == 1",
        "offload: {missing} needs {operand}, which {model} has not",
        NAMES,
    ),
    Rule(
        "offloaded_inputs_or_all_activations",
        "whole == 0",
        "offload: activations are all that layers keep, {inputs} too; expected one of them",
        NAMES,
    ),
    Rule(
        "offloaded_inputs_are_kept",
        "all_again == 0 and single_again == 0",
        "offload: of layers that are computed again only their input is kept; expected no {again} with {inputs}",
        NAMES,
    ),
    Rule(
        "offloaded_inputs_of_trained_layers",
        "frozen == 0",
        "offload: {inputs} are not told of layers with adapters or frozen parts; expected activations, or neither",
        NAMES,
    ),
    Rule(
        "offloaded_results_go_with_their_operands",
        "operands == 1",
        "offload: the input of attn_proj is kept by core_attn too; expected core_attn beside it, found {offload}",
        NAMES,
    ),
    Rule(
        "offloaded_inputs_need_equal_or_uneven_stages",
        "equal == 1",
        "offload: {inputs} and stages of given layers do not go together; expected equal or uneven stages",
        NAMES,
    ),
)
"""What parts whose inputs the host keeps need of a plan and its model."""


def check_inputs(plan: Plan, model: Model) -> None:
    """Refuse inputs of parts that a layer does not have or keep.

    Raises:
        BrokenRuleError: one line that says which, and what would do.
    """
    names = inputs_of(plan.offloads)
    if not names:
        return
    missing = missing_input(model.architecture, names)
    single = plan.recompute_modules == "op"
    given = (plan.first_stage_layers, plan.last_stage_layers, plan.layout)
    refuse(
        INPUT_RULES,
        {
            "known": int(not missing),
            "whole": int("activations" in plan.offloads),
            "all_again": int(plan.recompute == "full"),
            "single_again": int(single),
            "frozen": int(plan.freeze is not None or plan.lora_rank is not None),
            "operands": int("attn_proj" not in names or "core_attn" in names),
            "equal": int(given == (None, None, None) and plan.account_for == "none"),
            "missing": missing,
            "operand": NEEDS.get(missing, ""),
            "inputs": ", ".join(names),
            "again": "recompute_modules = op" if single else "recompute = full",
            "offload": plan.offload,
            "model": model.name,
        },
    )
