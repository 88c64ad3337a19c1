"""Why plans are not among those of a search: each reason with an example, the fields that it is about, and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...plans.plan import FIELDS as PLAN
from ..reasons import Reason, Remedies, explained

if TYPE_CHECKING:
    from .load import Survey

NAMES = (*PLAN, "kv_precision", "chunk")
"""Fields that reasons are about."""
REMEDIES: Remedies = {
    "does_not_fit": (
        ("tp", "pp", "ep", "precision", "kv_precision"),
        "more devices, a larger --max-memory, or narrower formats (--require precision=fp8, kv_precision=fp8)",
    ),
    "ttft_out_of_reach": (("tp", "chunk", "precision"), "a longer --ttft, a shorter --prompt, or more devices"),
    "tpot_out_of_reach": (("tp", "precision", "kv_precision"), "a longer --tpot, fewer sequences, or more devices"),
    "batch_is_not_divisible": (("dp", "micro_batch"), "a --batch that more products of dp and micro_batch divide"),
    "no_network": (("tp", "pp", "dp"), "a system that describes one (scale_up_bandwidth)"),
    "no_scale_out_network": (("tp", "pp", "dp"), "a system that describes one (scale_out_bandwidth), or fewer devices"),
}
"""Fields and remedies of reasons that other plans of the space do not always answer."""


def reasons(survey: Survey) -> list[Reason]:
    """The reasons of a survey, the most frequent first."""
    examples = dict(survey.examples)
    if survey.least is not None:
        need, have = (size / 2**30 for size in survey.least)
        examples["does_not_fit"] = f"the smallest needs {need:.2f} GiB of {have:.2f} GiB"
    return explained(survey.rejected, examples, NAMES, REMEDIES)
