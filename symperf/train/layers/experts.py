"""Routed experts of a layer as operations: router, permutation, transfers, grouped products, and their gradients.

Each device routes its own tokens (with tensor parallelism the shard that sequence parallelism gives it). Experts are
dealt to e devices; one may be split over t_e of them, which then gather the tokens. Shared experts are a dense MLP
beside the routed ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ...common.symbolic import replace_symbols
from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import moe
from ...formulas.language import symbols as sym
from ...formulas.language.atoms import Max, above_one
from ...formulas.language.symbols import (
    activation_bytes,
    ep,
    expert_intermediate_size,
    expert_operations,
    expert_tp,
    hidden_size,
    launch_latency,
    num_experts,
    num_experts_per_token,
    routing_operations,
    statistic_bytes,
    token_imbalance,
    tp,
)
from ...formulas.parallel import expert_parallel as dealt
from ...formulas.parallel.module_sharding import sharded_tensor_operations
from ...formulas.parallel.overheads import host_launch_time
from ...models.layer_counts import router_rows
from ...operations.expert_formats import ExpertFormats, cast_launches
from ...operations.groups import Group, expert_group, expert_shard_groups
from ...operations.schedule import Demand, Op, Overlap, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from .separate_experts import SeparateExperts

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from .transformer import Decoder


class Experts:
    """The experts of one kind of layer."""

    def __init__(self, layer: Decoder) -> None:
        self.layer, self.kernels, self.architecture = layer, layer.kernels, layer.architecture
        self.tokens = layer.shapes.stream_tokens
        self.held, self.scored = dealt.device_experts(num_experts, ep), router_rows(self.architecture)
        arriving = dealt.arriving_tokens(self.tokens, num_experts_per_token, token_imbalance) * expert_tp
        self.arriving = arriving
        self.rows = arriving / self.held
        self.inner = expert_intermediate_size / expert_tp
        self.up_width = 2 * self.inner if self.architecture.gated_mlp else self.inner
        self.separate = SeparateExperts(layer, self.arriving, self.inner, self.held)
        self.formats = ExpertFormats(self.kernels, layer.structure.sent, low=layer.structure.products != "half")

    def path(self, name: str) -> str:
        """The path of an operation of the experts."""
        return f"{self.layer.root}/experts/{name}"

    def forward(self, phase: str) -> list[Node | None]:
        """Router, dispatch, the products of the experts, combination; and the shared experts."""
        return [
            self.router(phase),
            self.projection("latent_in", phase, sym.moe_latent_size, hidden_size),
            *self.in_their_width(self.routed_forward(phase)),
            self.latent_norm(phase),
            self.projection("latent_out", phase, hidden_size, sym.moe_latent_size),
            *self.shared_forward(phase),
        ]

    def in_their_width(self, steps: list[Node | None]) -> list[Node | None]:
        """What happens to rows of the width that experts read and give, which may not be that of the stream."""
        return replace_symbols(steps, {hidden_size: sym.moe_latent_size}) if self.architecture.latent_experts else steps

    def projection(self, name: str, phase: str, out_features: Any, in_features: Any) -> Op | None:
        """A projection of the device's tokens into the width of the experts, or back; whole on every device."""
        if not self.architecture.latent_experts:
            return None
        return self.kernels.matmul(self.path(f"{name}/{phase}"), self.tokens, out_features, in_features)

    def projection_backward(self, name: str, out_features: Any, in_features: Any) -> Sequence | None:
        """Gradients of a projection."""
        if not self.architecture.latent_experts:
            return None
        path = self.path(name)
        return sequence(
            self.kernels.matmul(f"{path}/backward_input", self.tokens, in_features, out_features),
            self.kernels.weight_gradient(f"{path}/backward_weight", self.tokens, in_features, out_features),
        )

    def latent_norm(self, phase: str) -> Op | None:
        """The norm of what the experts give in their own width, where there is one; or its gradients."""
        if not self.architecture.latent_expert_norm:
            return None
        of = self.layer.norm_gradient_of if phase == "backward" else self.layer.norm_of
        return of(self.path(f"latent_norm/{phase}"), self.tokens * sym.moe_latent_size)

    def routed_forward(self, phase: str) -> list[Node | None]:
        """Tokens to their experts, through them, and back."""
        return [
            self.formats.sent(self.path(f"quantise/{phase}"), self.tokens),
            self.permute(f"permute/{phase}"),
            self.transfer(f"dispatch/{phase}", self.formats.there),
            self.gather(f"gather/{phase}"),
            *self.at_host_pace(
                phase,
                self.sort(f"sort/{phase}"),
                self.formats.arrived(self.path(f"restore/{phase}"), self.arriving),
                self.product("up", phase, self.up_width, hidden_size),
                self.separate.limit(phase),
                self.activation(phase),
                self.product("down", phase, hidden_size, self.inner),
                self.separate.bias(phase),
                self.sort(f"unsort/{phase}"),
            ),
            self.scatter(f"scatter/{phase}"),
            self.formats.returned(self.path(f"quantise_results/{phase}"), self.arriving / expert_tp),
            self.transfer(f"combine/{phase}", self.formats.back),
            self.combine(f"unpermute/{phase}"),
        ]

    def backward(self) -> list[Node | None]:
        """Their gradients, in reverse: those of a combination are sent as tokens are, those of a dispatch come back."""
        return [
            *self.shared_backward(),
            self.projection_backward("latent_out", hidden_size, sym.moe_latent_size),
            self.latent_norm("backward"),
            *self.in_their_width(self.routed_backward()),
            self.projection_backward("latent_in", sym.moe_latent_size, hidden_size),
            self.router_backward(),
        ]

    def routed_backward(self) -> list[Node | None]:
        """Gradients of what `routed_forward` does, in reverse."""
        return [
            self.combine_backward("unpermute/backward"),
            self.transfer("combine/backward", self.formats.there),
            self.gather("scatter/backward"),
            self.sort("unsort/backward"),
            self.formats.arrived(self.path("restore/backward"), self.arriving),
            self.separate.bias_backward(),
            self.product("down", "backward_input", self.inner, hidden_size),
            self.weight_gradient("down", self.inner, hidden_size),
            self.activation_backward(),
            self.separate.limit_backward(),
            self.product("up", "backward_input", hidden_size, self.up_width),
            self.weight_gradient("up", hidden_size, self.up_width),
            self.sort("sort/backward"),
            self.scatter("gather/backward"),
            self.formats.returned(self.path("quantise_results/backward"), self.arriving / expert_tp),
            self.transfer("dispatch/backward", self.formats.back),
            self.permute_backward("permute/backward"),
        ]

    def at_host_pace(self, phase: str, *steps: Op | None) -> list[Node | None]:
        """What follows the counts of tokens, which the host waits for: it launches all this while the device is idle.

        Before it knows how many tokens arrived, the host launches no product of the experts and runs ahead of nothing;
        what it launches later, up to the next layer of experts, runs beside them. Gradients have the same counts.
        Where limits are kernels of their own, the host waits for them too (`SeparateExperts.waits_after`).
        """
        if not self.layer.structure.overheads:
            return [sequence(*steps)]
        first = self.separate.waits_after(steps)
        return [
            self.launched_beside(f"launches/{phase}", steps[:first]),
            self.launched_beside(f"relaunches/{phase}", steps[first:]),
        ]

    def launched_beside(self, name: str, steps: tuple[Op | None, ...]) -> Node | None:
        """Operations, beside which the host launches them from the first to the last."""
        found = [op for op in steps if op is not None]
        if not found:
            return None
        products = sum(op.path.split("/")[-2] in ("up", "down") for op in found)
        casts = [cast_launches(self.held)] * (0 if self.layer.structure.products == "half" else products)
        launches = sum((op.launches for op in found), start=sum(casts))
        host = Op(self.path(name), host_launch_time(launches), launches=0)
        return Overlap(sequence(*found), host, sympy.S.One)

    # --- routing

    def router(self, phase: str) -> Sequence:
        """The product with the router, and the choice of experts."""
        traffic = moe.router_bytes(self.tokens, num_experts, num_experts_per_token, statistic_bytes)
        elements = self.tokens * num_experts
        choice = self.kernels.stream(self.path(f"choice/{phase}"), traffic, elements, FLOPS_PER_ELEMENT["softmax"])
        return sequence(
            self.kernels.matmul(self.path(f"router/{phase}"), self.tokens, self.scored, hidden_size),
            self.in_kernels(choice, routing_operations),
        )

    def router_backward(self) -> Sequence:
        """Gradients of the router."""
        path = self.path("router")
        return sequence(
            self.kernels.matmul(f"{path}/backward_input", self.tokens, hidden_size, self.scored),
            self.kernels.weight_gradient(f"{path}/backward_weight", self.tokens, hidden_size, self.scored),
        )

    def permute(self, name: str) -> Op:
        """Tokens sorted by expert."""
        traffic = moe.permutation_bytes(self.tokens, num_experts_per_token, hidden_size, self.formats.there)
        return self.kernels.stream(self.path(name), traffic, self.tokens * num_experts_per_token * hidden_size, 0)

    def permute_backward(self, name: str) -> Op:
        """Gradients of a token's choices brought back and summed."""
        traffic = self.formats.summed_gradient_bytes(self.tokens)
        op = self.kernels.stream(self.path(name), traffic, self.tokens * num_experts_per_token * hidden_size, 1)
        return self.in_kernels(self.scattered(op), routing_operations)

    def combine_backward(self, name: str) -> Op:
        """The gradient of the sum spread by weight, and that of the weights."""
        traffic = self.formats.spread_gradient_bytes(self.tokens)
        return self.kernels.stream(self.path(name), traffic, self.tokens * num_experts_per_token * hidden_size, 3)

    def combine(self, name: str) -> Op:
        """Results summed by weight."""
        traffic = self.formats.summed_bytes(self.tokens)
        op = self.kernels.stream(self.path(name), traffic, self.tokens * num_experts_per_token * hidden_size, 2)
        return self.scattered(op)

    def scattered(self, op: Op) -> Op:
        """A sum over a token's choices, by atomic additions where the run states what they take."""
        if not self.layer.structure.scattered:
            return op
        added = moe.scatter_add_time(self.tokens, num_experts_per_token, hidden_size)
        return replace(op, time=Max(op.time, added))

    def sort(self, name: str) -> Op | None:
        """Rows that arrived device by device put together by expert, or back; kernels that send a token once do it.

        Nothing where a device has a single expert (Megatron-LM, core/transformer/moe/token_dispatcher.py, "Permutation
        2"), or all of them.
        """
        structure = self.layer.structure
        if structure.limits_domains or "bulk_exchanges" in structure.families:
            return None
        rows, several = self.arriving, above_one(ep) * above_one(self.held)
        op = self.kernels.stream(
            self.path(name), moe.permutation_bytes(rows, 1, hidden_size, activation_bytes), rows * hidden_size, 0
        )
        demand = Demand(several * op.demand.flops, several * op.demand.memory_bytes)
        return replace(op, time=several * op.time, demand=demand, launches=several)

    # --- transfers

    def transfer(self, name: str, element_bytes: Any) -> Op | None:
        """Every token to the devices of its experts, or back."""
        message = self.sent_bytes(element_bytes)
        count = self.tokens, num_experts_per_token, hidden_size, element_bytes, token_imbalance
        if "bulk_exchanges" in self.layer.structure.families:
            return self.kernels.exchange(self.path(name), "bulk", count, expert_group())
        if self.layer.structure.limits_domains:
            return self.kernels.node_limited(self.path(name), message, count, expert_group())
        return self.kernels.all_to_all(self.path(name), message, expert_group())

    def sent_bytes(self, element_bytes: Any) -> Any:
        """Bytes of all copies of the device's tokens on their way to experts."""
        return dealt.dispatch_bytes(self.tokens, num_experts_per_token, hidden_size, element_bytes, token_imbalance)

    def gather(self, name: str) -> Op | None:
        """The tokens of a split expert, as they arrived, gathered by its devices."""
        message = dealt.expert_tensor_bytes(self.sent_bytes(self.formats.there), expert_tp)
        return self.kernels.all_gather(self.path(name), message, Group(expert_tp, 1))

    def scatter(self, name: str) -> Op | None:
        """The sum of the shares of a split expert in the format of activations; each device keeps its tokens."""
        message = dealt.expert_tensor_bytes(self.sent_bytes(activation_bytes), expert_tp)
        return self.kernels.reduce_scatter(self.path(name), message, Group(expert_tp, 1))

    # --- products

    def product(self, name: str, phase: str, columns: Any, inner: Any) -> Op:
        """One product of every expert on the device, in one kernel."""
        op = self.kernels.matmul(self.path(f"{name}/{phase}"), self.rows, columns, inner, self.held)
        again = "recompute" if self.layer.structure.recompute == "full" else "backward_input"
        return self.launched(op, self.tensors(name) if phase in ("forward", again) else 0)

    def weight_gradient(self, name: str, in_features: Any, out_features: Any) -> Op:
        """The gradients of the weights of every expert on the device."""
        path = self.path(f"{name}/backward_weight")
        op = self.kernels.weight_gradient(path, self.rows, in_features, out_features, self.held)
        return self.launched(op, self.tensors(name))

    def tensors(self, name: str) -> int:
        """Matrices of one expert that a product of the breakdown stands for."""
        return 2 if name == "up" and self.architecture.gated_mlp else 1

    def launched(self, op: Op, sharded: int) -> Op:
        """A product of all experts, with what the host does for each of them, and for the tensors that are sharded.

        Weights are gathered before the forward pass, and once more before the backward pass or what it computes again.
        """
        op = self.in_kernels(op, expert_operations * self.held)
        if not self.layer.structure.hooked:
            return op
        more = sharded * sharded_tensor_operations(expert_shard_groups(self.layer.structure)[0].ranks)
        return replace(op, launches=op.launches + more * self.held)

    def in_kernels(self, op: Op, more: Any) -> Op:
        """An operation with more of the host, each of a kernel that takes the device a launch where it is told."""
        told = self.layer.structure.overheads
        return replace(op, time=op.time + more * launch_latency if told else op.time, launches=1 + more)

    def activation(self, phase: str) -> Op:
        """The activation function, gated or plain, over the rows of all experts."""
        n = self.arriving * self.inner
        count = self.layer.gated_bytes if self.architecture.gated_mlp else ew.activation_function_bytes
        work = FLOPS_PER_ELEMENT["activation"]
        return self.kernels.stream(self.path(f"activation/{phase}"), count(n, activation_bytes), n, work)

    def activation_backward(self) -> Op:
        """Gradient of the experts' activation."""
        n, gated = self.arriving * self.inner, self.architecture.gated_mlp
        count = self.layer.gated_backward_bytes if gated else ew.activation_function_backward_bytes
        work = FLOPS_PER_ELEMENT["activation backward"]
        return self.kernels.stream(self.path("activation/backward"), count(n, activation_bytes), n, work)

    # --- shared experts

    @property
    def shared_inner(self) -> Any:
        """Inner width of the shared experts on the device."""
        return sym.shared_expert_intermediate_size / tp

    def shared_forward(self, phase: str) -> list[Node | None]:
        """The shared experts: an MLP that every token passes."""
        if not self.architecture.shared_experts:
            return []
        layer, width = self.layer, self.shared_inner
        path = f"{layer.root}/shared"
        up = 2 * width if self.architecture.gated_mlp else width
        return [
            layer.gather(f"{path}/gather/{phase}"),
            layer.linear(f"{path}/up", phase, hidden_size, up),
            layer.activation_of(f"{path}/activation/{phase}", width),
            layer.linear(f"{path}/down", phase, width, hidden_size),
            layer.reduce(f"{path}/reduce/{phase}"),
            self.shared_gate(phase),
        ]

    def shared_backward(self) -> list[Node | None]:
        """Gradients of the shared experts: of their inputs and weights."""
        if not self.architecture.shared_experts:
            return []
        layer, width = self.layer, self.shared_inner
        path = f"{layer.root}/shared"
        up = 2 * width if self.architecture.gated_mlp else width
        return [
            self.shared_gate_backward(),
            layer.gather(f"{path}/gather/backward"),
            layer.row_backward(f"{path}/down", width, hidden_size),
            layer.activation_gradient_of(f"{path}/activation/backward", width),
            layer.column_backward(f"{path}/up", hidden_size, up),
        ]

    def shared_gate(self, phase: str) -> Sequence | None:
        """The gate of the shared experts: a product with one column, and the weighing of their result."""
        if not self.architecture.shared_expert_gate:
            return None
        path = f"{self.layer.root}/shared/gate"
        elements = self.tokens * hidden_size
        traffic = ew.activation_function_bytes(elements, activation_bytes)
        return sequence(
            self.kernels.matmul(f"{path}/{phase}", self.tokens, 1, hidden_size),
            self.kernels.stream(f"{path}/weigh/{phase}", traffic, elements, 1),
        )

    def shared_gate_backward(self) -> Sequence | None:
        """Gradients of the gate of the shared experts."""
        if not self.architecture.shared_expert_gate:
            return None
        path = f"{self.layer.root}/shared/gate"
        elements = self.tokens * hidden_size
        traffic = ew.activation_function_backward_bytes(elements, activation_bytes)
        return sequence(
            self.kernels.stream(f"{path}/weigh/backward", traffic, elements, 3),
            self.kernels.matmul(f"{path}/backward_input", self.tokens, hidden_size, 1),
            self.kernels.weight_gradient(f"{path}/backward_weight", self.tokens, hidden_size, 1),
        )
