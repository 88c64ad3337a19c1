"""Collectives by name: their forms of the literature, and what a measured library's calls of them do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..formulas import collectives as col
from ..formulas.collectives.tiers import SCALE_OUT
from ..formulas.language.atoms import above_one, less_one
from ..formulas.language.symbols import domain_hop_latency

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..plans.structure import Structure
    from .groups import Group


@dataclass(frozen=True)
class Collective:
    """One collective.

    Attributes:
        one_tier: seconds by bytes and ranks.
        two_tiers: seconds by bytes, ranks in a domain and domains.
        hops: steps from rank to rank inside a domain, by ranks.
        rounds: how often a link carries the message.
    """

    one_tier: Callable[[Any, Any], Any]
    two_tiers: Callable[[Any, Any, Any], Any]
    hops: Callable[[Any], Any]
    rounds: int


def _there_and_back(ranks: Any) -> Any:
    return 2 * less_one(ranks)


def _ask_and_answer(ranks: Any) -> Any:
    return 2 * above_one(ranks)


COLLECTIVES: Final[Mapping[str, Collective]] = {
    "all_reduce": Collective(col.scale_up_all_reduce_time, col.group_all_reduce_time, _there_and_back, 2),
    "switched_all_reduce": Collective(
        col.scale_up_switched_all_reduce_time, col.group_switched_all_reduce_time, _there_and_back, 2
    ),
    "all_gather": Collective(col.scale_up_all_gather_time, col.group_all_gather_time, less_one, 1),
    "reduce_scatter": Collective(col.scale_up_reduce_scatter_time, col.group_reduce_scatter_time, less_one, 1),
    "all_to_all": Collective(col.scale_up_all_to_all_time, col.hierarchical_all_to_all_time, _ask_and_answer, 1),
}
"""A switch that adds is in the measured constants of a domain; only the form of the literature needs it apart."""


def collective_time(structure: Structure, name: str, message: Any, group: Group) -> Any:
    """Seconds of a collective of `message` bytes, without what the software adds to each kernel.

    Args:
        structure: says how many tiers there are, and whether the library's calls were measured.
        name: one of `COLLECTIVES`.
        message: bytes, as the collective defines them.
        group: of the ranks.
    """
    each = COLLECTIVES[name]
    one = structure.tiers == 1
    if "domain" not in structure.families:
        return each.one_tier(message, group.ranks) if one else each.two_tiers(message, group.inner, group.outer)
    inner = group.ranks if one else group.inner
    crowded = "crowding" in structure.families
    link = col.crowded_transfer_time(message, inner) if crowded else col.domain_transfer_time(message)
    hops = each.hops(inner)
    if one:
        return col.domain_collective_time(link, inner, hops, each.rounds)
    if name == "all_to_all":
        between = col.all_to_all_time(message, group.outer, *SCALE_OUT)
        return col.domain_collective_time(link, inner, hops, each.rounds) + between
    return col.group_collective_time(link, message, inner, group.outer, hops, each.rounds)


def send_time(structure: Structure, message: Any, group: Group) -> Any:
    """Seconds of a transfer of `message` bytes to the next rank of a group, without the start of its kernel."""
    measured = "domain" in structure.families
    if structure.tiers > 1:
        between = col.domain_send_time if measured else col.group_send_time
        return between(message, group.ranks, group.stride)
    one = col.domain_transfer_time(message) + domain_hop_latency if measured else col.scale_up_send_time(message)
    return above_one(group.ranks) * one
