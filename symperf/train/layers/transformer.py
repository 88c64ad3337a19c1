"""A layer as operations: forward, recomputed and backward, under tensor and sequence parallelism.

Every function returns nodes of the schedule algebra for one micro-batch of b sequences of s tokens on one device. A
layer is a mixer, attention to an encoder, and an MLP or experts, of which any may be missing; each reads the normalised
residual stream and adds to it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.language.symbols import hidden_size
from ...models.architecture import UNIFORM
from ...models.own_sizes import of_kind
from ...operations.schedule import Sequence, sequence
from .delta_rule import DeltaRule
from .experts import Experts
from .latent import LatentAttention
from .linear import Linears
from .recurrent import Mamba1, Mamba2, Recurrent
from .short_convolution import ShortConvolution
from .softmax_attention import CrossAttention, SoftmaxAttention

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure
    from .attention_core import Operations

Mixer = SoftmaxAttention | CrossAttention | LatentAttention | Recurrent
MIXERS: dict[str, type[SoftmaxAttention | LatentAttention | Recurrent]] = {
    "attention": SoftmaxAttention,
    "local_attention": SoftmaxAttention,
    "latent_attention": LatentAttention,
    "ssm": Mamba2,
    "ssm1": Mamba1,
    "linear_attention": DeltaRule,
    "short_convolution": ShortConvolution,
}
"""What builds a mixer's operations."""


class Decoder(Linears):
    """The layers of one kind, of a decoder or an encoder.

    Args:
        structure: what gives them their form.
        kind: of the layers; by default those of a uniform dense decoder.
        root: the first part of every path.
    """

    def __init__(self, structure: Structure, kind: LayerKind = UNIFORM, root: str = "layer") -> None:
        super().__init__(structure, kind, root)

    # --- a layer

    def layer_forward(self, phase: str = "forward") -> Sequence:
        """One layer's forward pass; `phase` names its operations ("forward", or "recompute" in the backward pass)."""
        steps = sequence(
            *(step for mixer in self.mixers for step in self.mixer_forward(mixer, phase)),
            *self.feed_forward(phase),
        )
        return of_kind(steps, self.kind)

    def layer_backward(self) -> Sequence:
        """One layer's backward pass, with what it computes again."""
        steps = sequence(
            self.layer_forward("recompute") if self.structure.recompute == "full" else None,
            *self.feed_backward(),
            *(step for mixer in reversed(self.mixers) for step in self.mixer_backward(mixer)),
        )
        return of_kind(steps, self.kind)

    # --- mixers

    @cached_property
    def mixers(self) -> tuple[Mixer, ...]:
        """What moves information between tokens: the layer's mixer, and attention to an encoder."""
        own = (MIXERS[self.kind.mixer](self),) if self.kind.mixer != "none" else ()
        return (*own, CrossAttention(self)) if self.kind.cross else own

    @property
    def post_norm(self) -> bool:
        """Whether a norm follows each part of a layer, too."""
        return self.architecture.block_norms == 4

    def pre_norm(self, mixer: Mixer) -> bool:
        """Whether a norm stands before a mixer; what the embeddings' norm gives needs no other."""
        return "normalised_input" not in self.kind.traits or mixer is not self.mixers[0]

    def mixer_forward(self, mixer: Mixer, phase: str) -> Operations:
        """A mixer between its norm and the residual stream."""
        return [
            self.norm(mixer.path("norm"), phase) if self.pre_norm(mixer) else None,
            self.gather(mixer.path(f"gather/{phase}")),
            *mixer.forward(phase),
            self.linear(mixer.path("output"), phase, mixer.output_width, hidden_size),
            None if self.architecture.parallel_block else self.reduce(mixer.path(f"reduce/{phase}")),
            self.norm(mixer.path("post_norm"), phase) if self.post_norm else None,
            self.residual(mixer.path("residual"), phase),
        ]

    def mixer_backward(self, mixer: Mixer) -> Operations:
        """Gradients of a layer's mixer."""
        return [
            self.residual_backward(mixer.path("residual")),
            self.norm_backward(mixer.path("post_norm")) if self.post_norm else None,
            None if self.architecture.parallel_block else self.gather(mixer.path("gather/backward")),
            self.row_backward(mixer.path("output"), mixer.output_width, hidden_size),
            *mixer.backward(),
            self.norm_backward(mixer.path("norm")) if self.pre_norm(mixer) else None,
        ]

    # --- the MLP and experts

    @cached_property
    def experts(self) -> Experts | None:
        """The routed and shared experts of the layer, if it has any."""
        return Experts(self) if self.kind.ffn in ("experts", "dense_experts") else None

    def feed_forward(self, phase: str) -> Operations:
        """What follows the mixer, between its norm and the residual stream."""
        if self.kind.ffn == "none":
            return []
        return [
            self.norm(f"{self.root}/mlp/norm", phase) if self.architecture.block_norms > 1 else None,
            *self.mlp_forward(phase),
            *(self.experts.forward(phase) if self.experts else ()),
            self.norm(f"{self.root}/mlp/post_norm", phase) if self.post_norm else None,
            self.residual(f"{self.root}/mlp/residual", phase),
        ]

    def feed_backward(self) -> Operations:
        """Gradients of a layer's feed-forward part, dense or of experts."""
        if self.kind.ffn == "none":
            return []
        return [
            self.residual_backward(f"{self.root}/mlp/residual"),
            self.norm_backward(f"{self.root}/mlp/post_norm") if self.post_norm else None,
            *(self.experts.backward() if self.experts else ()),
            *self.mlp_backward(),
            self.norm_backward(f"{self.root}/mlp/norm") if self.architecture.block_norms > 1 else None,
        ]

    def mlp_forward(self, phase: str) -> Operations:
        """The dense MLP, if the layer has one."""
        if self.kind.ffn == "experts":
            return []
        return [
            None if self.shares_input else self.gather(f"{self.root}/mlp/gather/{phase}"),
            self.linear(f"{self.root}/mlp/up", phase, hidden_size, self.up_width),
            self.activation_of(f"{self.root}/mlp/activation/{phase}", self.shapes.inner),
            self.linear(f"{self.root}/mlp/down", phase, self.shapes.inner, hidden_size),
            self.reduce(f"{self.root}/mlp/reduce/{phase}"),
        ]

    def mlp_backward(self) -> Operations:
        """Gradients of a dense MLP."""
        if self.kind.ffn == "experts":
            return []
        return [
            self.gather(f"{self.root}/mlp/gather/backward"),
            self.row_backward(f"{self.root}/mlp/down", self.shapes.inner, hidden_size),
            self.activation_gradient_of(f"{self.root}/mlp/activation/backward", self.shapes.inner),
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
