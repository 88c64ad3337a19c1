"""Multi-token prediction as operations: the modules beside the last stage's head, each with a loss of its own.

A module normalises the stream and the embeddings of the tokens one further on, projects both to one stream, and passes
a layer, a norm and the head of the model (DeepSeek-AI 2024, V3, section 2.2). It is laid out as in Megatron-Core
(multi_token_prediction.py): the projection is split by columns, and its result gathered; sequences keep their length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import activation_bytes, hidden_size, num_multi_token_layers, num_streams, tp
from ...operations.reads import changed
from ...operations.schedule import Repeat, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from ..layers import streams
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
        plain = changed(structure, recompute="none", some_layers=False) if whole else structure
        kind = structure.architecture.module_kind
        self.several = structure.architecture.hyper_connections
        self.layer = Decoder(plain, kind, f"{ROOT}/layer")
        self.embedding = Embedding(structure, kind, f"{ROOT}/embedding")
        self.head = ModelEnds(structure, f"{ROOT}/head")
        self.results = self.layer.stage_message if self.several else self.layer.stream_message
        self.message = self.layer.stream_message + self.results

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
        layer = self.layer
        n = layer.stream_elements * (num_streams if self.several else 1)
        summed = ew.residual_bytes(n, activation_bytes)
        return sequence(
            *self.head.logits_backward(),
            *(self.body("recompute") if self.again else ()),
            self.head.norm_backward(f"{ROOT}/head/norm"),
            *(streams.join_backward(self.head, f"{ROOT}/head") if self.several else ()),
            layer.layer_backward(),
            *self.projection_backward(),
            layer.norm_backward(f"{ROOT}/norm/embedding"),
            layer.norm_gradient_of(f"{ROOT}/norm/stream/backward", n)
            if self.several
            else layer.norm_backward(f"{ROOT}/norm/stream"),
            # The head, or the module after this one, has a gradient of the same stream.
            layer.kernels.stream(f"{ROOT}/norm/stream/backward_sum", summed, n, FLOPS_PER_ELEMENT["residual"]),
            self.embedding.backward(),
        )

    def body(self, phase: str) -> list[Any]:
        """Two norms, the projection, the layer, and the norm before the head."""
        layer = self.layer
        several = layer.norm_of(f"{ROOT}/norm/stream/{phase}", num_streams * layer.stream_elements)
        return [
            layer.norm(f"{ROOT}/norm/embedding", phase),
            several if self.several else layer.norm(f"{ROOT}/norm/stream", phase),
            *self.projection(phase),
            layer.layer_forward(phase),
            *(streams.join(self.head, f"{ROOT}/head", phase) if self.several else ()),
            self.head.norm(f"{ROOT}/head/norm", phase),
        ]

    def projection(self, phase: str) -> list[Any]:
        """Embeddings and the stream to one stream; of several streams, each with the embeddings (DeepSeek-V4)."""
        layer, path = self.layer, f"{ROOT}/projection"
        found = [layer.gather(f"{path}/gather/{phase}", self.message)]
        if self.several:
            rows = num_streams * layer.shapes.tokens
            found += [
                layer.linear(f"{path}/embedding", phase, hidden_size, hidden_size / tp),
                layer.linear(f"{path}/streams", phase, hidden_size, hidden_size / tp, rows),
            ]
        else:
            found.append(layer.linear(path, phase, 2 * hidden_size, hidden_size / tp))
        return [*found, layer.kernels.all_gather(f"{path}/results/{phase}", self.results, layer.group)]

    def projection_backward(self) -> list[Any]:
        """Its gradients."""
        layer, path = self.layer, f"{ROOT}/projection"
        gathered = layer.gather(f"{path}/results/backward", self.results)
        if not self.several:
            return [gathered, layer.column_backward(path, 2 * hidden_size, hidden_size / tp, message=self.message)]
        rows, shape = num_streams * layer.shapes.tokens, (hidden_size, hidden_size / tp)
        return [
            gathered,
            layer.column_backward(f"{path}/embedding", *shape, shared=True),
            layer.column_backward(f"{path}/streams", *shape, tokens=rows, message=self.message),
        ]
