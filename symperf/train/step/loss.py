"""The head's product and the loss over a vocabulary as operations, by how the software takes them together.

Over a vocabulary that is split, ranks sum their statistics: three small sums where kernels are unfused, two where they
are fused (the largest logits, then the sums and the targets' logits together).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import embedding as emb
from ...formulas.kernels import losses
from ...formulas.language.symbols import activation_bytes, hidden_size, statistic_bytes, weight_bytes
from ...operations.schedule import Demand, Repeat, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from ..memory.end_activations import chunks_of

if TYPE_CHECKING:
    from ...operations.schedule import Node, Op
    from .embedding_and_head import ModelEnds

UNFUSED = {"maximum": 1, "target": 1, "sum": 1}
FUSED = {"maximum": 1, "sums": 2}
"""Sums over the ranks of a split vocabulary, each with its values of 32 bits for a token."""


class Loss:
    """The logits, the loss and their gradients for one micro-batch on one device.

    Args:
        head: that it belongs to.
    """

    def __init__(self, head: ModelEnds) -> None:
        self.structure, self.kernels, self.group = head.structure, head.kernels, head.group
        self.root = head.root
        self.tokens, self.columns = head.shapes.tokens, head.shapes.vocabulary
        self.kind = self.structure.loss
        self.chunks = chunks_of(self.structure, self.columns)
        self.rows = self.tokens / self.chunks

    def forward(self) -> list[Node]:
        """The product, the loss, and the sums over the ranks of a split vocabulary."""
        product = self.product("logits/forward")
        values = UNFUSED if self.kind == "unfused" else FUSED
        sums = (
            self.kernels.all_reduce(f"{self.root}/loss/reduce_{name}", count * self.rows * statistic_bytes, self.group)
            for name, count in values.items()
        )
        loss = None if self.kind == "cut" else self.stream("loss/forward", self.traffic(), "loss")
        each = sequence(product, loss, self.metrics() if self.structure.metered else None, *sums)
        return [self.in_chunks(each)] if self.chunks != 1 else list(each.children)

    def metrics(self) -> Op:
        """Metrics of the logits of a chunk."""
        return self.stream("loss/metrics", losses.logit_metric_traffic(self.rows, self.columns), "loss")

    def backward(self) -> tuple[Node, Node, Node]:
        """What gives the gradient of the logits, and the products for those of the head's input and weights."""
        root = f"{self.root}/logits"
        inputs = self.kernels.matmul(f"{root}/backward_input", self.rows, hidden_size, self.columns)
        weights = self.weight_gradient(f"{root}/backward_weight")
        if self.kind == "cut":
            return self.product("loss/backward"), _filtered(inputs), _filtered(weights)
        gradient = self.stream("loss/backward", self.gradient_traffic(), "loss backward")
        return self.in_chunks(gradient), self.in_chunks(inputs), self.in_chunks(weights)

    def weight_gradient(self, path: str) -> Op:
        """The product for the gradient of the head's weights; Liger sums it over chunks in the weights' own format."""
        if self.kind != "fused-linear":
            return self.kernels.weight_gradient(path, self.rows, hidden_size, self.columns)
        formats = {"right": activation_bytes, "result": 2 * weight_bytes}
        return self.kernels.matmul(path, hidden_size, self.columns, self.rows, **formats)

    def in_chunks(self, node: Node) -> Node:
        """What is done for every chunk."""
        return node if self.chunks == 1 else Repeat(node, self.chunks)

    def product(self, name: str) -> Op:
        """The logits of a chunk; those of a cut loss stay on chip, but for a number a token."""
        path = f"{self.root}/{name}"
        if self.kind != "cut":
            return self.kernels.matmul(path, self.rows, self.columns, hidden_size)
        op = self.kernels.matmul(path, self.rows, self.columns, hidden_size, result=statistic_bytes / self.columns)
        return dataclasses.replace(op, time=losses.cut_product_time(op.time))

    def traffic(self) -> Any:
        """Bytes of the loss of a chunk."""
        if self.kind == "unfused":
            return emb.cross_entropy_bytes(self.rows, self.columns, activation_bytes, statistic_bytes)
        return losses.fused_cross_entropy_bytes(self.rows, self.columns, activation_bytes)

    def gradient_traffic(self) -> Any:
        """Bytes of its gradient."""
        if self.kind == "unfused":
            return emb.cross_entropy_backward_bytes(self.rows, self.columns, activation_bytes, statistic_bytes)
        return losses.fused_cross_entropy_backward_bytes(self.rows, self.columns, activation_bytes)

    def stream(self, name: str, traffic: Any, work: str) -> Op:
        """A kernel, or a few, over the logits of a chunk."""
        return self.kernels.stream(f"{self.root}/{name}", traffic, self.rows * self.columns, FLOPS_PER_ELEMENT[work])


def _filtered(op: Op) -> Op:
    """A product for a gradient of which a cut loss leaves out blocks."""
    demand = Demand(losses.cut_gradient_work(op.demand.flops), op.demand.memory_bytes)
    return dataclasses.replace(op, time=losses.cut_gradient_time(op.time), demand=demand)
