"""Symbols of measured collectives of a vendor's library inside one scale-up domain."""

from __future__ import annotations

from ..dimension import SECOND
from .entry import FRACTION, POSITIVE, ZERO_UP, add

domain_latency = add(
    "efficiency",
    "domain_latency",
    r"\lambda_{dom}",
    "Time of a library's collective inside a scale-up domain beside hops and bytes, with the start of its kernel.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
domain_hop_latency = add(
    "efficiency",
    "domain_hop_latency",
    r"\lambda_{hop}",
    "Time that each step from rank to rank adds to a library's collective inside a scale-up domain.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
domain_piece_latency = add(
    "efficiency",
    "domain_piece_latency",
    r"\lambda_{piece}",
    "Four times what a piece of a message costs, times the stages that pieces of a library's collective pass.",
    SECOND,
    ZERO_UP,
    "scale_up",
)
domain_efficiency = add(
    "efficiency",
    "domain_efficiency",
    r"\eta_{dom}",
    "Part of the scale-up bandwidth that a library's collectives of long messages attain inside a domain.",
    domain=POSITIVE,
)
pair_crowding = add(
    "efficiency",
    "pair_crowding",
    r"\kappa_{pair}",
    "Part of the time on a link that grows with the pairs of ranks, where all of them cross one root complex.",
    domain=FRACTION,
)
hops = add("formal", "hops", "n_{hop}", "Steps from rank to rank, one after another.", domain=ZERO_UP)
rounds = add("formal", "rounds", "n_{rnd}", "Times that a collective sends its message over a link of a rank.")
