"""A rule that a plan must satisfy, the names that rules read, and the error of one that is broken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..common.errors import InputError
from .grammar import Node, function_of, predicate
from .plan_fields import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

IMPOSSIBLE = "choices_do_not_go_together"
"""The reason of a refusal that no rule with a name gives."""
FLAGS = (
    "interleaved_asked",
    "one_stage_asked",
    "interleaved",
    "sequence_parallel",
    "tiers",
    "routed",
    "two_stacks",
    "balanced",
    "dealt",
    "uneven",
    "given_stages",
    "counted",
    "layout_stages",
    "layout_layers",
    "layout_modules",
    "hybrid",
    "zero_bubble",
    "zb_h2",
    "zb_2p",
    "dual_pipe",
    "some_layers",
    "at_once",
    "pipeline_inside",
    "hides_transfers",
)
"""Names that stand for structural choices in a rule: 0 or 1, the number of network tiers, and what a layout has."""
WORK = ("batch", "sequence", "encoder_sequence")
SIZES = (
    "hidden_size",
    "num_experts",
    "expert_intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "num_layers",
    "position_rows",
    "encoder_position_rows",
    "num_patches",
    "ssm_num_heads",
    "ssm_groups",
    "ssm_inner_size",
    "lru_width",
    "num_shared_blocks",
    "residual_block",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "output_groups",
    "layer_input_size",
    "num_update_streams",
    "num_multi_token_layers",
)
"""Sizes of a model that rules read."""
NAMES = (*FLAGS, *(each.name for each in NUMBERS.values() if each.whole), *WORK, *SIZES, "scale_up_size")
ABSENT = {
    "num_experts": 1,
    "expert_intermediate_size": 1,
    **dict.fromkeys(("encoder_position_rows", "num_patches", "output_groups"), 0),
    **dict.fromkeys(("ssm_num_heads", "ssm_groups", "ssm_inner_size", "lru_width"), 0),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads", "layer_input_size", "num_update_streams"), 0),
    **dict.fromkeys(("num_shared_blocks", "residual_block", "num_multi_token_layers"), 0),
}
"""What stands for sizes that a model has not."""


@dataclass(frozen=True)
class Rule:
    """One thing that must hold.

    Attributes:
        name: of the reason, when it does not.
        condition: in the grammar, over `names`.
        message: the error line of a single run, with the values, what follows from them (see `told`) and `{model}`,
            `{system}`, `{schedule}` filled in.
        names: that the condition may read.
    """

    name: str
    condition: str
    message: str
    names: tuple[str, ...] = NAMES

    @cached_property
    def tree(self) -> Node:
        """The parsed condition."""
        return predicate(self.condition, self.names, f"rule {self.name}")

    @cached_property
    def _holds(self) -> Callable[[Mapping[str, Any]], Any]:
        return function_of(self.tree)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether values satisfy it."""
        return bool(self._holds(values))


class BrokenRuleError(InputError):
    """The message of a rule that does not hold.

    Attributes:
        rule: its name.
    """

    rule: str

    @classmethod
    def of(cls, rule: Rule, values: Mapping[str, Any]) -> BrokenRuleError:
        """The error of a rule at some values."""
        error = cls(rule.message.format_map({**values, **tell_values(values)}))
        error.rule = rule.name
        return error


def reason_of(error: InputError) -> str:
    """The name of the rule that an error is of, by which sweeps and searches count it."""
    return error.rule if isinstance(error, BrokenRuleError) else IMPOSSIBLE


def refuse(rules: Iterable[Rule], values: Mapping[str, Any]) -> None:
    """Refuse values that break a rule.

    Raises:
        BrokenRuleError: the message of the first rule that is broken.
    """
    for rule in rules:
        if not rule.holds(values):
            raise BrokenRuleError.of(rule, values)


def tell_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """What messages tell beside the values themselves: products of them, where an open one counts as 1."""
    tp, pp, dp, vpp, cp, micro_batch, batch = (
        values.get(name, 1) for name in ("tp", "pp", "dp", "vpp", "cp", "micro_batch", "batch")
    )
    return {
        "stages": pp * vpp,
        "share": dp * micro_batch,
        "micro_batches": batch // (dp * micro_batch),
        "devices": tp * pp * dp * cp,
        "ends_counted": f" and {values['counted']} that account_for counts" if values.get("counted") else "",
        "chunks": f"2 x cp = {2 * cp}" if values.get("balanced") else f"cp = {cp}",
    }
