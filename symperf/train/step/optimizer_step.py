"""The end of a training step: upkeep of the gradients, and the update of weights by the optimizer of the structure."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy

from ...formulas.kernels import low_precision as low
from ...formulas.kernels import optimizers as opt
from ...formulas.language.atoms import Max, Min, above_one, ceil_div
from ...formulas.language.symbols import (
    block_scale_bytes,
    gradient_bytes,
    master_bytes,
    moment_bytes,
    newton_schulz_bytes,
    newton_schulz_steps,
    offloaded_optimizer,
    offloaded_weights,
    optimizer_block,
    optimizer_bytes,
    overlap_offload,
    weight_bytes,
)
from ...formulas.memory import offload as host
from ...formulas.memory.offload import remaining_share
from ...operations.groups import Group, expert_shard_groups, shard_groups
from ...operations.schedule import Demand, Node, Op, Overlap, Repeat, Sequence
from ...operations.schedule import sequence as in_sequence
from ..memory.matrices import held_matrices, held_modules
from ..memory.multi_token_counts import ANY
from ..memory.state_memory import end_factors
from .host_offload import drive_transfer, host_transfer

if TYPE_CHECKING:
    from ..memory.matrices import Held, Matrix
    from .step import TrainingStep

VECTOR_FLOPS = {"adam": 14, "adam-8bit": 22, "adam-4bit": 22, "sgd-momentum": 4, "adafactor": 14, "muon": 6}
"""Operations a parameter: Adam's 14, and 4 to unpack and 4 to pack two moments in 8 or 4 bits; momentum 2 and update 2;
squares, two sums, root of a product, quotient, clipping and update; momentum and look-ahead 4, decay and scale 2."""


class Update:
    """The operations after the last gradient is reduced."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.kernels, self.structure = step, step.kernels, step.structure

    @cached_property
    def modules(self) -> Held:
        """The trained matrices of the modules for multi-token prediction."""
        return held_modules(self.structure, self.step.share.modules, self.structure.frozen)

    @cached_property
    def layers(self) -> Held:
        """The trained matrices of the layers."""
        return held_matrices(self.structure, self.step.share.layers_of, self.structure.frozen)

    @cached_property
    def held(self) -> Held:
        """The trained matrices of layers and modules."""
        return self.layers + self.modules

    def node(self) -> Sequence:
        """Upkeep of the device's share of the gradients, the update of its share of the state, reset of gradients."""
        kernels, updated = self.kernels, self.step.share.updated_parameters
        reset = self.step.trained_parameters if self.structure.zero < 2 else updated
        unscale = opt.gradient_unscale_bytes(updated, gradient_bytes)
        clip = opt.gradient_clip_bytes(updated, gradient_bytes)
        reset_bytes, at_once = opt.gradient_reset_bytes(reset, gradient_bytes), self.structure.updates_at_once
        return in_sequence(
            kernels.stream("optimizer/unscale", unscale, updated, 2) if self.structure.loss_scaling else None,
            None if at_once else kernels.stream("optimizer/clip", clip, updated, 3),
            self.update(updated),
            None if at_once else kernels.stream("optimizer/reset", reset_bytes, reset, 0),
            self.cast(),
            self.weights_to_host(),
        )

    def update(self, updated: Any) -> Node:
        """The update itself: on the device, on the host, or on both side by side."""
        if self.structure.optimizer == "muon":
            return self.muon()
        if "optimizer" not in self.structure.offload:
            return self.element_wise(updated)
        own, other = remaining_share(offloaded_optimizer) * updated, offloaded_optimizer * updated
        traffic = opt.adam_bytes(other, weight_bytes, gradient_bytes, optimizer_bytes)
        on_host = Op("optimizer/host", host.host_update_time(traffic), Demand(opt.adam_flops(other)))
        back = other * weight_bytes
        if "weights" in self.structure.offload:
            back *= remaining_share(offloaded_weights)
        beside: Node = Overlap(on_host, host_transfer("offload/updated", back), overlap_offload)
        if "optimizer" in self.structure.nvme:
            moved = 2 * other * optimizer_bytes  # read, and written once it is updated
            beside = Overlap(
                beside, Op("offload/drives", host.drive_time(moved), Demand(message_bytes=moved)), overlap_offload
            )
        return Overlap(beside, self.element_wise(own), sympy.S.One)

    def element_wise(self, updated: Any, name: str = "") -> Op:
        """A fused update of every parameter."""
        kind = name or self.structure.optimizer
        traffic = {
            "adam": lambda: opt.adam_bytes(updated, weight_bytes, gradient_bytes, optimizer_bytes),
            "adam-8bit": lambda: opt.update_bytes(updated, master_bytes + 2 * (moment_bytes + self.scale)),
            "adam-4bit": lambda: opt.update_bytes(updated, master_bytes + 2 * (moment_bytes + self.scale)),
            "sgd-momentum": lambda: opt.update_bytes(updated, master_bytes + moment_bytes),
            "adafactor": lambda: opt.adafactor_bytes(updated, self.factors()),
        }[kind]()
        path = f"optimizer/{kind.replace('-', '_')}"
        return self.kernels.stream(path, traffic, updated, VECTOR_FLOPS[kind])

    @property
    def scale(self) -> Any:
        """Bytes of scales for an element of an 8-bit moment."""
        return block_scale_bytes / optimizer_block

    def factors(self) -> Any:
        """Elements of Adafactor's factored moments on the device, those of tables, head and last norm among them."""
        return self.held.factors(routed=False) + self.held.factors(routed=True) + end_factors(self.structure)

    def cast(self) -> Op | None:
        """The low-precision copies of the weights of linear layers, made anew."""
        if self.structure.products == "half":
            return None
        elements = self.held.linear(routed=False) + self.held.linear(routed=True)
        if elements == 0:
            return None
        return self.kernels.stream("optimizer/cast", low.weight_cast_bytes(elements), elements, 1)

    def weights_to_host(self) -> Op | None:
        """Updated weights that the host keeps, of which the device made the update."""
        if "weights" not in self.structure.offload:
            return None
        message = offloaded_weights * self.step.trained_layer_weights * weight_bytes
        if "optimizer" in self.structure.offload:
            message *= remaining_share(offloaded_optimizer)
        move = drive_transfer if "weights" in self.structure.nvme else host_transfer
        return move("offload/weights/updated", message)

    # --- Muon

    def muon(self) -> Node:
        """Momentum, orthogonalisation and update of the matrices; Adam for tables, head and vectors."""
        matrices = self.updated_matrices()
        rest = self.rest()
        traffic = opt.muon_momentum_bytes(matrices)
        apply = opt.muon_apply_bytes(matrices)
        return in_sequence(
            self.kernels.stream("optimizer/muon/momentum", traffic, matrices, 4),
            *(self.orthogonalised(count, matrix) for count, matrix in self.layers.matrices),
            *(Repeat(self.orthogonalised(count, matrix), ANY) for count, matrix in self.modules.matrices),
            self.kernels.stream("optimizer/muon/update", apply, matrices, 2),
            self.element_wise(rest, "adam"),
        )

    def rest(self) -> Any:
        """Parameters that are no hidden layer's matrix, of those that the device updates."""
        dense = self.held.vectors + self.step.share.trained_ends
        return dense / self.shards(routed=False).ranks + self.held.expert_vectors / self.shards(routed=True).ranks

    def updated_matrices(self) -> Any:
        """Elements of matrices whose state the device holds."""
        dense = self.held.elements(routed=False) / self.shards(routed=False).ranks
        return dense + self.held.elements(routed=True) / self.shards(routed=True).ranks

    def shards(self, *, routed: bool) -> Group:
        """The ranks that share the state; one where each has all of it."""
        if not self.structure.zero:
            return Group(sympy.S.One, sympy.S.One)
        return (expert_shard_groups if routed else shard_groups)(self.structure)[0]

    def orthogonalised(self, count: Any, matrix: Matrix) -> Sequence:
        """The matrices of one name: gathered from shards and tensor-parallel ranks, and iterated on whole.

        Every tensor-parallel rank iterates (Megatron Core's mode "duplicated"); of the ranks that share the state each
        iterates on its part of the matrices.
        """
        shards, path = self.shards(routed=matrix.routed), f"optimizer/muon/{matrix.name}"
        local = opt.muon_gather_bytes(count * matrix.elements)
        whole = opt.muon_gather_bytes(count * matrix.count * matrix.rows * matrix.columns) / shards.ranks
        small, large = Min(matrix.rows, matrix.columns), Max(matrix.rows, matrix.columns)
        own = ceil_div(count * matrix.count, shards.ranks)
        product = self.kernels.matmul
        moved = {"right": newton_schulz_bytes, "result": newton_schulz_bytes}
        iteration = in_sequence(
            product(f"{path}/gram", small, small, large, **moved),
            product(f"{path}/square", small, small, small, **moved),
            product(f"{path}/product", small, large, small, **moved),
        )
        split = above_one(matrix.ranks) * whole
        tensor = Group(matrix.ranks, sympy.S.One)
        return in_sequence(
            self.kernels.all_gather(f"{path}/gather", local, shards) if self.structure.zero else None,
            self.kernels.all_gather(f"{path}/gather_split", split, tensor) if matrix.ranks != 1 else None,
            Repeat(iteration, newton_schulz_steps * own),
        )
