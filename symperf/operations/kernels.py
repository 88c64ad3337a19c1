"""Operations of a step on one device: each kernel or collective with its closed-form time and its demand.

This is where the structural choices of the system enter: whether products are quantised, whether L2 is a level, and
how many network tiers there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from ..formulas import collectives
from ..formulas.kernels import attention, elementwise, looped_matmul, matmul, optimizers, roofline
from ..formulas.language.atoms import Min, above_one, complement
from ..formulas.language.symbols import (
    activation_bytes,
    alignment_efficiency,
    domain_latency,
    expert_groups_per_token,
    gradient_bytes,
    gradient_sum_bytes,
    head_dim,
    launch_latency,
    matrix_rate,
    node_limit,
    num_expert_groups,
    tp,
    vocab_size,
    weight_bytes,
)
from ..formulas.parallel import expert_exchange, expert_parallel
from .collectives import collective_time, send_time
from .documents import uneven_shares
from .groups import expert_group as expert_group
from .groups import pipeline_group as pipeline_group
from .groups import tensor_group as tensor_group
from .schedule import Demand, Op

if TYPE_CHECKING:
    from ..plans.structure import Structure
    from .groups import Group


def product_time(structure: Structure, shape: tuple[Any, Any, Any, Any], element: Any, traffic: Any) -> Any:
    """Seconds of a product by what the system tells: constants of its loops, or nothing of tiles, waves, or L2 too.

    Args:
        structure: says what the system tells.
        shape: rows, columns, inner length and number of products.
        element: bytes of an element of the factors.
        traffic: bytes of device memory.
    """
    if "loops" in structure.families:
        return looped_matmul.looped_matmul_time(*shape, traffic)
    if not structure.quantised:
        return matmul.smooth_matmul_time(*shape, traffic)
    if not structure.l2:
        return matmul.quantised_matmul_time(*shape, traffic)
    return matmul.tiled_matmul_time(*shape, element, traffic)


def aligned_time(structure: Structure, time: Any, sides: tuple[Any, Any, Any]) -> Any:
    """Seconds of a product, at a lower rate where a side of it has a size that leaves rows unaligned.

    A vocabulary is padded wherever it is split (Megatron-LM, `make_vocab_size_divisible_by`). The width of a head is a
    side of its own in the products of one head; in those of all heads together they may make a size that is aligned.
    """
    sizes = {symbol.name for side in sides for symbol in sympy.sympify(side, strict=True).free_symbols}
    if head_dim not in sides:
        sizes.discard(head_dim.name)
    slow = sizes & {*structure.misaligned}
    if not slow:
        return time
    split = above_one(tp) if slow == {vocab_size.name} else 0
    return time.xreplace({matrix_rate: matrix_rate / (split + complement(split) / alignment_efficiency)})


def gradient_traffic(structure: Structure) -> Any:
    """Bytes that a product moves for one weight's gradient: read and added, or its own where others add it."""
    return activation_bytes if structure.summed_apart else 2 * gradient_bytes


def added_apart(structure: Structure, gradient: Op) -> Op:
    """A product that gives the gradient of weights, with the kernels that add it, where software has such kernels."""
    if not structure.summed_apart:
        return gradient
    assert gradient.shape is not None
    rows, columns, _, groups = gradient.shape
    weights = rows * columns * groups
    moved = replace(gradient.demand, memory_bytes=gradient.demand.memory_bytes + weights * gradient_sum_bytes)
    return replace(gradient, time=gradient.time + optimizers.gradient_sum_time(weights), demand=moved)


