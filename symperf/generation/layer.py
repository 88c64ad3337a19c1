"""A decoder layer of an inference as operations: b sequences on one device, each with new tokens to process.

Tensor parallelism is Megatron's (arXiv 1909.08053): two sums over the group a layer, one of a parallel block.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..architecture import UNIFORM
from ..formulas import attention as att
from ..formulas import decode as dec
from ..formulas import elementwise as ew
from ..formulas import windows
from ..formulas.atoms import ceil_div
from ..formulas.symbols import (
    activation_bytes,
    head_dim,
    hidden_size,
    intermediate_size,
    kv_bytes,
    micro_batch,
    num_attention_heads,
    num_key_value_heads,
    sliding_window,
    statistic_bytes,
    tp,
    vocab_size,
)
from ..kernels import tensor_group
from ..schedule import Op, Sequence, sequence
from ..shapes import FLOPS_PER_ELEMENT, Shapes
from .experts import Experts
from .kernels import InferenceKernels
from .latent import LatentAttention

if TYPE_CHECKING:
    from ..architecture import LayerKind
    from .structure import InferenceStructure


class Layer:
    """The operations of one structure's layers and ends.

    Args:
        structure: what gives them their form.
        phase: "prefill" or "decode": the first part of every path.
        tokens: new tokens of a micro-batch, on one replica.
        kind: of the layers.
        root: the first part of every path of a layer, after the phase.
    """

    def __init__(
        self,
        structure: InferenceStructure,
        phase: str,
        tokens: Any,
        kind: LayerKind = UNIFORM,
        root: str = "layer",
    ) -> None:
        self.kind, self.root = kind, root
        self.structure, self.architecture, self.fusion = structure, structure.architecture, structure.fusion
        self.phase, self.tokens = phase, tokens
        self.kernels = InferenceKernels(structure)
        self.group = tensor_group()
        self.shapes = Shapes(
            tokens=tokens,
            stream_tokens=tokens,
            heads=num_attention_heads / tp,
            key_value_heads=ceil_div(num_key_value_heads, tp),
            inner=intermediate_size / tp,
            vocabulary=ceil_div(vocab_size, tp),
        )
        self.stream_message = tokens * hidden_size * activation_bytes

    def layer(self, *core: Op | None) -> Sequence:
        """One layer around the operations of its attention core."""
        parallel, post = self.architecture.parallel_block, self.architecture.block_norms == 4
        return sequence(
            self.norm(f"{self.root}/attention/norm", after_residual=True),
            *self.projections(),
            *core,
            self.linear(f"{self.root}/attention/output", self.output_width, hidden_size),
            None if parallel else self.reduce(f"{self.root}/attention/reduce"),
            self.norm(f"{self.root}/attention/post_norm") if post else None,
            None if parallel else self.residual(f"{self.root}/attention/residual"),
            self.norm(f"{self.root}/mlp/norm", after_residual=not parallel)
            if self.architecture.block_norms > 1
            else None,
            *self.mlp(),
            *(Experts(self).operations() if self.kind.ffn in ("experts", "dense_experts") else ()),
            self.norm(f"{self.root}/mlp/post_norm") if post else None,
            self.residual(f"{self.root}/mlp/residual"),
        )

    @cached_property
    def latent(self) -> LatentAttention | None:
        """The latent attention of the layer, if that is its mixer."""
        return LatentAttention(self) if self.kind.mixer == "latent_attention" else None

    @property
    def output_width(self) -> Any:
        """Features that the output projection of attention reads."""
        return self.latent.value_width if self.latent else self.shapes.attention_width

    def projections(self) -> list[Op | None]:
        """What makes queries, keys and values of the new tokens."""
        if self.latent:
            return self.latent.projections()
        return [
            self.linear(f"{self.root}/attention/qkv", hidden_size, self.shapes.query_key_value),
            self.query_key_norm(),
            self.positions(),
        ]

    def mlp(self) -> list[Op | None]:
        """The dense MLP, if the layer has one."""
        if self.kind.ffn == "experts":
            return []
        return [
            *self.up(),
            self.activation(),
            self.linear(f"{self.root}/mlp/down", self.shapes.inner, hidden_size),
            self.reduce(f"{self.root}/mlp/reduce"),
        ]

    def path(self, name: str) -> str:
        """The path of an operation in this phase."""
        return f"{self.phase}/{name}"

    # --- products

    def linear(self, name: str, in_features: Any, out_features: Any) -> Op:
        """A linear layer over all new tokens; its bias is fused."""
        return self.kernels.matmul(self.path(name), self.tokens, out_features, in_features)

    def up(self) -> list[Op]:
        """The first product of the MLP: gate and up as one or as two."""
        inner = self.shapes.inner
        if not self.architecture.gated_mlp:
            return [self.linear(f"{self.root}/mlp/up", hidden_size, inner)]
        if self.fusion.gate_up:
            return [self.linear(f"{self.root}/mlp/gate_up", hidden_size, 2 * inner)]
        return [
            self.linear(f"{self.root}/mlp/gate", hidden_size, inner),
            self.linear(f"{self.root}/mlp/up", hidden_size, inner),
        ]

    # --- the attention core

    def prefill_attention(self, sequence_length: Any) -> list[Op | None]:
        """Causal attention of whole prompts among themselves."""
        if self.latent:
            return self.latent.prefill(sequence_length)
        if not self.fusion.fused_prefill:
            return [self.append(), *self.stored_scores(sequence_length)]
        shapes = self.shapes
        work = att.flash_flops(micro_batch, sequence_length, shapes.heads, head_dim)
        if self.windowed:
            pairs = windows.window_pairs(sequence_length, sliding_window)
            work = windows.masked_attention_flops(micro_batch, pairs, shapes.heads, head_dim)
        traffic = att.flash_bytes(
            micro_batch,
            sequence_length,
            shapes.heads,
            shapes.key_value_heads,
            head_dim,
            activation_bytes,
            statistic_bytes,
        )
        return [self.append(), self.kernels.flash(self.path(f"{self.root}/attention/flash"), work, traffic)]

    def stored_scores(self, length: Any) -> list[Op]:
        """Prefill's attention as two products with a softmax between them; scores are stored, masked or not."""
        groups, path = micro_batch * self.shapes.heads, self.path(f"{self.root}/attention/core")
        scores = att.score_elements(micro_batch, length, self.shapes.heads)
        traffic = att.softmax_bytes(scores, activation_bytes)
        kinds = {"left": activation_bytes, "right": activation_bytes}
        return [
            self.kernels.matmul(f"{path}/scores", length, length, head_dim, groups, **kinds),
            self.kernels.stream(f"{path}/softmax", traffic, scores, FLOPS_PER_ELEMENT["softmax"]),
            self.kernels.matmul(f"{path}/context", length, head_dim, length, groups, **kinds),
        ]

    def decode_attention(self, steps: Any, first_context: Any) -> list[Op | None]:
        """Attention of one new token of every sequence over a cache that grows by one token a step."""
        if self.latent:
            return self.latent.decode((steps, first_context))
        work, own, each = self.decode_demand(micro_batch)
        core = self.kernels.generation(
            self.path(f"{self.root}/attention/flash"),
            (steps, first_context),
            work,
            own,
            each,
            window=sliding_window if self.windowed else None,
        )
        return [self.append(), core, self.combine(micro_batch)]

    @property
    def windowed(self) -> bool:
        """Whether the layer attends to a window only."""
        return self.kind.mixer == "local_attention"

    def decode_demand(self, sequences: Any) -> tuple[Any, Any, Any]:
        """FLOPs for each cached key, bytes that do not depend on the context, bytes for each key."""
        shapes = self.shapes
        work = att.attention_flops(sequences, 1, 1, shapes.heads, head_dim)
        own = 2 * sequences * shapes.attention_width * activation_bytes
        if self.splits:
            own += dec.partial_bytes(sequences, shapes.heads, shapes.key_value_heads, head_dim)
        return work, own, dec.cache_read_bytes(sequences, 1, shapes.key_value_heads, head_dim, kv_bytes)

    @property
    def splits(self) -> bool:
        """Whether attention over the cache is split; a device of unknown units is taken to need none."""
        return self.fusion.split_context and self.structure.quantised

    def combine(self, sequences: Any) -> Op | None:
        """The kernel that adds the parts of split contexts."""
        if not self.splits:
            return None
        shapes = self.shapes
        parts = dec.partial_bytes(sequences, shapes.heads, shapes.key_value_heads, head_dim)
        elements = sequences * shapes.attention_width
        return self.kernels.stream(
            self.path(f"{self.root}/attention/combine"), parts + elements * activation_bytes, elements, 2
        )

    def append(self) -> Op | None:
        """The kernel that writes new keys and values into the cache."""
        if self.fusion.rotary_cache:
            return None
        elements = 2 * self.tokens * self.shapes.key_value_heads * head_dim
        return self.kernels.stream(
            self.path(f"{self.root}/attention/append"), elements * (activation_bytes + kv_bytes), elements, 0
        )

    # --- element-wise kernels and collectives

    def norm(self, name: str, *, after_residual: bool = False) -> Op:
        """A norm over the residual stream, with the addition before it where the two are fused."""
        n = self.tokens * hidden_size
        traffic, work = ew.norm_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["norm"]
        if after_residual and self.fusion.residual_norm:
            traffic = ew.residual_norm_bytes(n, activation_bytes)
            work += FLOPS_PER_ELEMENT["residual"]
        return self.kernels.stream(self.path(name), traffic, n, work)

    def residual(self, name: str) -> Op | None:
        """A residual addition; part of the norm after it where the two are fused."""
        if self.fusion.residual_norm:
            return None
        n = self.tokens * hidden_size
        traffic = ew.residual_bytes(n, activation_bytes)
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["residual"])

    def query_key_norm(self) -> Op | None:
        """The norm of queries and keys."""
        if self.architecture.query_key_norm == "none":
            return None
        n = self.tokens * head_dim * (self.shapes.heads + self.shapes.key_value_heads)
        traffic = ew.norm_bytes(n, activation_bytes)
        return self.kernels.stream(self.path(f"{self.root}/attention/qk_norm"), traffic, n, FLOPS_PER_ELEMENT["norm"])

    def positions(self) -> Op | None:
        """Rotary positions of queries and keys."""
        if self.architecture.positions != "rotary" or self.fusion.rotary_cache:
            return None
        n = self.tokens * head_dim * (self.shapes.heads + self.shapes.key_value_heads)
        traffic = ew.rotary_bytes(n, activation_bytes)
        return self.kernels.stream(self.path(f"{self.root}/attention/rotary"), traffic, n, FLOPS_PER_ELEMENT["rotary"])

    def activation(self) -> Op:
        """The MLP's activation function, gated or plain."""
        return self.activation_of(f"{self.root}/mlp/activation", self.shapes.inner)

    def activation_of(self, name: str, width: Any) -> Op:
        """An activation function over all new tokens."""
        n = self.tokens * width
        traffic = (ew.gated_activation_bytes if self.architecture.gated_mlp else ew.activation_function_bytes)(
            n, activation_bytes
        )
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["activation"])

    def reduce(self, name: str) -> Op | None:
        """The sum of the shares of a row-split product."""
        return self.kernels.all_reduce(self.path(name), self.stream_message, self.group)
