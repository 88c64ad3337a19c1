"""What kernels of routed experts reach where they were measured, and how uneven routing is."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import POSITIVE, ZERO_UP, add

expert_latency = add(
    "efficiency",
    "expert_latency",
    r"\lambda_e",
    "Start of all the kernels of a layer's routed experts together: sorting, both grouped products, activation, sum.",
    SECOND,
    ZERO_UP,
    "launch",
)
grouped_efficiency = add(
    "efficiency",
    "grouped_efficiency",
    r"\eta_g",
    "Part of the matrix peak that the grouped products of experts attain.",
    domain=POSITIVE,
)
expert_memory_efficiency = add(
    "efficiency",
    "expert_memory_efficiency",
    r"\eta_{\beta e}",
    "Part of the memory bandwidth at which grouped products read the weights of experts.",
    domain=POSITIVE,
)
expert_passes = add(
    "efficiency",
    "expert_passes",
    r"\pi_e",
    "Times that rows of experts, h and f_e wide, cross memory beside the products: sorted, activated, cast, summed.",
    domain=ZERO_UP,
)
choice_latency = add(
    "efficiency",
    "choice_latency",
    r"\lambda_{ch}",
    "Time that every choice of an expert by a token takes on each device that sorts it, whoever holds the expert.",
    SECOND,
    ZERO_UP,
    "launch",
)
expert_map_latency = add(
    "efficiency",
    "expert_map_latency",
    r"\lambda_{em}",
    "Time that kernels of experts take to find those of their own device where whole experts are dealt to devices.",
    SECOND,
    ZERO_UP,
    "launch",
)
routing_skew = add(
    "efficiency",
    "routing_skew",
    r"\sigma_{rt}",
    "How far the exponent of the power law of the loads of experts is above 1; they are even unless a run states it.",
    domain=POSITIVE,
)
