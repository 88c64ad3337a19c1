"""Why plans are not among those of a search: each reason with an example, the fields that it is about, and a remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..plans.plan import FIELDS
from ..plans.rule import IMPOSSIBLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..common.errors import InputError
    from .search import Answer

WORD = re.compile(r"[A-Za-z][\w-]*")
MORE_MICRO_BATCHES = (
    ("schedule", "pp", "dp", "micro_batch"),
    "a larger --batch, or fewer stages and replicas (--max-pp, --max-dp): more micro-batches for each stage",
)
Remedies = dict[str, tuple[tuple[str, ...], str]]
REMEDIES: Remedies = {
    "does_not_fit": (
        ("tp", "pp", "zero", "recompute", "micro_batch", "offload"),
        "more devices, or what the host keeps (--require offload=optimizer)",
    ),
    "above_max_memory": (("tp", "pp", "zero", "recompute", "micro_batch"), "a larger --max-memory, or more devices"),
    "batch_is_not_divisible": (("dp", "micro_batch"), "a --batch that more products of dp and micro_batch divide"),
    "stages_do_not_divide_layers": (
        ("pp", "vpp", "uneven_stages"),
        "stages that differ by a layer (virtual ones: --require uneven-stages=true), or given first and last ones",
    ),
    "interleaved_micro_batches_not_divisible_by_pp": (
        ("schedule", "pp", "dp", "micro_batch"),
        "a --batch with more factors of pp, or another schedule",
    ),
    "zero_bubble_needs_micro_batches": MORE_MICRO_BATCHES,
    "zb_h2_needs_micro_batches": MORE_MICRO_BATCHES,
    "zero_bubble_2p_needs_micro_batches": MORE_MICRO_BATCHES,
    "dualpipe_needs_micro_batches": MORE_MICRO_BATCHES,
    "dualpipe_needs_even_stages": (("schedule", "pp"), "an even pp, or another schedule"),
    "schedule_needs_whole_gradients_and_weights": (
        ("schedule", "zero"),
        "zero 0 or 1 with these schedules, or 1f1b and interleaved with zero 2 and 3",
    ),
    "cp_needs_flash_attention": (("cp", "attention"), "--require attention=flash, or cp = 1"),
    "vpp_needs_a_pipeline": (("vpp", "pp"), "pp above 1, or vpp = 1"),
    "sequence_parallel_needs_tp_above_1": (
        ("sequence_parallel", "tp"),
        "tp above 1; with tp = 1 there is nothing to split",
    ),
    "experts_under_tp_need_sequence_parallel": (
        ("sequence_parallel", "tp"),
        "--require sequence-parallel=true, or tp = 1",
    ),
    "experts_do_not_fill_the_replicas": (
        ("ep", "expert_tp", "tp", "cp", "dp"),
        "ep x expert_tp that divides tp x cp x dp",
    ),
    "stages_straddle_domains": (
        ("rank_order", "tp", "cp"),
        "tp x cp that divides the devices of a scale-up domain; with tp-cp-dp-pp, searched too, stages lie anywhere",
    ),
    "experts_lie_across_pipelines": (
        ("rank_order", "ep", "expert_tp"),
        "ep x expert_tp that divides tp x cp; with rank_order tp-cp-dp-pp, which is searched too, they need not",
    ),
    "more_stages_than_layers": (("pp", "uneven_stages"), "a pp up to the number of layers"),
    "more_stages_than_layers_and_ends": (
        ("pp", "vpp", "uneven_stages"),
        "pp x vpp up to the number of layers and of ends that account_for counts",
    ),
    "chunks_without_layers": (("pp", "vpp", "uneven_stages"), "fewer virtual stages, as in --max-vpp"),
    "rank_order_changes_nothing": (
        ("rank_order",),
        "none needed: the plan is the same with tp-cp-dp-pp, which is searched",
    ),
    "nothing_to_shard": (("zero", "dp", "cp"), "none needed: the plan is the same with zero = 0, which is searched"),
    "one_stage_has_no_schedule": (
        ("schedule", "pp"),
        "none needed: with pp = 1 there are no stages to schedule, and 1f1b, which is searched, stands for all",
    ),
    "no_network": (("tp", "pp", "dp"), "a system that describes one (scale_up_bandwidth)"),
    "no_scale_out_network": (("tp", "pp", "dp"), "a system that describes one (scale_out_bandwidth), or fewer devices"),
}
"""Fields and remedies of reasons in a search for training."""
SAME = {
    "rank_order_changes_nothing": "another order of ranks that moves no group to another tier of the network",
    "nothing_to_shard": "ZeRO where no device holds the same parameters",
    "one_stage_has_no_schedule": "another schedule of one stage than 1f1b",
}
"""What reasons say that are no rule's."""


@dataclass(frozen=True)
class Reason:
    """One reason.

    Attributes:
        name: of it.
        plans: how many it was the first to refuse.
        fields: that it is about.
        example: the message of the first of them; empty where it has none.
        remedy: what would let such plans in.
        told: whether the remedy says more than the message.
    """

    name: str
    plans: int
    fields: tuple[str, ...]
    example: str
    remedy: str
    told: bool

    def as_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "reason": self.name,
            "plans": self.plans,
            "fields": list(self.fields),
            "example": self.example or None,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        words = self.name.replace("_", " ")
        text = f"{words}: {self.example}" if self.example else words
        return f"{text}; what helps: {self.remedy}" if self.told else text


def explained(
    rejected: Mapping[str, int], examples: Mapping[str, str], names: Iterable[str], remedies: Remedies
) -> list[Reason]:
    """Reasons with what they say, the most frequent first.

    Args:
        rejected: how many plans each refused first.
        examples: the message of the first plan of each.
        names: fields that reasons may be about.
        remedies: fields and remedies of reasons that have their own.
    """
    known, found = set(names), []
    for name, plans in sorted(rejected.items(), key=lambda item: (-item[1], item[0])):
        example = examples.get(name, "")
        fields, remedy = remedies.get(name, ((), ""))
        about = tuple(dict.fromkeys(word for word in WORD.findall(example) if word in known))
        fields = fields or about or tuple(dict.fromkeys(part for part in name.split("_") if part in known))
        asked = f"--require {fields[0].replace('_', '-')}=..." if fields else "--explain"
        remedy = remedy or f"another value: {asked}"
        found.append(Reason(name, plans, fields, example, remedy, name in remedies))
    return found


def reasons(answer: Answer) -> list[Reason]:
    """The reasons of a search for training, the most frequent first."""
    examples = dict(SAME)
    for found in answer.found:
        for name, text in found.space.examples.items():
            examples.setdefault(name, text)
    least = [(found.tally.least[0], found.question) for found in answer.found if found.tally.least is not None]
    if least:
        need, question = min(least, key=lambda each: each[0])
        have = question.capacity if question.max_memory is None else min(question.max_memory, question.capacity)
        sizes = f"{need / 2**30:.2f} GiB of {have / 2**30:.2f} GiB"
        told = f"the smallest of all needs {sizes} on {question.devices} devices"
        examples["does_not_fit"] = examples["above_max_memory"] = told
    return explained(answer.rejected, examples, FIELDS, REMEDIES)


def name_of(error: InputError, model: str) -> str:
    """The reason of a refusal: the name of its rule, or else its message without numbers and the model's name."""
    found = reason_of(error)
    if found != IMPOSSIBLE:
        return found
    text = str(error).replace(f" of {model}", "").replace(model, "").split(";")[0]
    return "_".join(word for word in WORD.findall(text) if word != "found").lower()
