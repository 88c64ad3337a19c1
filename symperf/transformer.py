"""A decoder layer as operations: forward, recomputed and backward, under tensor and sequence parallelism.

Every function returns nodes of the schedule algebra for one micro-batch of b sequences of s tokens on one device.
Tensor parallelism is Megatron's (arXiv 1909.08053): the first product of a block is split by columns, the second by
rows; with sequence parallelism (arXiv 2205.05198) an all-reduce becomes an all-gather and a reduce-scatter, and the
backward pass gathers the input of a column-split product once more.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from .architecture import UNIFORM
from .blocks import Blocks
from .context import ContextAttention
from .experts import Experts
from .formulas import attention as att
from .formulas import elementwise as ew
from .formulas.symbols import (
    activation_bytes,
    head_dim,
    hidden_size,
    mask_bytes,
    micro_batch,
    statistic_bytes,
)
from .formulas.symbols import sequence as sequence_symbol
from .latent import LatentAttention
from .schedule import Op, Sequence, sequence
from .shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from .architecture import LayerKind
    from .structure import Structure


class Decoder(Blocks):
    """The layers of one kind of a structure's decoder.

    Args:
        structure: what gives them their form.
        kind: of the layers; by default those of a uniform dense decoder.
        root: the first part of every path.
    """

    def __init__(self, structure: Structure, kind: LayerKind = UNIFORM, root: str = "layer") -> None:
        super().__init__(structure)
        self.kind, self.root = kind, root

    # --- a layer

    def layer_forward(self, phase: str = "forward") -> Sequence:
        """One layer's forward pass; `phase` names its operations ("forward", or "recompute" in the backward pass)."""
        parallel = self.architecture.parallel_block
        return sequence(
            self.norm(f"{self.root}/attention/norm", phase),
            self.gather(f"{self.root}/attention/gather/{phase}"),
            *self.mixer_forward(phase),
            self.linear(f"{self.root}/attention/output", phase, self.output_width, hidden_size),
            None if parallel else self.reduce(f"{self.root}/attention/reduce/{phase}"),
            self.norm(f"{self.root}/attention/post_norm", phase) if self.architecture.block_norms == 4 else None,
            self.residual(f"{self.root}/attention/residual", phase),
            self.norm(f"{self.root}/mlp/norm", phase) if self.architecture.block_norms > 1 else None,
            *self.mlp_forward(phase),
            *(self.experts.forward(phase) if self.experts else ()),
            self.norm(f"{self.root}/mlp/post_norm", phase) if self.architecture.block_norms == 4 else None,
            self.residual(f"{self.root}/mlp/residual", phase),
        )

    def layer_backward(self) -> Sequence:
        """One layer's backward pass, with what it computes again."""
        recompute = self.structure.recompute
        parallel = self.architecture.parallel_block
        post = self.architecture.block_norms == 4
        return sequence(
            self.layer_forward("recompute") if recompute == "full" else None,
            self.residual_backward(f"{self.root}/mlp/residual"),
            self.norm_backward(f"{self.root}/mlp/post_norm") if post else None,
            *(self.experts.backward() if self.experts else ()),
            *self.mlp_backward(),
            self.norm_backward(f"{self.root}/mlp/norm") if self.architecture.block_norms > 1 else None,
            self.residual_backward(f"{self.root}/attention/residual"),
            self.norm_backward(f"{self.root}/attention/post_norm") if post else None,
            None if parallel else self.gather(f"{self.root}/attention/gather/backward"),
            self.row_backward(f"{self.root}/attention/output", self.output_width, hidden_size),
            self.core_forward("recompute") if recompute == "selective" else None,
            self.core_backward(),
            *self.mixer_backward(),
            self.norm_backward(f"{self.root}/attention/norm"),
        )

    # --- the two blocks

    @cached_property
    def experts(self) -> Experts | None:
        """The routed and shared experts of the layer, if it has any."""
        return Experts(self) if self.kind.ffn in ("experts", "dense_experts") else None

    @cached_property
    def latent(self) -> LatentAttention | None:
        """The latent attention of the layer, if that is its mixer."""
        return LatentAttention(self) if self.kind.mixer == "latent_attention" else None

    @property
    def output_width(self) -> Any:
        """Features that the output projection of attention reads."""
        return self.latent.value_width if self.latent else self.shapes.attention_width

    def mixer_forward(self, phase: str) -> list[Op | Sequence | None]:
        """Projections, positions and the attention core."""
        if self.latent:
            return [*self.latent.projections(phase), self.core_forward(phase)]
        return [
            self.linear(f"{self.root}/attention/qkv", phase, hidden_size, self.shapes.query_key_value),
            self.positions(phase),
            self.core_forward(phase),
        ]

    def mixer_backward(self) -> list[Op | Sequence | None]:
        """Gradients of positions and projections, after those of the core."""
        if self.latent:
            return self.latent.projections_backward()
        return [
            self.positions("backward"),
            self.column_backward(f"{self.root}/attention/qkv", hidden_size, self.shapes.query_key_value),
        ]

    def mlp_forward(self, phase: str) -> list[Op | Sequence | None]:
        """The dense MLP, if the layer has one."""
        if self.kind.ffn == "experts":
            return []
        return [
            None if self.shares_input else self.gather(f"{self.root}/mlp/gather/{phase}"),
            self.linear(f"{self.root}/mlp/up", phase, hidden_size, self.up_width),
            self.activation(phase),
            self.linear(f"{self.root}/mlp/down", phase, self.shapes.inner, hidden_size),
            self.reduce(f"{self.root}/mlp/reduce/{phase}"),
        ]

    def mlp_backward(self) -> list[Op | Sequence | None]:
        """Its gradients."""
        if self.kind.ffn == "experts":
            return []
        return [
            self.gather(f"{self.root}/mlp/gather/backward"),
            self.row_backward(f"{self.root}/mlp/down", self.shapes.inner, hidden_size),
            self.activation_backward(),
            self.column_backward(f"{self.root}/mlp/up", hidden_size, self.up_width, shared=self.shares_input),
        ]

    @property
    def shares_input(self) -> bool:
        """Whether attention and MLP read the same normalised input, which is then gathered and reduced once."""
        return self.architecture.parallel_block and self.architecture.block_norms == 1

    @property
    def up_width(self) -> Any:
        """Features of the MLP's first product: gate and up together where it is gated."""
        return 2 * self.shapes.inner if self.architecture.gated_mlp else self.shapes.inner

    # --- the attention core

    @cached_property
    def parts(self) -> ContextAttention | None:
        """The core over parts of a sequence, if sequences are in parts."""
        return None if self.structure.context == "none" else ContextAttention(self)

    def core_forward(self, phase: str) -> Sequence:
        """Scores, softmax, dropout and weighted values; or the flash kernel."""
        if self.parts:
            return self.parts.forward(phase)
        if self.structure.attention == "flash":
            return sequence(self.kernels.flash(f"{self.root}/attention/flash/{phase}", *self.flash_demand))
        path = f"{self.root}/attention/core"
        return sequence(
            self.score_product(f"{path}/scores/{phase}", sequence_by_sequence=True),
            self.softmax(f"{path}/softmax/{phase}", att.softmax_bytes, "softmax"),
            self.score_dropout(f"{path}/dropout/{phase}"),
            self.score_product(f"{path}/context/{phase}"),
        )

    def core_backward(self) -> Sequence:
        """The core's gradients: of values and probabilities, through the softmax, of queries and keys."""
        if self.parts:
            return self.parts.backward()
        if self.structure.attention == "flash":
            return sequence(self.kernels.flash_backward(f"{self.root}/attention/flash/backward", *self.flash_demand))
        path = f"{self.root}/attention/core"
        return sequence(
            self.score_product(f"{path}/context/backward_scores", sequence_by_sequence=True),
            self.score_product(f"{path}/context/backward_values"),
            self.score_dropout(f"{path}/dropout/backward"),
            self.softmax(f"{path}/softmax/backward", att.softmax_backward_bytes, "softmax backward"),
            self.score_product(f"{path}/scores/backward_queries"),
            self.score_product(f"{path}/scores/backward_keys"),
        )

    @property
    def flash_demand(self) -> tuple[Any, Any]:
        """Work and traffic of the forward flash kernel."""
        if self.latent:
            return self.latent.flash_demand
        shapes = self.shapes
        return (
            att.flash_flops(micro_batch, sequence_symbol, shapes.heads, head_dim),
            att.flash_bytes(
                micro_batch,
                sequence_symbol,
                shapes.heads,
                shapes.key_value_heads,
                head_dim,
                activation_bytes,
                statistic_bytes,
            ),
        )

    def score_product(self, path: str, *, sequence_by_sequence: bool = False) -> Op:
        """One of the products with the s x s scores: they are its result, or one of its factors."""
        columns, inner = (sequence_symbol, head_dim) if sequence_by_sequence else (head_dim, sequence_symbol)
        groups = micro_batch * self.shapes.heads
        return self.kernels.matmul(path, sequence_symbol, columns, inner, groups, right=activation_bytes)

    @property
    def scores(self) -> Any:
        """Scores on the device."""
        return att.score_elements(micro_batch, sequence_symbol, self.shapes.heads)

    def softmax(self, path: str, traffic: Any, kind: str) -> Op:
        """The fused softmax over the scores, or its gradient."""
        return self.kernels.stream(path, traffic(self.scores, activation_bytes), self.scores, FLOPS_PER_ELEMENT[kind])

    def score_dropout(self, path: str) -> Op | None:
        """The dropout on the probabilities."""
        if not self.structure.dropout:
            return None
        traffic = ew.dropout_bytes(self.scores, activation_bytes, mask_bytes)
        return self.kernels.stream(path, traffic, self.scores, FLOPS_PER_ELEMENT["dropout"])

    # --- linear layers

    def linear(self, path: str, phase: str, in_features: Any, out_features: Any) -> Op:
        """The forward product of a linear layer over all tokens; its bias is fused."""
        return self.kernels.matmul(f"{path}/{phase}", self.shapes.tokens, out_features, in_features)

    def column_backward(self, path: str, in_features: Any, out_features: Any, *, shared: bool = False) -> Sequence:
        """Gradients of a column-split layer: the sum of its input gradient runs beside the weight gradient.

        With sequence parallelism its input is gathered again beside the input-gradient product. Where attention and
        MLP share their input, both transfers happen once: `shared` leaves them to the other. Where the gradient of the
        weights is a later pass, its transfer is the gather, and the sum of the input gradient has nothing beside it.
        """
        input_gradient = self.input_gradient(path, in_features, out_features)
        weight_gradient = self.kernels.weight_gradient(
            f"{path}/backward_weight", self.shapes.tokens, in_features, out_features
        )
        again = None if shared else self.gather(f"{path}/gather/backward")
        reduction = None if shared else self.reduce(f"{path}/reduce/backward")
        if self.structure.splits:
            later = None if shared else self.gather(f"{path}/gather/backward_weight")
            return sequence(
                input_gradient,
                reduction,
                self.beside(weight_gradient, later),
                self.bias_gradient(path, self.shapes.tokens, out_features),
            )
        return sequence(
            self.beside(input_gradient, again),
            self.beside(weight_gradient, reduction),
            self.bias_gradient(path, self.shapes.tokens, out_features),
        )

    def row_backward(self, path: str, in_features: Any, out_features: Any) -> Sequence:
        """Gradients of a row-split layer; its bias is added to the sharded residual stream."""
        return sequence(
            self.input_gradient(path, in_features, out_features),
            self.kernels.weight_gradient(f"{path}/backward_weight", self.shapes.tokens, in_features, out_features),
            self.bias_gradient(path, self.shapes.stream_tokens, out_features),
        )

    def input_gradient(self, path: str, in_features: Any, out_features: Any) -> Op:
        """The product of output gradient and weights."""
        return self.kernels.matmul(f"{path}/backward_input", self.shapes.tokens, in_features, out_features)

    def bias_gradient(self, path: str, tokens: Any, out_features: Any) -> Op | None:
        """The sum of the output gradient over tokens, where the layer has a bias."""
        has_bias = {
            "attention/qkv": self.architecture.qkv_bias,
            "attention/output": self.architecture.attention_output_bias,
            "mlp/up": self.architecture.mlp_bias,
            "mlp/down": self.architecture.mlp_bias,
        }
        if not has_bias.get(path.removeprefix(f"{self.root}/"), False):
            return None
        elements = tokens * out_features
        traffic = ew.bias_gradient_bytes(elements, activation_bytes)
        return self.kernels.stream(f"{path}/backward_bias", traffic, elements, FLOPS_PER_ELEMENT["bias gradient"])

    def residual(self, path: str, phase: str) -> Op:
        """Dropout and residual addition, fused."""
        n = self.stream_elements
        if self.structure.dropout:
            traffic = ew.dropout_residual_bytes(n, activation_bytes, mask_bytes)
            work = FLOPS_PER_ELEMENT["dropout"] + FLOPS_PER_ELEMENT["residual"]
            return self.kernels.stream(f"{path}/{phase}", traffic, n, work)
        traffic = ew.residual_bytes(n, activation_bytes)
        return self.kernels.stream(f"{path}/{phase}", traffic, n, FLOPS_PER_ELEMENT["residual"])

    def residual_backward(self, path: str) -> Sequence:
        """The dropout's gradient, and the sum of the gradients of the two branches."""
        n = self.stream_elements
        dropped = ew.dropout_bytes(n, activation_bytes, mask_bytes)
        summed = ew.residual_bytes(n, activation_bytes)
        return sequence(
            self.kernels.stream(f"{path}/backward_dropout", dropped, n, FLOPS_PER_ELEMENT["dropout"])
            if self.structure.dropout
            else None,
            self.kernels.stream(f"{path}/backward", summed, n, FLOPS_PER_ELEMENT["residual"]),
        )

    def activation(self, phase: str) -> Op:
        """The MLP's activation function, or its gated product."""
        return self.activation_of(f"{self.root}/mlp/activation/{phase}", self.shapes.inner)

    def activation_of(self, path: str, width: Any) -> Op:
        """An activation function over all tokens, gated where the MLP is."""
        n = self.shapes.tokens * width
        count = ew.gated_activation_bytes if self.architecture.gated_mlp else ew.activation_function_bytes
        return self.kernels.stream(path, count(n, activation_bytes), n, FLOPS_PER_ELEMENT["activation"])

    def activation_backward(self) -> Op:
        """Its gradient."""
        return self.activation_gradient_of(f"{self.root}/mlp/activation/backward", self.shapes.inner)

    def activation_gradient_of(self, path: str, width: Any) -> Op:
        """The gradient of `activation_of`."""
        n = self.shapes.tokens * width
        gated = self.architecture.gated_mlp
        count = ew.gated_activation_backward_bytes if gated else ew.activation_function_backward_bytes
        return self.kernels.stream(path, count(n, activation_bytes), n, FLOPS_PER_ELEMENT["activation backward"])

    def positions(self, phase: str) -> Sequence:
        """Norms of queries and keys, and rotary positions; ALiBi is part of the softmax kernel."""
        n = self.shapes.tokens * head_dim * (self.shapes.heads + self.shapes.key_value_heads)
        backward = phase == "backward"
        norm = None
        if self.architecture.query_key_norm != "none":
            count = ew.norm_backward_bytes if backward else ew.norm_bytes
            work = FLOPS_PER_ELEMENT["norm backward" if backward else "norm"]
            norm = self.kernels.stream(
                f"{self.root}/attention/query_key_norm/{phase}", count(n, activation_bytes), n, work
            )
        rotary = None
        if self.architecture.positions == "rotary":
            traffic = ew.rotary_bytes(n, activation_bytes)
            rotary = self.kernels.stream(
                f"{self.root}/attention/rotary/{phase}", traffic, n, FLOPS_PER_ELEMENT["rotary"]
            )
        return sequence(rotary, norm) if backward else sequence(norm, rotary)
