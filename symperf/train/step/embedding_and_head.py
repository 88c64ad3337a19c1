"""The ends of the model as operations: the embedding before the first layer, head and loss after the last."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import embedding as emb
from ...formulas.language.symbols import (
    activation_bytes,
    gradient_bytes,
    hidden_size,
    index_bytes,
    mask_bytes,
    micro_batch,
    num_labels,
    num_patches,
    patch_features,
    statistic_bytes,
)
from ...models.counts import SPECTRA
from ...operations import side_blocks as side
from ...operations.schedule import Op, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from ..layers import streams
from ..layers.blocks import Blocks
from ..layers.side_blocks import backward, forward
from .loss import Loss

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...operations.schedule import Node
    from ...plans.structure import Structure


class Embedding(Blocks):
    """What precedes the layers of one stack.

    Args:
        structure: what gives it its form.
        kind: of the stack's layers.
        root: the first part of every path.
    """

    def __init__(self, structure: Structure, kind: LayerKind, root: str = "embedding") -> None:
        super().__init__(structure, kind)
        self.root = root
        self.hears = structure.architecture.spectra and kind.encoder

    def forward(self) -> Sequence:
        """Token look-up, its sum over the vocabulary's shards, or patches; positions, norm and dropout."""
        added = self.architecture.positions == "learned"
        return sequence(
            *self.read(),
            self.addition("positions") if added else None,
            self.addition("token_types") if self.architecture.token_types else None,
            self.relative("forward"),
            self.norm(f"{self.root}/norm", "forward") if self.architecture.embedding_norm else None,
            self.dropout("forward"),
            self.streams("forward"),
            *forward(self, self.root, "forward", side.embedding(self.architecture)),
        )

    def backward(self) -> Sequence:
        """Gradients of the tables, or of the patches' projection."""
        return sequence(
            *backward(self, self.root, side.embedding(self.architecture)),
            self.streams("backward"),
            self.dropout("backward"),
            self.norm_backward(f"{self.root}/norm") if self.architecture.embedding_norm else None,
            self.relative("backward"),
            *self.read_backward(),
        )

    def read(self) -> list[Op | None]:
        """What makes the stack's vectors of its input."""
        if self.hears:
            return self.spectra()
        return self.patches() if self.architecture.patches else self.tokens()

    def read_backward(self) -> list[Op | None]:
        """Its gradients."""
        if self.hears:
            return self.spectra_backward()
        return self.patches_backward() if self.architecture.patches else self.tokens_backward()

    def streams(self, phase: str) -> Op | None:
        """As many copies of the embeddings as there are residual streams, or the sum of their gradients."""
        return streams.fork(self, f"{self.root}/streams/{phase}") if self.architecture.hyper_connections else None

    def tokens(self) -> list[Op | None]:
        """Rows of the table, of which every device has its shard of the vocabulary."""
        rows = self.shapes.tokens
        looked_up = emb.embedding_bytes(rows, hidden_size, activation_bytes, index_bytes)
        return [
            self.kernels.stream(f"{self.root}/lookup/forward", looked_up, rows * hidden_size, 0),
            self.reduce(f"{self.root}/reduce/forward"),
        ]

    def tokens_backward(self) -> list[Op | None]:
        """The gradient of the table."""
        rows = self.shapes.tokens
        scattered = emb.embedding_backward_bytes(rows, hidden_size, activation_bytes, gradient_bytes)
        return [
            self.gather(f"{self.root}/gather/backward"),
            self.kernels.stream(f"{self.root}/lookup/backward", scattered, rows * hidden_size, 1),
        ]

    def patches(self) -> list[Op | None]:
        """The projection of patches, whole on every device."""
        rows = micro_batch * num_patches
        return [self.kernels.matmul(f"{self.root}/patches/forward", rows, hidden_size, patch_features)]

    def patches_backward(self) -> list[Op | None]:
        """The gradient of its weights; images need none."""
        rows = micro_batch * num_patches
        path = f"{self.root}/patches/backward_weight"
        return [self.kernels.weight_gradient(path, rows, patch_features, hidden_size)]

    def spectra(self) -> list[Op | None]:
        """The convolutions of spectra, as products of what their taps read; whole on every device."""
        found: list[Op | None] = []
        for number, (rows, inputs) in enumerate(SPECTRA, 1):
            path, n = f"{self.root}/convolution_{number}", rows * self.shapes.tokens
            found += [
                self.kernels.matmul(f"{path}/forward", n, hidden_size, inputs),
                self.activation_function(f"{path}/activation/forward", n * hidden_size),
            ]
        return found

    def spectra_backward(self) -> list[Op | None]:
        """Gradients of both; sound needs none."""
        found: list[Op | None] = []
        for number, (rows, inputs) in reversed([*enumerate(SPECTRA, 1)]):
            path, n = f"{self.root}/convolution_{number}", rows * self.shapes.tokens
            before = self.kernels.matmul(f"{path}/backward_input", n, inputs, hidden_size) if number > 1 else None
            found += [
                self.activation_function(f"{path}/activation/backward", n * hidden_size, backward=True),
                before,
                self.kernels.weight_gradient(f"{path}/backward_weight", n, inputs, hidden_size),
            ]
        return found

    def activation_function(self, path: str, elements: Any, *, backward: bool = False) -> Op:
        """An activation function without a gate, or its gradient."""
        count = ew.activation_function_backward_bytes if backward else ew.activation_function_bytes
        work = FLOPS_PER_ELEMENT["activation backward" if backward else "activation"]
        return self.kernels.stream(path, count(elements, activation_bytes), elements, work)

    def addition(self, name: str) -> Op:
        """Rows of another table, added to the stream."""
        n = self.stream_elements
        return self.kernels.stream(f"{self.root}/{name}/forward", ew.residual_bytes(n, activation_bytes), n, 1)

    def relative(self, phase: str) -> Op | None:
        """The table of biases of relative positions, spread over all pairs; or its gradient."""
        if self.architecture.positions != "relative":
            return None
        pairs, heads = self.shapes.length**2, self.shapes.heads
        if phase == "backward":
            traffic = emb.embedding_backward_bytes(pairs, heads, activation_bytes, gradient_bytes)
        else:
            traffic = emb.embedding_bytes(pairs, heads, activation_bytes, index_bytes)
        return self.kernels.stream(f"{self.root}/relative/{phase}", traffic, pairs * heads, int(phase == "backward"))

    def dropout(self, phase: str) -> Op | None:
        """The dropout on the embedding."""
        if not self.structure.dropout:
            return None
        n = self.stream_elements
        traffic = ew.dropout_bytes(n, activation_bytes, mask_bytes)
        return self.kernels.stream(f"{self.root}/dropout/{phase}", traffic, n, FLOPS_PER_ELEMENT["dropout"])


