"""What replicas send one another of gradients and parameters: sums, gathers, and broadcasts by owners of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.collectives import broadcast_fill_time
from ...formulas.language.atoms import Max, above_one, ceil_div, less_one
from ...formulas.language.symbols import (
    ep,
    expert_intermediate_size,
    expert_tp,
    gathered_tensors,
    gradient_bytes,
    hidden_size,
    num_experts,
    num_layers,
    pp,
    tp,
    vocab_size,
)
from ...formulas.parallel import module_sharding, sharding
from ...formulas.parallel.expert_parallel import device_experts
from ...models.counts import kinds_with_counts
from ...operations.groups import (
    Group,
    expert_replica_group,
    expert_shard_groups,
    replica_group,
    shard_groups,
    tied_stride,
)
from ...operations.schedule import Demand, Node, Op, Repeat
from ...operations.schedule import sequence as in_sequence
from ..memory.multi_token_counts import ANY, copied_parameters
from ..memory.stored_weights import gathered_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from .step import TrainingStep

    Collective = Callable[[str, Any, Group], Op | None]


class Exchanges:
    """The transfers of a step's state between replicas, of its fullest device."""

    def __init__(self, step: TrainingStep) -> None:
        self.structure, self.kernels = step.structure, step.kernels
        self.share, self.gradients, self.routed = step.share, step.gradients, step.routed

    def gradient_reduction(self) -> Node | None:
        """The sum of the gradients over the replicas; with ZeRO each keeps its shard."""
        dense, routed = self.share.trained
        of_dense, of_routed = shard_groups(self.structure), expert_shard_groups(self.structure)
        if self.structure.owned:
            of_dense, of_routed = (replica_group(self.structure), None), (expert_replica_group(self.structure), None)
        buckets = self.expert_collectives(module_sharding.reduced_together)
        return _both(
            self.reduced("gradients/reduce", dense, *of_dense) if dense != 0 else None,
            _in_turns(self.reduced("gradients/reduce_experts", routed / buckets, *of_routed), buckets)
            if self.routed and routed != 0
            else None,
        )

    def expert_collectives(self, together: Callable[[Any, Any], Any]) -> Any:
        """Collectives for the experts of a stage: one, or as many as their tensors fill where each is a module's."""
        if not self.structure.hooked:
            return 1
        tensors = 3 if self.structure.architecture.gated_mlp else 2
        each = together(hidden_size, expert_intermediate_size / expert_tp)
        kinds = kinds_with_counts(self.structure.architecture)
        layers = sympy.Add(*(self.share.layers_of(count) for count, kind in kinds if kind.ffn.endswith("experts")))
        return device_experts(num_experts, ep) * tensors * layers / each

    def reduced(self, path: str, parameters: Any, shards: Group, same: Group | None) -> Node | None:
        """The sum of some gradients; with hybrid sharding each rank then sums its shard over the groups.

        Where tensors have owners every replica sums all of them.
        """
        message = parameters * gradient_bytes
        if not self.structure.zero or self.structure.owned:
            return self.kernels.all_reduce(path, message, shards)
        inside = self.in_pieces(self.kernels.reduce_scatter, path, message, shards)
        if same is None or inside is None:
            return inside
        return in_sequence(inside, self.kernels.all_reduce(f"{path}_between", message / shards.ranks, same))

    def tied_reduction(self) -> Node | None:
        """The sum of the gradients of a table's two copies, on the first and the last stage.

        It has two where it is tied, and where the last stage's modules for multi-token prediction read it.
        """
        tied, copied = self.structure.architecture.tied_embeddings, copied_parameters(self.structure)
        if (not tied and copied == 0) or not self.gradients.trains(self.gradients.table):
            return None
        message = ceil_div(vocab_size, tp) * hidden_size * gradient_bytes
        pair = Group(1 + above_one(pp), tied_stride(self.structure, Max(1, less_one(pp))))
        summed = self.kernels.all_reduce("gradients/tied", message, pair)
        return summed if tied or summed is None else Repeat(summed, ANY)

    def parameter_gather(self, path: str = "parameters/gather") -> Node | None:
        """The parameters from every shard: all of them under ZeRO-3, else those that were updated."""
        dense, routed = gathered_bytes(self.structure, self.share)
        gather, groups = self.gathered, (shard_groups(self.structure), expert_shard_groups(self.structure))
        fetches = self.expert_collectives(module_sharding.gathered_together)
        return _both(
            gather(path, dense, groups[0][0]) if dense != 0 else None,
            _in_turns(gather(f"{path}_experts", routed / fetches, groups[1][0]), fetches)
            if self.routed and routed != 0
            else None,
        )

    def gathered(self, path: str, message: Any, group: Group) -> Node | None:
        """Parameters from every shard, or broadcast by the owners of tensors one after the other."""
        if not self.structure.owned:
            return self.in_pieces(self.kernels.all_gather, path, message, group)
        owners = sharding.owners(group.ranks, num_layers / pp)
        each = message / owners
        fill = Op(f"{path}/fill", broadcast_fill_time(each, group.inner, group.outer))
        # a rank takes in the whole tensor, of which a gather would leave it its own part
        whole = each * group.ranks / Max(1, less_one(group.ranks))
        return Repeat(in_sequence(self.kernels.all_gather(path, whole, group), fill), owners)

    def in_pieces(self, collective: Collective, path: str, message: Any, group: Group) -> Node | None:
        """One collective for all parameters; or one a tensor, and each rank's piece of it copied by itself."""
        if not self.structure.gathered_apart:
            return collective(path, message, group)
        tensors = gathered_tensors * num_layers / pp
        each = message / tensors
        copies = sharding.piece_copies_time(each, group.ranks)
        pieces = Op(f"{path}/pieces", copies, Demand(memory_bytes=2 * each * above_one(group.ranks)))
        return Repeat(in_sequence(collective(path, each, group), pieces), tensors)


def _in_turns(node: Node | None, times: Any) -> Node | None:
    """A node so many times; itself where that is once."""
    return node if node is None or times == 1 else Repeat(node, times)


def _both(first: Node | None, second: Node | None) -> Node | None:
    """Two nodes one after the other, those that are there."""
    return in_sequence(first, second) if first and second else first or second
