"""The ends of the model as operations: the embedding before the first layer, head and loss after the last."""

from __future__ import annotations

from .blocks import Blocks
from .formulas import elementwise as ew
from .formulas import embedding as emb
from .formulas.symbols import (
    activation_bytes,
    gradient_bytes,
    hidden_size,
    index_bytes,
    mask_bytes,
    statistic_bytes,
)
from .schedule import Op, Sequence, sequence
from .shapes import FLOPS_PER_ELEMENT


class ModelEnds(Blocks):
    """Embedding and head of one structure."""

    def embedding_forward(self) -> Sequence:
        """Token look-up, its sum over the vocabulary's shards, learned positions, norm and dropout."""
        n = self.stream_elements
        looked_up = emb.embedding_bytes(self.shapes.tokens, hidden_size, activation_bytes, index_bytes)
        return sequence(
            self.kernels.stream("embedding/lookup/forward", looked_up, self.shapes.tokens * hidden_size, 0),
            self.reduce("embedding/reduce/forward"),
            self.kernels.stream("embedding/positions/forward", ew.residual_bytes(n, activation_bytes), n, 1)
            if self.architecture.positions == "learned"
            else None,
            self.norm("embedding/norm", "forward") if self.architecture.embedding_norm else None,
            self.embedding_dropout("forward"),
        )

    def embedding_backward(self) -> Sequence:
        """Gradients of the tables."""
        tokens = self.shapes.tokens
        scattered = emb.embedding_backward_bytes(tokens, hidden_size, activation_bytes, gradient_bytes)
        return sequence(
            self.embedding_dropout("backward"),
            self.norm_backward("embedding/norm") if self.architecture.embedding_norm else None,
            self.gather("embedding/gather/backward"),
            self.kernels.stream("embedding/lookup/backward", scattered, tokens * hidden_size, 1),
        )

    def embedding_dropout(self, phase: str) -> Op | None:
        """The dropout on the embedding."""
        if not self.structure.dropout:
            return None
        n = self.stream_elements
        traffic = ew.dropout_bytes(n, activation_bytes, mask_bytes)
        return self.kernels.stream(f"embedding/dropout/{phase}", traffic, n, FLOPS_PER_ELEMENT["dropout"])

    def head_forward(self) -> Sequence:
        """Final norm, logits over the vocabulary's shard, and the loss with its three small sums over the shards."""
        tokens, columns = self.shapes.tokens, self.shapes.vocabulary
        loss = emb.cross_entropy_bytes(tokens, columns, activation_bytes, statistic_bytes)
        return sequence(
            self.norm("head/norm", "forward") if self.architecture.final_norm else None,
            self.gather("head/gather/forward"),
            self.kernels.matmul("head/logits/forward", tokens, columns, hidden_size),
            self.kernels.stream("head/loss/forward", loss, tokens * columns, FLOPS_PER_ELEMENT["loss"]),
            *(
                self.kernels.all_reduce(f"head/loss/reduce_{name}", tokens * statistic_bytes, self.group)
                for name in ("maximum", "target", "sum")
            ),
        )

    def head_backward(self) -> Sequence:
        """Gradients of the loss, the logits and the final norm."""
        tokens, columns = self.shapes.tokens, self.shapes.vocabulary
        loss = emb.cross_entropy_backward_bytes(tokens, columns, activation_bytes, statistic_bytes)
        input_gradient = self.kernels.matmul("head/logits/backward_input", tokens, hidden_size, columns)
        weight_gradient = self.kernels.weight_gradient("head/logits/backward_weight", tokens, hidden_size, columns)
        return sequence(
            self.kernels.stream("head/loss/backward", loss, tokens * columns, FLOPS_PER_ELEMENT["loss backward"]),
            self.beside(input_gradient, self.gather("head/gather/backward")),
            self.beside(weight_gradient, self.reduce("head/reduce/backward")),
            self.norm_backward("head/norm") if self.architecture.final_norm else None,
        )
