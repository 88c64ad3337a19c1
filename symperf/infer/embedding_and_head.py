"""The ends of the model in an inference: the embedding before the first layer, logits and sampling after the last."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import embedding as emb
from ..formulas.kernels.thin_matmul import kernel_start_time
from ..formulas.language.atoms import ceil_div, less_one
from ..formulas.language.symbols import (
    activation_bytes,
    head_dim,
    hidden_size,
    index_bytes,
    intermediate_size,
    micro_batch,
    num_attention_heads,
    num_labels,
    num_patches,
    patch_features,
    prompt,
    sampling_kernels,
    statistic_bytes,
    step_latency,
    table_bytes,
    tp,
    vocab_size,
)
from ..models.counts import SPECTRA
from ..operations import side_blocks as side
from ..operations.schedule import Op, Sequence, sequence
from ..operations.shapes import FLOPS_PER_ELEMENT
from . import draft_head, streams
from .layer import Block
from .side_blocks import operations


class ModelEnds(Block):
    """Embedding and head of one phase."""

    def embedding(self) -> Sequence:
        """Tokens or patches as vectors, and what is added to them."""
        return sequence(
            *(self.patches() if self.architecture.patches else self.look_up()),
            self.added("positions") if self.architecture.positions == "learned" else None,
            self.added("token_types") if self.architecture.token_types else None,
            self.norm("embedding/norm") if self.architecture.embedding_norm else None,
            streams.fork(self, "embedding/streams")
            if self.architecture.hyper_connections and self.architecture.draft_head == "none"
            else None,
            *operations(self, "embedding", side.embedding(self.architecture)),
            *draft_head.entrance(self),
        )

    def look_up(self) -> list[Op | None]:
        """Token look-up, and its sum over the vocabulary's shards."""
        looked_up = emb.embedding_bytes(self.tokens, hidden_size, activation_bytes, index_bytes)
        return [
            self.kernels.stream(self.path("embedding/lookup"), looked_up, self.tokens * hidden_size, 0),
            self.reduce("embedding/reduce"),
        ]

    def patches(self) -> list[Op | None]:
        """The product of the patches of an image; every device of a group has it whole."""
        rows = micro_batch * num_patches
        return [
            self.kernels.matmul(
                self.path("embedding/patches"),
                rows,
                hidden_size,
                patch_features,
                right=table_bytes,
                left=activation_bytes,
            )
        ]

    def spectra(self) -> list[Op | None]:
        """The convolutions that make tokens of spectra, as products of what their taps read, and the positions."""
        found: list[Op | None] = []
        for number, (rows, inputs) in enumerate(SPECTRA, 1):
            name, n = f"embedding/convolution_{number}", rows * self.tokens * hidden_size
            traffic = ew.activation_function_bytes(n, activation_bytes)
            kinds = {"right": table_bytes, "left": activation_bytes}
            found += [
                self.kernels.matmul(self.path(name), rows * self.tokens, hidden_size, inputs, **kinds),
                self.kernels.stream(self.path(f"{name}/activation"), traffic, n, FLOPS_PER_ELEMENT["activation"]),
            ]
        return [*found, self.added("encoder_positions")]

    def added(self, name: str) -> Op:
        """Rows of a table that are added to the embeddings."""
        n = self.tokens * hidden_size
        return self.kernels.stream(self.path(f"embedding/{name}"), ew.residual_bytes(n, activation_bytes), n, 1)

    def relative_bias(self) -> Op | None:
        """The biases of all pairs of positions of an encoder, which its layers share (T5)."""
        if self.architecture.positions != "relative":
            return None
        n = num_attention_heads / tp * prompt**2
        return self.kernels.stream(self.path("embedding/relative_bias"), n * activation_bytes, n, 0)

    def head(self, rows: Any = micro_batch) -> Sequence:
        """The last norm, what the head yields, and the software's own work.

        Args:
            rows: tokens of which logits are wanted, where each sequence yields its next token.
        """
        make = {
            "vocabulary": self.next_tokens,
            "transformed": self.all_tokens,
            "labels": self.labels,
            "pooled": self.pooled,
        }
        outputs = make.get(self.architecture.head)
        return sequence(
            self.mixture("head/mixture"),
            *(streams.join(self, "head/streams") if self.architecture.hyper_connections else ()),
            *operations(self, "head", side.head(self.architecture)),
            self.norm("head/norm", after_residual=True) if self.architecture.final_norm else None,
            *(outputs(rows) if outputs else ()),
            Op(self.path("software"), step_latency),
        )

    def next_tokens(self, rows: Any) -> list[Op | None]:
        """Logits of each sequence's last token, and the choice of its next one."""
        logits = rows * vocab_size * statistic_bytes
        return [*self.logits(rows), self.sampling(logits, rows * vocab_size)]

    def all_tokens(self, _: Any) -> list[Op | None]:
        """Logits of every token behind a dense layer and a norm (BERT); no token is chosen."""
        n = self.tokens * hidden_size
        traffic = ew.activation_function_bytes(n, activation_bytes)
        return [
            self.product("transform", self.tokens, hidden_size),
            self.kernels.stream(self.path("head/activation"), traffic, n, FLOPS_PER_ELEMENT["activation"]),
            self.norm("head/transform_norm"),
            *self.logits(self.tokens),
        ]

    def labels(self, _: Any) -> list[Op | None]:
        """The classes of each sequence, from its first token; every device of a group has the product whole."""
        return [self.product("labels", micro_batch, num_labels, statistic_bytes)]

    def pooled(self, _: Any) -> list[Op | None]:
        """Attention of one query to all patches of an image, and an MLP; every device of a group has them whole."""
        n, groups = micro_batch * intermediate_size, micro_batch * num_attention_heads
        kinds = {"left": activation_bytes, "right": activation_bytes}
        path, traffic = self.path("head/pool"), ew.activation_function_bytes(n, activation_bytes)
        down = self.kernels.matmul(
            f"{path}/down", micro_batch, hidden_size, intermediate_size, right=table_bytes, left=activation_bytes
        )
        return [
            self.product("pool/key_value", self.tokens, 2 * hidden_size),
            self.product("pool/query", micro_batch, hidden_size),
            self.kernels.matmul(f"{path}/scores", 1, prompt, head_dim, groups, **kinds),
            self.kernels.matmul(f"{path}/context", 1, head_dim, prompt, groups, **kinds),
            self.product("pool/output", micro_batch, hidden_size),
            self.product("pool/up", micro_batch, intermediate_size),
            self.kernels.stream(f"{path}/activation", traffic, n, FLOPS_PER_ELEMENT["activation"]),
            down,
        ]

    def logits(self, rows: Any) -> list[Op | None]:
        """The product with the table of tokens, and its columns from all devices of the group."""
        return [
            self.product("logits", rows, ceil_div(vocab_size, tp), statistic_bytes),
            self.kernels.all_gather(self.path("head/gather"), rows * vocab_size * statistic_bytes, self.group),
        ]

    def product(self, name: str, rows: Any, columns: Any, result: Any = activation_bytes) -> Op:
        """A product of the head, in 16 bits unless the checkpoint has logits' matrix in fewer."""
        narrow = name == "logits" and self.structure.narrow_head
        kinds = {} if narrow else {"right": table_bytes, "left": activation_bytes}
        return self.kernels.matmul(self.path(f"head/{name}"), rows, columns, hidden_size, result=result, **kinds)

    def sampling(self, traffic: Any, elements: Any) -> Op:
        """The kernels that choose a token: the first reads the logits, the others only start."""
        op = self.kernels.stream(self.path("head/sampling"), traffic, elements, FLOPS_PER_ELEMENT["softmax"])
        return dataclasses.replace(op, time=op.time + less_one(sampling_kernels) * kernel_start_time())
