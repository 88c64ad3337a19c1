"""Groups of ranks that talk to one another, and how far apart they are numbered.

Ranks are numbered tensor, context, data, then pipeline; or tensor, context, pipeline, then data, where a whole pipeline
lies inside a replica (Megatron-LM's --use-tp-pp-dp-mapping). Gradients and sharded state know no difference between
replicas and the parts of a sequence: their group has d c ranks, in the second order as d runs of c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import sympy

from ..formulas import collectives
from ..formulas.language.atoms import Max
from ..formulas.language.symbols import cp, dp, ep, expert_tp, pp, tp, zero_shards
from ..plans.structure import EITHER_ORDER

if TYPE_CHECKING:
    from ..plans.structure import AnyOrder, Structure

ONE = sympy.S.One


@dataclass(frozen=True)
class Group:
    """Ranks that talk to one another.

    Attributes:
        ranks: how many.
        stride: how far apart neighbours of a run are in rank order.
        runs: of equally many ranks.
        apart: how far apart the starts of neighbouring runs are.
    """

    ranks: Any
    stride: Any
    runs: Any = ONE
    apart: Any = ONE

    @property
    def inner(self) -> Any:
        """Ranks that share one scale-up domain."""
        if self.runs == 1:
            return collectives.inner_ranks_of(self.ranks, self.stride)
        run = collectives.inner_ranks_of(self.ranks / self.runs, self.stride)
        return run * collectives.inner_ranks_of(self.runs, self.apart)

    @property
    def outer(self) -> Any:
        """Scale-up domains that the group spans."""
        if self.runs == 1:
            return collectives.outer_ranks_of(self.ranks, self.stride)
        run = collectives.outer_ranks_of(self.ranks / self.runs, self.stride)
        return run * collectives.outer_ranks_of(self.runs, self.apart)

    def split(self, shards: Any) -> tuple[Group, Group]:
        """The first `shards` ranks, and those that stand where the first does in each such part.

        Of a group of several runs the shards are whole runs (the rules of `parallel_rules` see to that).
        """
        rest = self.ranks / shards
        if self.runs == 1:
            return Group(shards, self.stride), Group(rest, self.stride * shards)
        runs = self.runs / rest
        return Group(shards, self.stride, runs, self.apart), Group(rest, self.apart * runs)


class Ranked(Protocol):
    """A structure, of training or of inference, as far as the order of its ranks goes."""

    @property
    def rank_order(self) -> AnyOrder:
        """How ranks are numbered, innermost first."""

    @property
    def context(self) -> str:
        """How attention runs over parts of a sequence; "none" where sequences are whole."""


def _by_order(structure: Ranked, inside: Any, outside: Any) -> Any:
    """One of two whole numbers, exactly: by whether a whole pipeline lies inside a replica."""
    if structure.rank_order == "either":
        there, else_there = (sympy.Symbol(name, integer=True, nonnegative=True) for name in EITHER_ORDER)
        return there * inside + else_there * outside
    return inside if structure.rank_order == "tp-cp-pp-dp" else outside


def parts(structure: Ranked) -> Any:
    """Parts of a sequence: 1 where sequences are whole."""
    return ONE if structure.context == "none" else cp


def replicas(structure: Ranked) -> Any:
    """Ranks with the same share of the weights in one pipeline: replicas, and parts of their sequences."""
    return dp * parts(structure)


def tensor_group() -> Group:
    """The tensor-parallel group: neighbours in rank order."""
    return Group(tp, ONE)


def context_group() -> Group:
    """The parts of one sequence: every t-th rank."""
    return Group(cp, tp)


def replica_group(structure: Structure) -> Group:
    """The ranks over which gradients are summed: every t-th; under DualPipe those of both directions.

    The second direction's ranks lie on the mirrored stage; they are placed here as if they were next to the first's.
    """
    twice = 2 if structure.schedule == "dualpipe" else 1
    ranks, apart = twice * replicas(structure), tp * parts(structure) * pp
    if ranks == dp:  # runs of one rank are one run
        return Group(ranks, _by_order(structure, apart, tp))
    return Group(ranks, tp, _by_order(structure, dp, ONE), apart)


def shard_groups(structure: Structure) -> tuple[Group, Group | None]:
    """The ranks that share one copy of the state, and with hybrid sharding those that hold the same shard."""
    whole = replica_group(structure)
    return whole.split(zero_shards) if structure.hybrid else (whole, None)


def pipeline_group(structure: Ranked) -> Group:
    """The pipeline: every (t c d)-th rank, or every (t c)-th where it lies inside a replica."""
    return Group(pp, tp * parts(structure) * _by_order(structure, ONE, dp))


def tied_stride(structure: Structure, distance: Any) -> Any:
    """The stride between the first and the last stage, `distance` stages apart."""
    return pipeline_group(structure).stride * distance


def expert_group() -> Group:
    """The devices over which experts are dealt: every t_e-th rank, tensor-parallel ranks first."""
    return Group(ep, expert_tp)


def expert_replica_group(structure: Structure) -> Group:
    """The replicas of an expert: what is left of tensor, context and data parallelism beside e and t_e.

    With a pipeline inside a replica, e t_e divides the t c ranks of a stage, and the replicas are d runs of the
    t c / (e t_e) in one; without stages e t_e may be a multiple, and then there are as many times fewer runs of one.
    """
    twice = 2 if structure.schedule == "dualpipe" else 1
    ranks, dealt = twice * tp * replicas(structure) / (ep * expert_tp), ep * expert_tp
    if structure.rank_order == "tp-cp-dp-pp":
        return Group(ranks, dealt)
    stage = tp * parts(structure)
    beyond = Max(1, dealt / stage)
    return Group(ranks, dealt, _by_order(structure, dp / beyond, ONE), stage * pp * beyond)


def expert_shard_groups(structure: Structure) -> tuple[Group, Group | None]:
    """`shard_groups` of routed experts."""
    whole = expert_replica_group(structure)
    return whole.split(zero_shards) if structure.hybrid else (whole, None)
