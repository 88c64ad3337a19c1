"""Routed experts of a layer of an inference.

With e = 1 every device of a tensor-parallel group holds a part of every expert, and the results are summed like those
of a dense MLP. With e above 1 whole experts are dealt to e devices: each device of the group sends its part of the
tokens to their experts, takes them back, and the group gathers them. Or every device gathers the tokens of all
e t_e / t replicas, runs those that chose an expert of its own, and results are summed and scattered (vLLM's
allgather_reducescatter). Routing is uniform, or its loads follow a power law where a run states one: a step of few
tokens reads the experts that it is expected to choose.

Where software was measured, its few kernels for experts are one operation, with their sorting, casts and sums; and its
own kernels exchange tokens: direct ones in decoding, bulk ones in prefill.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ..common.symbolic import replace_symbols
from ..formulas.kernels import adapters as form
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import grouped_experts as grouped
from ..formulas.kernels import matmul, moe
from ..formulas.kernels import thin_matmul as thin
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import above_one
from ..formulas.language.symbols import (
    activation_bytes,
    cp,
    ep,
    expert_intermediate_size,
    expert_tp,
    hidden_size,
    num_experts,
    num_experts_per_token,
    operand_bytes,
    redundant_experts,
    routing_skew,
    statistic_bytes,
    table_bytes,
    token_imbalance,
    tp,
    weight_bytes,
)
from ..formulas.parallel import expert_copies as copies
from ..formulas.parallel import expert_exchange as exchange
from ..formulas.parallel import expert_parallel as dealt
from ..models.layer_counts import router_rows
from ..operations.expert_formats import ExpertFormats
from ..operations.groups import Group, context_group
from ..operations.kernels import expert_group, tensor_group
from ..operations.schedule import Overlap, sequence
from ..operations.shapes import FLOPS_PER_ELEMENT
from .adapters import adapters_present, products_of_adapters, with_adapters
from .hosted import hosted_experts

if TYPE_CHECKING:
    from ..operations.schedule import Node, Op
    from .layer import Layer


REPLICAS = ep * expert_tp / tp
"""Replicas whose tokens meet the same experts, where tokens are gathered."""
FUSED_KERNELS = 5
"""Kernels that stand for what is one operation where software was measured: sort, product, activation, product, sum."""


class Experts:
    """The experts of one kind of layer, in one phase."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.kernels, self.architecture = layer, layer.kernels.of_class("experts"), layer.architecture
        structure = layer.structure
        self.dealt_out, self.gathered = structure.experts_dealt, structure.experts_gathered
        self.scored = router_rows(self.architecture)
        # Devices that have parts of a sequence's cache decode the same tokens: each sends its share of them.
        self.tokens = layer.own_tokens(layer.tokens) / tp if self.dealt_out else layer.tokens
        self.parts = parts = ep if self.dealt_out or self.gathered else 1
        # Tokens of all that share the experts, and a device's share of them.
        all_tokens = layer.mean_tokens
        if self.dealt_out or self.gathered:
            all_tokens = layer.own_tokens(all_tokens) * (ep / tp if self.dealt_out else REPLICAS)
        self.all_tokens, self.share = all_tokens, all_tokens / parts
        self.imbalance = token_imbalance
        if structure.skewed:
            self.imbalance *= grouped.skewed_imbalance(all_tokens, num_experts, ep, routing_skew)
        slots = num_experts
        if structure.copied:
            slots = copies.expert_slots(num_experts, redundant_experts)
            self.imbalance = copies.copied_imbalance(self.imbalance, num_experts, redundant_experts, ep)
        self.slots = slots
        self.arriving = dealt.arriving_tokens(self.share, num_experts_per_token, self.imbalance)
        routed = all_tokens, num_experts_per_token, slots
        self.groups = moe.expected_experts(*routed) / parts
        self.rows = self.imbalance * moe.expected_expert_rows(*routed)
        self.inner = expert_intermediate_size / expert_tp
        self.formats = ExpertFormats(self.kernels, layer.structure.sent, low=self.kernels.mixed_rates)

    def operations(self) -> list[Node | None]:
        """Router, dispatch, the products of the experts, combination; and the shared experts, after them or beside."""
        routed: list[Node | None] = [
            *self.router(),
            self.projection("latent_in", sym.moe_latent_size, hidden_size),
            *self.in_their_width(hosted_experts(self, self.routed())),
            self.latent_norm(),
            self.projection("latent_out", hidden_size, sym.moe_latent_size),
        ]
        shared: list[Node | None] = [*self.shared()]
        if shared and self.layer.fusion.shared_beside:
            # Products inside an overlap get their adapters here: later only single operations of a layer do.
            shared = [*with_adapters(self.layer, shared)] if self.layer.structure.adapted else shared  # type: ignore[arg-type]
            routed, shared = [Overlap(sequence(*routed), sequence(*shared), sympy.S.One)], []
        return [*routed, *shared, self.add_shared(), *self.sums()]

    def in_their_width(self, steps: list[Op | None]) -> list[Op | None]:
        """What happens to rows of the width that experts read and give, which may not be that of the stream."""
        return replace_symbols(steps, {hidden_size: sym.moe_latent_size}) if self.architecture.latent_experts else steps

    def projection(self, name: str, out_features: Any, in_features: Any) -> Op | None:
        """A projection of the tokens into the width of the experts, or back; whole on every device."""
        if not self.architecture.latent_experts:
            return None
        return self.kernels.matmul(self.path(name), self.tokens, out_features, in_features)

    def latent_norm(self) -> Op | None:
        """The norm of what the experts give in their own width, where there is one."""
        if not self.architecture.latent_expert_norm:
            return None
        n = self.tokens * sym.moe_latent_size
        return self.kernels.stream(
            self.path("latent_norm"), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
        )

    def routed(self) -> list[Op | None]:
        """Tokens to their experts, through them, and back."""
        measured = "experts" in self.kernels.structure.families
        return [
            # Kernels before products in low precision write their operands, and so what is sent: no cast is counted.
            None if self.formats.low else self.formats.sent(self.path("quantise"), self.tokens),
            None if measured else self.stream("permute", self.permuted, 0),
            self.transfer("dispatch", self.formats.there),
            self.formats.arrived(self.path("restore"), self.arriving),
            *(self.fused_with_adapters() if measured else self.kernel_by_kernel()),
            self.formats.returned(self.path("quantise_results"), self.arriving),
            self.transfer("combine", self.formats.back),
            None if measured else self.stream("unpermute", self.formats.summed_bytes(self.share), 2),
        ]

    @property
    def up_columns(self) -> Any:
        """Columns of the first product of an expert."""
        return 2 * self.inner if self.architecture.gated_mlp else self.inner

    def kernel_by_kernel(self) -> list[Op]:
        """Both products and the activation between them, each a kernel with a start of its own."""
        up, down = self.product("up", self.up_columns, hidden_size), self.product("down", hidden_size, self.inner)
        return [up, *self.adapters("up"), self.activation(), down, *self.adapters("down")]

    def fused_with_adapters(self) -> list[Op]:
        """The kernels that were measured together, and those of adapters, which run between them."""
        fused = self.fused(self.arriving, self.groups, self.sorted_choices)
        return [fused, *self.adapters("up"), *self.adapters("down")]

    @property
    def sides(self) -> dict[str, tuple[Any, Any, int]]:
        """Input, outputs and packed layers of both products of an expert on a device."""
        packed = 2 if self.architecture.gated_mlp else 1
        return {"up": (hidden_size, self.up_columns, packed), "down": (self.inner, hidden_size, 1)}

    def adapters(self, name: str) -> list[Op]:
        """Products of adapters beside one of the experts, where they have some.

        Each pair of an expert and an adapter is an expert of its own (vLLM, pull request 32317; SGLang, 22122): a pass
        reads the pairs that its choices are expected to meet, with the adapters of all replicas that share the experts.
        """
        if "experts" not in self.layer.structure.adapted:
            return []
        inner, columns, packed = self.sides[name]
        pairs = num_experts * adapters_present(self.layer.sequences * self.all_tokens / self.layer.mean_tokens)
        met = moe.expected_experts(self.all_tokens * num_experts_per_token, 1, pairs) / self.parts
        return products_of_adapters(self.kernels, self.path(name), (self.arriving, inner, columns), packed, met)

    @property
    def adapter_bytes(self) -> Any:
        """Bytes of the slots of adapters of a device's experts, where they have some."""
        if "experts" not in self.layer.structure.adapted:
            return 0
        each = (form.adapter_memory(packed * inner, columns) for inner, columns, packed in self.sides.values())
        (found,) = self.in_their_width([sum(each)])
        return self.slots / self.parts * found

    @property
    def sorted_choices(self) -> Any:
        """Choices that a device sorts: all those of every token that has an expert there."""
        if self.dealt_out:
            return self.share * num_experts_per_token * exchange.places_per_token(num_experts_per_token, ep)
        return self.all_tokens * num_experts_per_token

    def fused(self, rows: Any, groups: Any, choices: Any) -> Op:
        """The kernels of the experts on one device, as they were measured together; casts are within.

        Args:
            rows: of all experts of the device.
            groups: experts that have any.
            choices: that it sorts.
        """
        whole = "experts" in self.layer.structure.kept
        formats = (activation_bytes, table_bytes) if whole else (operand_bytes, weight_bytes)
        sizes = rows, groups, hidden_size, self.up_columns, self.inner, *formats
        time = grouped.fused_experts_time(*sizes, choices) + FUSED_KERNELS * thin.gap_time()
        if "expert_maps" in self.kernels.structure.families and (self.dealt_out or self.gathered):
            time += grouped.expert_map_time(ep)
        work = matmul.matmul_flops(rows, self.up_columns + self.inner, hidden_size, 1)
        op = self.kernels.fused(self.path("routed"), time, work, grouped.fused_experts_bytes(*sizes))
        return self.kernels.in_format(op)

    def path(self, name: str) -> str:
        """The path of an operation of the experts."""
        return self.layer.path(f"{self.layer.root}/experts/{name}")

    def router(self) -> list[Op]:
        """The product with the router, in 16 bits, and the choice of experts."""
        traffic = moe.router_bytes(self.tokens, num_experts, num_experts_per_token, statistic_bytes)
        elements = self.tokens * num_experts
        return [
            self.kernels.matmul(
                self.path("router"), self.tokens, self.scored, hidden_size, right=table_bytes, left=activation_bytes
            ),
            self.kernels.stream(self.path("choice"), traffic, elements, FLOPS_PER_ELEMENT["softmax"]),
        ]

    @property
    def permuted(self) -> Any:
        """Bytes of sorting tokens by expert."""
        return moe.permutation_bytes(self.share, num_experts_per_token, hidden_size, self.formats.there)

    def stream(self, name: str, traffic: Any, work: int) -> Op:
        """Tokens sorted by expert, or results summed by weight."""
        elements = self.share * num_experts_per_token * hidden_size
        return self.kernels.stream(self.path(name), traffic, elements, work)

    def transfer(self, name: str, element_bytes: Any) -> Op | None:
        """Every token to the devices of its experts, or back."""
        if self.gathered:
            collective = self.kernels.all_gather if name == "dispatch" else self.kernels.reduce_scatter
            message = self.all_tokens * hidden_size * element_bytes
            return collective(self.path(name), message, Group(REPLICAS, tp))
        if not self.dealt_out:
            return None
        count = self.tokens, num_experts_per_token, hidden_size, element_bytes, self.imbalance
        kinds = ("direct", "bulk") if self.layer.phase == "decode" else ("bulk", "direct")
        kind = next((kind for kind in kinds if f"{kind}_exchanges" in self.layer.structure.families), None)
        message = dealt.dispatch_bytes(*count)
        if kind is None and self.layer.structure.limits_domains:
            return self.kernels.node_limited(self.path(name), message, count, expert_group())
        if kind is None:
            return self.kernels.all_to_all(self.path(name), message, expert_group())
        op = self.kernels.exchange(self.path(name), kind, count, expert_group())
        return None if op is None else replace(op, time=op.time + above_one(ep) * thin.gap_time())

    def product(self, name: str, columns: Any, inner: Any) -> Op:
        """One product of every expert that has tokens, in one kernel."""
        return self.kernels.matmul(self.path(name), self.rows, columns, inner, self.groups)

    def activation(self) -> Op:
        """The activation function over the rows of all experts."""
        n = self.arriving * self.inner
        count = ew.gated_activation_bytes if self.architecture.gated_mlp else ew.activation_function_bytes
        return self.kernels.stream(
            self.path("activation"), count(n, activation_bytes), n, FLOPS_PER_ELEMENT["activation"]
        )

    def add_shared(self) -> Op | None:
        """The addition of the shared experts' results to those of the routed ones."""
        if not self.architecture.shared_experts:
            return None
        n = self.layer.tokens * hidden_size
        traffic = ew.residual_bytes(n, activation_bytes)
        return self.kernels.stream(self.path("add_shared"), traffic, n, FLOPS_PER_ELEMENT["residual"])

    def sums(self) -> list[Op | None]:
        """The sum of the parts of split experts and of the shared ones; or the gathering of the group's tokens.

        Tokens that several devices have, of which each sends its share, are gathered from all of them.
        """
        layer, message = self.layer, self.layer.stream_message
        if not self.dealt_out:
            return [self.kernels.all_reduce(self.path("reduce"), message, tensor_group())]
        copied = layer.copied_tokens
        if copied == layer.tokens:
            return [self.kernels.all_gather(self.path("reduce"), message, Group(tp * cp, 1))]
        both = self.kernels.all_gather(self.path("reduce"), message, tensor_group())
        if not copied:
            return [both]
        message = copied * hidden_size * activation_bytes
        return [both, self.kernels.all_gather(self.path("reduce_parts"), message, context_group())]

    def shared_gate(self) -> Op | None:
        """The product with one column that weighs the shared expert; the weighing is part of the addition."""
        if not self.architecture.shared_expert_gate:
            return None
        path = self.layer.path(f"{self.layer.root}/shared/gate")
        return self.kernels.matmul(path, self.layer.tokens, 1, hidden_size, right=table_bytes, left=activation_bytes)

    def shared(self) -> list[Op | None]:
        """The shared experts: an MLP that every token passes."""
        if not self.architecture.shared_experts:
            return []
        layer, width = self.layer, sym.shared_expert_intermediate_size / tp
        up = 2 * width if self.architecture.gated_mlp else width
        return [
            self.shared_gate(),
            layer.linear(f"{layer.root}/shared/up", hidden_size, up),
            layer.activation_of(f"{layer.root}/shared/activation", width),
            layer.linear(f"{layer.root}/shared/down", width, hidden_size),
            layer.reduce(f"{layer.root}/shared/reduce") if self.dealt_out else None,
        ]
