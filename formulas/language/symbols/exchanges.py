"""What kernels that exchange tokens between experts reach where they were measured."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import POSITIVE, ZERO_UP, add

exchange_latency = add(
    "efficiency",
    "exchange_latency",
    r"\lambda_x",
    "Start of a direct exchange of tokens, in which every copy of a token is a message of its own.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
exchange_tokens = add(
    "format",
    "exchange_tokens",
    r"n_{xT}",
    "Tokens of a device for which buffers of direct exchanges are kept.",
)
exchange_hop_latency = add(
    "efficiency",
    "exchange_hop_latency",
    r"\lambda_{xo}",
    "Time that a direct exchange takes longer where it crosses domains.",
    SECOND,
    ZERO_UP,
    "scale_out",
)
exchange_efficiency = add(
    "efficiency",
    "exchange_efficiency",
    r"\eta_x",
    "Part of the scale-up bandwidth that a direct exchange sustains.",
    domain=POSITIVE,
)
exchange_out_efficiency = add(
    "efficiency",
    "exchange_out_efficiency",
    r"\eta_{xo}",
    "Part of the scale-out bandwidth that exchanges of tokens sustain.",
    domain=POSITIVE,
)
bulk_exchange_latency = add(
    "efficiency",
    "bulk_exchange_latency",
    r"\lambda_b",
    "Start of a bulk exchange of tokens, in which one goes once to each device: its kernels and their notification.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
bulk_hop_latency = add(
    "efficiency",
    "bulk_hop_latency",
    r"\lambda_{bo}",
    "Time that a bulk exchange takes longer for each doubling of the domains that it spans.",
    SECOND,
    ZERO_UP,
    "scale_out",
)
exchange_units = add(
    "efficiency",
    "exchange_units",
    "s_x",
    "Multiprocessors that software gives to a bulk exchange of tokens.",
    domain=POSITIVE,
)
exchange_unit_efficiency = add(
    "efficiency",
    "exchange_unit_efficiency",
    r"\eta_{x1}",
    "Part of the scale-up bandwidth that one multiprocessor of a bulk exchange carries.",
    domain=POSITIVE,
)
