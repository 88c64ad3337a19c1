"""Multi-token prediction as operations: the modules beside the last stage's head, each with a loss of its own.

A module normalises the stream and the embeddings of the tokens one further on, projects both to one stream, and passes
a layer, a norm and the head of the model (DeepSeek-AI 2024, V3, section 2.2). It is laid out as in Megatron-Core
(multi_token_prediction.py): the projection is split by columns, and its result gathered; sequences keep their length.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import activation_bytes, hidden_size, num_multi_token_layers, tp
from ...operations.schedule import Repeat, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from ..layers.transformer import Decoder
from ..memory.multi_token_counts import recomputes
from .embedding_and_head import Embedding, ModelEnds

if TYPE_CHECKING:
    from ...operations.schedule import Node
    from ...plans.structure import Structure

ROOT = "multi_token"
"""The first part of every path."""


class MultiToken:
    """The modules of one structure.

    Args:
        structure: what gives them their form.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure, self.again = structure, recomputes(structure)
        # A module that is computed again has its layer inside of it.
        whole = structure.recompute == "full"
        plain = dataclasses.replace(structure, recompute="none", some_layers=False) if whole else structure
        kind = structure.architecture.kinds[-1]
        self.layer = Decoder(plain, kind, f"{ROOT}/layer")
        self.embedding = Embedding(structure, kind, f"{ROOT}/embedding")
        self.head = ModelEnds(structure, f"{ROOT}/head")
        self.message = 2 * self.layer.stream_message

    def node(self) -> Node:
        """Both passes of all modules for one micro-batch."""
        return sequence(*self.passes())

    def passes(self) -> tuple[Repeat, Repeat]:
        """Forward and backward of all modules for one micro-batch."""
        return Repeat(self.forward(), num_multi_token_layers), Repeat(self.backward(), num_multi_token_layers)

    def forward(self) -> Sequence:
        """One module's forward pass."""
        return sequence(self.embedding.forward(), *self.body("forward"), *self.head.logits_forward())

    def backward(self) -> Sequence:
        """One module's gradients, with what it computes again."""
        layer, path = self.layer, f"{ROOT}/projection"
        n = layer.stream_elements
        summed = ew.residual_bytes(n, activation_bytes)
        return sequence(
            *self.head.logits_backward(),
            *(self.body("recompute") if self.again else ()),
            self.head.norm_backward(f"{ROOT}/head/norm"),
            layer.layer_backward(),
            layer.gather(f"{path}/results/backward"),
            layer.column_backward(path, 2 * hidden_size, hidden_size / tp, message=self.message),
            layer.norm_backward(f"{ROOT}/norm/embedding"),
            layer.norm_backward(f"{ROOT}/norm/stream"),
            # The head, or the module after this one, has a gradient of the same stream.
            layer.kernels.stream(f"{ROOT}/norm/stream/backward_sum", summed, n, FLOPS_PER_ELEMENT["residual"]),
            self.embedding.backward(),
        )

    def body(self, phase: str) -> list[Any]:
        """Two norms, the projection, the layer, and the norm before the head."""
        layer, path = self.layer, f"{ROOT}/projection"
        return [
            layer.norm(f"{ROOT}/norm/embedding", phase),
            layer.norm(f"{ROOT}/norm/stream", phase),
            layer.gather(f"{path}/gather/{phase}", self.message),
            layer.linear(path, phase, 2 * hidden_size, hidden_size / tp),
            layer.kernels.all_gather(f"{path}/results/{phase}", layer.stream_message, layer.group),
            layer.layer_forward(phase),
            self.head.norm(f"{ROOT}/head/norm", phase),
        ]
