"""Groups of ranks that talk to one another, in rank order: tensor, context, data, then pipeline.

Gradients and sharded state know no difference between replicas and the parts of a sequence: their group has d c ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from .formulas.symbols import cp, dp, ep, expert_tp, pp, tp, zero_shards

if TYPE_CHECKING:
    from .structure import Structure


@dataclass(frozen=True)
class Group:
    """Ranks that talk to one another: how many, and how far apart in rank order."""

    ranks: Any
    stride: Any


def parts(structure: Structure) -> Any:
    """Parts of a sequence: 1 where sequences are whole."""
    return sympy.S.One if structure.context == "none" else cp


def replicas(structure: Structure) -> Any:
    """Ranks with the same share of the weights in one pipeline: replicas, and parts of their sequences."""
    return dp * parts(structure)


def tensor_group() -> Group:
    """The tensor-parallel group: neighbours in rank order."""
    return Group(tp, sympy.S.One)


def context_group() -> Group:
    """The parts of one sequence: every t-th rank."""
    return Group(cp, tp)


def replica_group(structure: Structure) -> Group:
    """The ranks over which gradients are summed: every t-th; under DualPipe those of both directions.

    The second direction's ranks lie on the mirrored stage; they are placed here as if they were next to the first's.
    """
    twice = 2 if structure.schedule == "dualpipe" else 1
    return Group(twice * replicas(structure), tp)


def shard_groups(structure: Structure) -> tuple[Group, Group | None]:
    """The ranks that share one copy of the state, and with hybrid sharding those that hold the same shard."""
    whole = replica_group(structure)
    if not structure.hybrid:
        return whole, None
    return Group(zero_shards, tp), Group(whole.ranks / zero_shards, tp * zero_shards)


def pipeline_group(structure: Structure | None = None) -> Group:
    """The pipeline: every (t c d)-th rank."""
    return Group(pp, tp * (dp if structure is None else replicas(structure)))


def tied_stride(structure: Structure, distance: Any) -> Any:
    """The stride between the first and the last stage, `distance` stages apart."""
    return tp * replicas(structure) * distance


def expert_group() -> Group:
    """The devices over which experts are dealt: every t_e-th rank, tensor-parallel ranks first."""
    return Group(ep, expert_tp)


def expert_replica_group(structure: Structure) -> Group:
    """The replicas of an expert: what is left of tensor, context and data parallelism beside e and t_e."""
    twice = 2 if structure.schedule == "dualpipe" else 1
    return Group(twice * tp * replicas(structure) / (ep * expert_tp), ep * expert_tp)


def expert_shard_groups(structure: Structure) -> tuple[Group, Group | None]:
    """`shard_groups` of routed experts."""
    whole = expert_replica_group(structure)
    if not structure.hybrid:
        return whole, None
    return Group(zero_shards, whole.stride), Group(whole.ranks / zero_shards, whole.stride * zero_shards)