class ModelEnds(Blocks):
    """Embedding and head of one structure; with an encoder and a decoder, the embeddings of both.

    Args:
        structure: what gives them their form.
        root: the first part of every path of the head.
    """

    def __init__(self, structure: Structure, root: str = "head") -> None:
        super().__init__(structure)
        self.root = root

    @cached_property
    def embedding(self) -> Embedding:
        """The embedding of the stack that ends in the head."""
        return Embedding(self.structure, self.architecture.kinds[-1])

    @cached_property
    def encoder(self) -> Embedding | None:
        """The embedding of an encoder before a decoder."""
        if self.architecture.stacks == 1:
            return None
        return Embedding(self.structure, self.architecture.kinds[0], "encoder/embedding")

    def embedding_forward(self) -> Sequence:
        """What precedes the layers, and the norm that ends an encoder."""
        return sequence(
            self.encoder.forward() if self.encoder else None,
            self.encoder.norm("encoder/norm", "forward") if self.encoder and self.architecture.final_norm else None,
            self.embedding.forward(),
        )

    def embedding_backward(self) -> Sequence:
        """Gradients of the embedding, and of an encoder before the decoder."""
        return sequence(
            self.embedding.backward(),
            self.encoder.norm_backward("encoder/norm") if self.encoder and self.architecture.final_norm else None,
            self.encoder.backward() if self.encoder else None,
        )

    def head_forward(self) -> Sequence:
        """Final norm, logits over the vocabulary's shard or the labels, and the loss."""
        several = self.architecture.hyper_connections
        return sequence(
            self.mixture(f"{self.root}/mixture", "forward"),
            *(streams.join(self, self.root, "forward") if several else ()),
            *forward(self, self.root, "forward", side.head(self.architecture)),
            self.norm(f"{self.root}/norm", "forward") if self.architecture.final_norm else None,
            *self.transform_forward(),
            *self.logits_forward(),
        )

    def head_backward(self) -> Sequence:
        """Gradients of the loss, the logits and the final norm."""
        return sequence(
            *self.logits_backward(),
            *self.transform_backward(),
            self.norm_backward(f"{self.root}/norm") if self.architecture.final_norm else None,
            self.mixture(f"{self.root}/mixture", "backward"),
            *(streams.join_backward(self, self.root) if self.architecture.hyper_connections else ()),
            *backward(self, self.root, side.head(self.architecture)),
        )

    # --- the dense layer and norm before the logits (BERT), which every device computes for its part of the stream

    def transform_forward(self) -> list[Op]:
        """Product, activation function and norm."""
        if self.architecture.head != "transformed":
            return []
        n, rows = self.stream_elements, self.shapes.stream_tokens
        traffic = ew.activation_function_bytes(n, activation_bytes)
        return [
            self.kernels.matmul(f"{self.root}/transform/forward", rows, hidden_size, hidden_size),
            self.kernels.stream(
                f"{self.root}/transform/activation/forward", traffic, n, FLOPS_PER_ELEMENT["activation"]
            ),
            self.norm(f"{self.root}/transform/norm", "forward"),
        ]

    def transform_backward(self) -> list[Op]:
        """Gradients of the transform before the head."""
        if self.architecture.head != "transformed":
            return []
        n, rows = self.stream_elements, self.shapes.stream_tokens
        traffic, work = (
            ew.activation_function_backward_bytes(n, activation_bytes),
            FLOPS_PER_ELEMENT["activation backward"],
        )
        return [
            self.norm_backward(f"{self.root}/transform/norm"),
            self.kernels.stream(f"{self.root}/transform/activation/backward", traffic, n, work),
            self.kernels.matmul(f"{self.root}/transform/backward_input", rows, hidden_size, hidden_size),
            self.kernels.weight_gradient(f"{self.root}/transform/backward_weight", rows, hidden_size, hidden_size),
        ]

    # --- logits and loss

    def logits_forward(self) -> list[Node | None]:
        """Logits and the loss; over a sharded vocabulary with three small sums."""
        match self.architecture.head:
            case "none":
                return []
            case "labels":
                loss = emb.cross_entropy_bytes(micro_batch, num_labels, activation_bytes, statistic_bytes)
                elements = micro_batch * num_labels
                return [
                    self.kernels.matmul(f"{self.root}/logits/forward", micro_batch, num_labels, hidden_size),
                    self.kernels.stream(f"{self.root}/loss/forward", loss, elements, FLOPS_PER_ELEMENT["loss"]),
                ]
        return [self.gather(f"{self.root}/gather/forward"), *Loss(self).forward()]

    def logits_backward(self) -> list[Any]:
        """Gradients of the head's product and of the loss over its logits."""
        if self.architecture.head == "none":
            return []
        if self.architecture.head == "labels":
            loss = emb.cross_entropy_backward_bytes(micro_batch, num_labels, activation_bytes, statistic_bytes)
            work = FLOPS_PER_ELEMENT["loss backward"]
            path = f"{self.root}/logits"
            return [
                self.kernels.stream(f"{self.root}/loss/backward", loss, micro_batch * num_labels, work),
                self.kernels.matmul(f"{path}/backward_input", micro_batch, hidden_size, num_labels),
                self.kernels.weight_gradient(f"{path}/backward_weight", micro_batch, hidden_size, num_labels),
            ]
        stream, input_gradient, weight_gradient = Loss(self).backward()
        return [
            stream,
            self.beside(input_gradient, self.gather(f"{self.root}/gather/backward")),
            self.beside(weight_gradient, self.reduce(f"{self.root}/reduce/backward")),
        ]