class Kernels:
    """Builds operations for one structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    @property
    def start(self) -> Any:
        """Seconds before a kernel's own work."""
        return launch_latency

    @property
    def gap(self) -> Any:
        """Seconds that software leaves before a kernel."""
        return 0

    def matmul(
        self,
        path: str,
        rows: Any,
        columns: Any,
        inner: Any,
        groups: Any = 1,
        right: Any = weight_bytes,
        result: Any = activation_bytes,
    ) -> Op:
        """`groups` products of rows x inner by inner x columns; `right` and `result` are bytes of their elements."""
        traffic = matmul.matmul_bytes(rows, columns, inner, groups, activation_bytes, right, result)
        time = product_time(self.structure, (rows, columns, inner, groups), activation_bytes, traffic)
        if self.structure.power_limited:
            time = matmul.power_limited_time(time, launch_latency, rows, columns, inner, groups)
        time = aligned_time(self.structure, time, (rows, columns, inner))
        demand = Demand(matmul.matmul_flops(rows, columns, inner, groups), traffic)
        return Op(path, time, demand, (rows, columns, inner, groups))

    def weight_gradient(
        self,
        path: str,
        tokens: Any,
        in_features: Any,
        out_features: Any,
        groups: Any = 1,
        right: Any = activation_bytes,
    ) -> Op:
        """The gradient of the weights of `groups` linear layers, added to the accumulated gradient."""
        result = gradient_traffic(self.structure)
        made = self.matmul(path, in_features, out_features, tokens, groups, right=right, result=result)
        return added_apart(self.structure, made)

    def stream(self, path: str, traffic: Any, elements: Any, flops_per_element: Any) -> Op:
        """An element-wise or reducing kernel."""
        work = elementwise.elementwise_flops(elements, flops_per_element)
        return Op(path, roofline.stream_time(traffic, work), Demand(work, traffic))

    def fused(self, path: str, time: Any, work: Any, traffic: Any) -> Op:
        """A kernel, or a few, with a time of its own."""
        return Op(path, time, Demand(work, traffic))

    @property
    def unevenness(self) -> Any:
        """The attention of the slowest devices over that of the mean one."""
        return 1 + sum(uneven_shares(self.structure).values()) if self.structure.documents else 1

    def flash(self, path: str, work: Any, traffic: Any) -> Op:
        """The forward flash-attention kernel."""
        return Op(path, attention.flash_time(self.unevenness * work, traffic), Demand(work, traffic))

    def flash_backward(self, path: str, work: Any, traffic: Any) -> Op:
        """The backward flash-attention kernel, given the forward one's work and traffic."""
        demand = Demand(sympy.Rational(5, 2) * work, 2 * traffic)
        return Op(path, attention.flash_backward_time(self.unevenness * work, traffic), demand)

    def all_reduce(self, path: str, message: Any, group: Group) -> Op | None:
        """A sum over a group, known to all its ranks; nothing on a system without a network."""
        name = "switched_all_reduce" if self.structure.in_switch else "all_reduce"
        return self._over_links(self._collective(path, name, message, group), group)

    def all_gather(self, path: str, message: Any, group: Group) -> Op | None:
        """The shards of a message of `message` bytes, gathered by every rank."""
        return self._over_links(self._collective(path, "all_gather", message, group), group)

    def reduce_scatter(self, path: str, message: Any, group: Group) -> Op | None:
        """A sum over a group of `message` bytes, of which every rank keeps its shard."""
        return self._over_links(self._collective(path, "reduce_scatter", message, group), group)

    def all_to_all(self, path: str, message: Any, group: Group) -> Op | None:
        """A message of `message` bytes on each rank, of which every rank gets its part."""
        return self._over_links(self._collective(path, "all_to_all", message, group), group)

    def node_limited(self, path: str, message: Any, count: tuple[Any, Any, Any, Any, Any], group: Group) -> Op | None:
        """A dispatch of which each token goes once to each of a few domains; `count` are its formula's arguments."""
        if self.structure.tiers < 2:
            return self.all_to_all(path, message, group)
        limit = self._most_domains(group)
        time = expert_parallel.node_limited_dispatch_time(*count, limit, group.inner, group.outer)
        return self._over_links(self._transfer(path, message, group, time), group)

    def exchange(self, path: str, kind: str, count: tuple[Any, Any, Any, Any, Any], group: Group) -> Op | None:
        """Tokens to the devices of their experts by kernels made for it, "direct" or "bulk", whose start is measured.

        Args:
            path: of the operation.
            kind: of the kernels.
            count: tokens, experts of a token, their width, bytes of an element, and imbalance.
            group: over which experts are dealt.
        """
        if self.structure.tiers == 0:
            return None
        outer = group.outer if self.structure.tiers > 1 else sympy.S.One
        if kind == "direct":
            time = expert_exchange.direct_exchange_time(*count, group.ranks, outer)
        else:
            limited = self.structure.limits_domains and self.structure.tiers > 1
            domains = Min(self._most_domains(group), outer) if limited else outer
            time = expert_exchange.bulk_exchange_time(*count, group.ranks, outer, domains)
        op = Op(path, time, Demand(message_bytes=expert_parallel.dispatch_bytes(*count)), ranks=group.ranks)
        return self._over_links(op, group)

    def _most_domains(self, group: Group) -> Any:
        """Domains in which a token's experts may lie: as the plan states, or as the model's groups of experts make."""
        if self.structure.node_limited:
            return node_limit
        return expert_parallel.grouped_domains(expert_groups_per_token, num_expert_groups, group.outer)

    def send(self, path: str, message: Any, group: Group) -> Op | None:
        """A transfer to the next rank of a group, paced by the slowest pair; nothing in a group of one."""
        if self.structure.tiers == 0:
            return None
        op = self._transfer(path, message, group, send_time(self.structure, message, group))
        return self._over_links(op)

    def _over_links(self, op: Op | None, group: Group | None = None) -> Op | None:
        """An operation over the links that a group has in each domain; or without a group, over that of a pair."""
        if op is None or self.structure.links == "switch":
            return op
        ranks = sympy.Integer(2)
        if group is not None:
            ranks = group.ranks if self.structure.tiers == 1 else group.inner
        return replace(op, time=collectives.mesh_time(op.time, ranks))

    def _collective(self, path: str, name: str, message: Any, group: Group) -> Op | None:
        """A collective of the vendor's library, whose start was measured with it where its domain was."""
        if self.structure.tiers == 0:
            return None
        time = collective_time(self.structure, name, message, group)
        start = domain_latency + self.gap if "domain" in self.structure.families else self.start
        return self._transfer(path, message, group, time, start)

    def _transfer(self, path: str, message: Any, group: Group, time: Any, start: Any = None) -> Op:
        """A kernel that moves a message: it starts as any other, unless its time holds its start."""
        time = collectives.started_collective_time(time, group.ranks, self.start if start is None else start)
        return Op(path, time, Demand(message_bytes=message), ranks=group.ranks)
