"""Attainable parts of the peaks, and sizes that the software chooses."""

from __future__ import annotations

from ..dimension import BYTE, SECOND
from .entry import POSITIVE, ZERO_UP, add

matrix_efficiency = add(
    "efficiency", "matrix_efficiency", r"\eta", "Attainable part of the matrix peak.", domain=POSITIVE
)
ridge_efficiency = add(
    "efficiency",
    "ridge_efficiency",
    r"\eta_{ridge}",
    "Part of its peaks that a product attains at the ridge, where work and traffic take equally long; 1/2 is in turn.",
    domain=POSITIVE,
)
sustained_efficiency = add(
    "efficiency",
    "sustained_efficiency",
    r"\eta_P",
    "Part of the matrix peak that the power limit lets products in 16 bits sustain.",
    domain=POSITIVE,
)
fp8_efficiency = add(
    "efficiency",
    "fp8_efficiency",
    r"\eta_8",
    "Sustained part of the matrix peak in FP8, or in FP4: what `matrix_efficiency` is for products in it.",
    domain=POSITIVE,
)
attention_efficiency = add(
    "efficiency",
    "attention_efficiency",
    r"\eta_a",
    "Part of the matrix peak that a fused attention kernel sustains, forward.",
    domain=POSITIVE,
)
attention_backward_efficiency = add(
    "efficiency",
    "attention_backward_efficiency",
    r"\eta_{ab}",
    "Part of the matrix peak that attention sustains, backward.",
    domain=POSITIVE,
)
vector_efficiency = add(
    "efficiency", "vector_efficiency", r"\eta_v", "Sustained part of the vector peak.", domain=POSITIVE
)
memory_efficiency = add(
    "efficiency",
    "memory_efficiency",
    r"\eta_\beta",
    "Sustained part of the memory bandwidth.",
    domain=POSITIVE,
)
l2_efficiency = add("efficiency", "l2_efficiency", r"\eta_2", "Sustained part of the L2 bandwidth.", domain=POSITIVE)
reread_efficiency = add(
    "efficiency",
    "reread_efficiency",
    r"\eta_r",
    "Part of the L2 bandwidth that attention sustains where it reads cached keys once for each query head.",
    domain=POSITIVE,
)
scale_up_efficiency = add(
    "efficiency",
    "scale_up_efficiency",
    r"\eta_u",
    "Sustained part of the scale-up bandwidth.",
    domain=POSITIVE,
)
scale_out_efficiency = add(
    "efficiency",
    "scale_out_efficiency",
    r"\eta_o",
    "Sustained part of the scale-out bandwidth.",
    domain=POSITIVE,
)
switch_efficiency = add(
    "efficiency",
    "switch_efficiency",
    r"\eta_s",
    "Part of a link's sustained rate at which the switch of a scale-up domain adds and multicasts.",
    domain=POSITIVE,
)
scale_up_half_bytes = add(
    "efficiency",
    "scale_up_half_bytes",
    r"\nu_u",
    "Message size at which a scale-up collective reaches half its bandwidth.",
    BYTE,
    ZERO_UP,
)
scale_out_half_bytes = add(
    "efficiency",
    "scale_out_half_bytes",
    r"\nu_o",
    "Message size at which a scale-out collective has half its bandwidth.",
    BYTE,
    ZERO_UP,
)
collective_latency = add(
    "efficiency",
    "collective_latency",
    r"\lambda_c",
    "Least time of a call of the vendor's library of collectives, where software has no kernels of its own for them.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
peer_latency = add(
    "efficiency",
    "peer_latency",
    r"\lambda_{peer}",
    "Time that a software's own all-reduce takes beside its bytes: the start of its kernel and a barrier of its ranks.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
peer_efficiency = add(
    "efficiency",
    "peer_efficiency",
    r"\eta_{peer}",
    "Part of the scale-up bandwidth at which a software's own all-reduce reads the memory of other devices.",
    domain=POSITIVE,
)
own_limit_bytes = add(
    "efficiency",
    "own_limit_bytes",
    "n_{own}",
    "Largest message that software sums by a kernel of its own.",
    BYTE,
    POSITIVE,
)
tile_long = add("efficiency", "tile_long", "T_l", "Long side of the largest matrix-product tile.")
tile_wide = add("efficiency", "tile_wide", "T_w", "Short side of the largest tile, and the side of the square one.")
tile_narrow = add("efficiency", "tile_narrow", "T_n", "Short side of the smallest tile.")
workspace_bytes = add(
    "efficiency",
    "workspace_bytes",
    "W",
    "Memory that the framework and its libraries hold beside the model.",
    BYTE,
    ZERO_UP,
)
token_imbalance = add(
    "efficiency",
    "token_imbalance",
    r"\chi_t",
    "Tokens of the device whose experts get most, over the mean; 1 where routing is balanced.",
    domain=POSITIVE,
)
