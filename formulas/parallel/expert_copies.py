"""Experts of which there are several copies (EPLB): slots, what they leave of uneven loads, and what a device holds.

A layer has E experts in E + R_e slots: R_e copies go, one after the other, to the expert with most tokens for each of
its copies, and slots are packed onto e devices, fullest first, each onto the emptiest device that has a place.
"""

from __future__ import annotations

from typing import Any

from ..language.atoms import Max, Min, less_one
from ..language.dimension import ONE
from ..language.formula import formula
from ..sources import EPLB


@formula(
    glyph="E_{sl}",
    dimension=ONE,
    source=EPLB,
    increasing="num_experts redundant_experts",
    curvature="convex",
)
def expert_slots(num_experts: Any, redundant_experts: Any) -> Any:
    """Slots of a layer's experts, E + R_e: what e must divide, and what devices hold weights of.

    Assumes: as many copies in every layer.

    Source: EPLB, eplb.py: physical experts, a multiple of the devices; DeepSeek-V3 report section 3.4.1: 32 redundant
    experts over 32 devices, 9 of a layer on each instead of 8.

    >>> expert_slots(256, 32) / 32
    9
    """
    return num_experts + redundant_experts


@formula(
    glyph=r"\chi_{R}",
    dimension=ONE,
    source=EPLB,
    increasing="device_imbalance ep",
    decreasing="num_experts redundant_experts",
)
def copied_imbalance(device_imbalance: Any, num_experts: Any, redundant_experts: Any, ep: Any) -> Any:
    """Rows of the fullest device over the mean with copies: min(chi_e, 1 + 1 / max(R_e / (e - 1), (E + R_e) / e - 1)).

    With W rows of all, no slot has more than W / R_e: sum_i floor(w_i / L) <= W / L copies bring every expert to L. The
    device that is fullest got a slot of x when it was at most as full as the mean of the others, so it has at most
    W / e + (1 - 1 / e) x, which is the first limit; and as it is the least of its m = (E + R_e) / e slots,
    x <= chi W / (e m), which is the second one.

    Assumes: a device that is full is not emptier than one that has a place; copies of an expert share its tokens
    evenly; loads are those that the balancer saw. In the mean within -10 and +20 % of what EPLB's own algorithm leaves
    of loads by a power law, where a device has several slots; above it where it has one.

    Source: derivation from `replicate_experts` and `balanced_packing` of EPLB, eplb.py.

    >>> copied_imbalance(5, 256, 32, 32), copied_imbalance(5, 256, 8, 8), copied_imbalance(1, 256, 32, 32)
    (9/8, 33/32, 1)
    """
    slots = expert_slots(num_experts, redundant_experts) / ep
    return Min(device_imbalance, 1 + 1 / Max(redundant_experts / Max(1, less_one(ep)), less_one(slots)))
