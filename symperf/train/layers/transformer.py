"""A layer as operations: forward, recomputed and backward, under tensor and sequence parallelism.

Every function returns nodes of the schedule algebra for one micro-batch of b sequences of s tokens on one device. A
layer is a mixer (or several side by side), attention to an encoder, and an MLP or experts, of which any may be missing;
each reads the normalised residual stream and adds to it. Mixers side by side share the norm and the addition; each
gathers its input and sums its result as if it were alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...formulas.language.symbols import hidden_size
from ...models.architecture import UNIFORM
from ...models.own_sizes import of_kind
from ...operations.schedule import Sequence, sequence
from ...operations.side_blocks import before as before_layer
from ...operations.side_blocks import behind as behind_layer
from ...operations.side_blocks import beside as beside_mixer
from ...operations.side_blocks import convolutions
from . import streams
from .compressed import CompressedAttention
from .delta_rule import delta_rule
from .experts import Experts
from .gated_lru import GatedLru
from .latent import LatentAttention
from .lightning import LightningAttention
from .linear import Linears
from .matrix_memory import MatrixMemory
from .recomputed import recomputed_modules
from .recurrent import Mamba1, Mamba2, Recurrent
from .selected import SelectedBlocks, SelectedLatents
from .short_convolution import ShortConvolution
from .side_blocks import backward, forward
from .softmax_attention import CrossAttention, SoftmaxAttention
from .wkv import TimeMixing

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...operations.schedule import Op
    from ...operations.side_blocks import Step
    from ...plans.structure import Structure
    from .attention_core import Operations

Mixer = SoftmaxAttention | CrossAttention | LatentAttention | CompressedAttention | Recurrent
Builder = Callable[["Decoder"], SoftmaxAttention | LatentAttention | CompressedAttention | Recurrent]
MIXERS: dict[str, Builder] = {
    "attention": SoftmaxAttention,
    "local_attention": SoftmaxAttention,
    "latent_attention": LatentAttention,
    "compressed_attention": CompressedAttention,
    "ssm": Mamba2,
    "ssm1": Mamba1,
    "linear_attention": delta_rule,
    "short_convolution": ShortConvolution,
    "gated_lru": GatedLru,
    "lightning_attention": LightningAttention,
    "matrix_memory": MatrixMemory,
    "wkv": TimeMixing,
}
"""What builds a mixer's operations."""
SELECTING: dict[str, Builder] = {
    "indexer": SelectedLatents,
    "reused_index": SelectedLatents,
    "block_index": SelectedBlocks,
}
"""The same where a trait of the mixer says that it sees selected keys."""


