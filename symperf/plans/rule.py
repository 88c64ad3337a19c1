"""A rule that a plan must satisfy, and the names that rules read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .grammar import Node, predicate

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
    "hybrid",
    "zero_bubble",
    "zb_h2",
    "zb_2p",
    "dual_pipe",
    "some_layers",
    "pipeline_inside",
)
"""Names that stand for structural choices in a rule: 0 or 1, and the number of network tiers."""
NAMES = (
    *FLAGS,
    "tp",
    "pp",
    "dp",
    "vpp",
    "ep",
    "expert_tp",
    "cp",
    "zero_shards",
    "first_stage_layers",
    "last_stage_layers",
    "num_recomputed_layers",
    "num_experts",
    "expert_intermediate_size",
    "micro_batch",
    "batch",
    "sequence",
    "encoder_sequence",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "num_layers",
    "position_rows",
    "num_patches",
    "ssm_num_heads",
    "ssm_groups",
    "ssm_inner_size",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "scale_up_size",
)
ABSENT = {
    "num_experts": 1,
    "expert_intermediate_size": 1,
    **dict.fromkeys(("num_patches", "ssm_num_heads", "ssm_groups", "ssm_inner_size"), 0),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 0),
}
"""What stands for sizes that a model has not."""


@dataclass(frozen=True)
class Rule:
    """One thing that must hold.

    Attributes:
        name: of the reason, when it does not.
        condition: in the grammar, over `NAMES`.
        message: the error line of a single run, with the values and `{model}`, `{system}`, `{schedule}` filled in.
    """

    name: str
    condition: str
    message: str

    @cached_property
    def tree(self) -> Node:
        """The parsed condition."""
        return predicate(self.condition, NAMES, f"rule {self.name}")
