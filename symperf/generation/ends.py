"""The ends of the model in an inference: the embedding before the first layer, logits and sampling after the last."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..formulas import elementwise as ew
from ..formulas import embedding as emb
from ..formulas.atoms import less_one
from ..formulas.symbols import (
    activation_bytes,
    hidden_size,
    index_bytes,
    micro_batch,
    sampling_kernels,
    statistic_bytes,
    step_latency,
    table_bytes,
    vocab_size,
)
from ..formulas.thin import kernel_start_time
from ..schedule import Op, Sequence, sequence
from ..shapes import FLOPS_PER_ELEMENT
from .layer import Layer


class ModelEnds(Layer):
    """Embedding and head of one phase."""

    def embedding(self) -> Sequence:
        """Token look-up, its sum over the vocabulary's shards, and learned positions."""
        n = self.tokens * hidden_size
        looked_up = emb.embedding_bytes(self.tokens, hidden_size, activation_bytes, index_bytes)
        learned = self.architecture.positions == "learned"
        return sequence(
            self.kernels.stream(self.path("embedding/lookup"), looked_up, n, 0),
            self.reduce("embedding/reduce"),
            self.kernels.stream(self.path("embedding/positions"), ew.residual_bytes(n, activation_bytes), n, 1)
            if learned
            else None,
            self.norm("embedding/norm") if self.architecture.embedding_norm else None,
        )

    def head(self, rows: Any = micro_batch) -> Sequence:
        """Norm, logits of each sequence's last token, the choice of its next one, and the software's own work."""
        columns = self.shapes.vocabulary
        logits = rows * vocab_size * statistic_bytes
        path = self.path("head/logits")
        return sequence(
            self.norm("head/norm", after_residual=True) if self.architecture.final_norm else None,
            self.kernels.matmul(
                path, rows, columns, hidden_size, right=table_bytes, result=statistic_bytes, left=activation_bytes
            ),
            self.kernels.all_gather(self.path("head/gather"), logits, self.group),
            self.sampling(logits, rows * vocab_size),
            Op(self.path("software"), step_latency),
        )

    def sampling(self, traffic: Any, elements: Any) -> Op:
        """The kernels that choose a token: the first reads the logits, the others only start."""
        op = self.kernels.stream(self.path("head/sampling"), traffic, elements, FLOPS_PER_ELEMENT["softmax"])
        return dataclasses.replace(op, time=op.time + less_one(sampling_kernels) * kernel_start_time())