def mixer_of(kind: LayerKind) -> Builder:
    """What builds the operations of a kind's mixer."""
    return next((SELECTING[trait] for trait in kind.traits if trait in SELECTING), MIXERS[kind.mixer])


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
        before, beside, behind = (forward(self, self.root, phase, steps) for steps in self.side)
        steps = sequence(
            *before,
            *(step for mixer in self.mixers for step in self.mixer_forward(mixer, phase)),
            *beside,
            *self.feed_forward(phase),
            *behind,
        )
        return of_kind(steps, self.kind)

    @cached_property
    def side(self) -> tuple[list[Step], ...]:
        """What the layer has before its mixer, beside it, and behind its MLP."""
        before, beside, behind = (steps(self.architecture) for steps in (before_layer, beside_mixer, behind_layer))
        return before, beside, [*behind, *convolutions(self.kind)]

    def layer_backward(self) -> Sequence:
        """One layer's backward pass, with what it computes again."""
        before, beside, behind = (backward(self, self.root, steps) for steps in self.side)
        steps = sequence(
            self.layer_forward("recompute") if self.structure.recompute == "full" else None,
            recomputed_modules(self, self.structure.modules),
            *behind,
            *self.feed_backward(),
            *beside,
            *(step for mixer in reversed(self.mixers) for step in self.mixer_backward(mixer)),
            *before,
        )
        return of_kind(steps, self.kind)

    # --- mixers

    read_width: Any = hidden_size
    """Features of a token that a mixer's first product reads."""
    read_message: Any = None
    """Bytes of what it reads where that is gathered, if it is not the stream alone."""

    @cached_property
    def mixers(self) -> tuple[tuple[Mixer, ...], ...]:
        """What moves information between tokens: the layer's mixers side by side, and attention to an encoder."""
        own = tuple(mixer_of(each)(self) for each in self.kind.alone)
        return tuple(beside for beside in (own, (CrossAttention(self),) if self.kind.cross else ()) if beside)

    @property
    def post_norm(self) -> bool:
        """Whether a norm follows each part of a layer, too."""
        return self.architecture.block_norms == 4

    @property
    def chained(self) -> bool:
        """Whether each addition to the stream and the norm behind it are one kernel.

        The first norm of a model stands behind its embedding, and the last behind its layers: there are as many.
        """
        plain = self.architecture.block_norms == 2 and not self.architecture.parallel_block
        several = self.architecture.hyper_connections or self.architecture.attention_residuals
        return self.structure.compiled and plain and not several

    def pre_norm(self, mixer: Mixer) -> bool:
        """Whether a norm of its own stands before a mixer; what the embeddings' norm gives needs no other."""
        return (not self.chained and "normalised_input" not in self.kind.traits) or mixer is not self.mixers[0][0]

    def mixer_forward(self, beside: tuple[Mixer, ...], phase: str) -> Operations:
        """Mixers between their norm and the residual stream."""
        first, *others = beside
        norm = self.norm(first.path("norm"), phase) if self.pre_norm(first) else None
        found: Operations = [*self.entered(first.path(""), phase), norm]
        for mixer in beside:
            found += [
                self.gather(mixer.path(f"gather/{phase}")),
                *mixer.forward(phase),
                self.linear(mixer.path("output"), phase, mixer.output_width, hidden_size),
                None if self.architecture.parallel_block else self.reduce(mixer.path(f"reduce/{phase}")),
            ]
        return [
            *found,
            *(self.addition(mixer.path(f"sum/{phase}")) for mixer in others),
            self.norm(first.path("post_norm"), phase) if self.post_norm else None,
            self.left(first.path("residual"), phase),
        ]

    def mixer_backward(self, beside: tuple[Mixer, ...]) -> Operations:
        """Gradients of mixers; those of the stream that they read are added."""
        first, *others = beside
        found: Operations = [
            self.left_backward(first.path("residual")),
            self.norm_backward(first.path("post_norm")) if self.post_norm else None,
        ]
        for mixer in beside:
            found += [
                None if self.architecture.parallel_block else self.gather(mixer.path("gather/backward")),
                self.row_backward(mixer.path("output"), mixer.output_width, hidden_size),
                *mixer.backward(),
            ]
        found += [self.addition(mixer.path("sum/backward")) for mixer in others]
        found.append(self.norm_backward(first.path("norm")) if self.pre_norm(first) else None)
        return [*found, *self.entered_backward(first.path(""))]

    # --- the residual stream, or several

    def entered(self, block: str, phase: str) -> Operations:
        """What a part reads of several streams, or of sums of earlier layers, where there are any."""
        if self.architecture.hyper_connections:
            return streams.enter(self, f"{block}connections", phase)
        return [self.mixture(f"{block}mixture", phase)]

    def entered_backward(self, block: str) -> Operations:
        """Its gradients."""
        if self.architecture.hyper_connections:
            return streams.enter_backward(self, f"{block}connections")
        return [self.mixture(f"{block}mixture", "backward")]

    def left(self, path: str, phase: str) -> Op:
        """What a part gave, added to the stream, or mixed with several."""
        if self.chained:
            return self.residual_norm(path, phase)
        several = self.architecture.hyper_connections
        return streams.leave(self, path, phase) if several else self.residual(path, phase)

    def left_backward(self, path: str) -> Op | Sequence:
        """Its gradients."""
        if self.chained:
            return self.residual_norm_backward(path)
        several = self.architecture.hyper_connections
        return streams.leave_backward(self, path) if several else self.residual_backward(path)

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
            *self.entered(f"{self.root}/mlp/", phase),
            self.norm(f"{self.root}/mlp/norm", phase) if self.mlp_norm else None,
            *self.mlp_forward(phase),
            *(self.experts.forward(phase) if self.experts else ()),
            self.norm(f"{self.root}/mlp/post_norm", phase) if self.post_norm else None,
            self.left(f"{self.root}/mlp/residual", phase),
        ]

    def feed_backward(self) -> Operations:
        """Gradients of a layer's feed-forward part, dense or of experts."""
        if self.kind.ffn == "none":
            return []
        return [
            self.left_backward(f"{self.root}/mlp/residual"),
            self.norm_backward(f"{self.root}/mlp/post_norm") if self.post_norm else None,
            *(self.experts.backward() if self.experts else ()),
            *self.mlp_backward(),
            self.norm_backward(f"{self.root}/mlp/norm") if self.mlp_norm else None,
            *self.entered_backward(f"{self.root}/mlp/"),
        ]

    @property
    def mlp_norm(self) -> bool:
        """Whether a norm of its own stands before the MLP."""
        return self.architecture.block_norms > 1 and not self.chained

    def mlp_forward(self, phase: str) -> Operations:
        """The dense MLP, if the layer has one."""
        if self.kind.ffn == "experts":
            return []
        return [
            None if self.shares_input else self.gather(f"{self.root}/mlp/gather/{phase}"),
            self.shift(f"{self.root}/mlp/shift", phase, 1) if self.kind.mixer == "wkv" else None,
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
            self.shift(f"{self.root}/mlp/shift", "backward", 1) if self.kind.mixer == "wkv" else None,
        ]

    @property
    def shares_input(self) -> bool:
        """Whether attention and MLP read the same normalised input, which is then gathered and reduced once."""
        return self.architecture.parallel_block and self.architecture.block_norms == 1

    @property
    def up_width(self) -> Any:
        """Features of the MLP's first product: gate and up together where it is gated."""
        return 2 * self.shapes.inner if self.architecture.gated_mlp else self.shapes.inner
