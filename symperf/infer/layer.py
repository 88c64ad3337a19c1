"""A layer of an inference as operations: b sequences on one device, each with new tokens to process.

A layer is a mixer (or several side by side), attention to an encoder and a feed-forward block, as far as its kind has
them, each after its norm and before its residual addition. Mixers side by side read one normalised stream, and each
sums its own result over the group, as in vLLM (vllm/model_executor/models/falcon_h1.py). Tensor parallelism is
Megatron's (arXiv 1909.08053): each block's last product is summed over the group; a parallel block has one sum.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..formulas.kernels import attention_residuals as residuals
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import wkv
from ..formulas.language.symbols import (
    activation_bytes,
    conv_kernel,
    cp,
    hidden_size,
    intermediate_size,
    micro_batch,
    num_layers,
    num_streams,
    residual_block,
    state_bytes,
    tp,
)
from ..models.architecture import UNIFORM
from ..models.own_sizes import of_kind
from ..operations import side_blocks as side
from ..operations.kernels import tensor_group
from ..operations.schedule import Node, Op, Sequence, sequence
from ..operations.shapes import FLOPS_PER_ELEMENT
from . import shared_block, streams
from .adapters import with_adapters
from .attention import SoftmaxAttention
from .compressed import CompressedAttention
from .cross_attention import CrossAttention
from .experts import Experts
from .gated_lru import GatedLru
from .kernels import InferenceKernels
from .latent import LatentAttention
from .lightning import LightningAttention
from .matrix_states import MatrixMemory, TimeMixing, delta_rule
from .recurrent import Mamba1, Mamba2, Recurrent, ShortConvolution
from .selected import SelectedBlocks, SelectedLatents
from .side_blocks import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models.architecture import LayerKind
    from .structure import InferenceStructure

Mixer = SoftmaxAttention | LatentAttention | CompressedAttention | Recurrent


class Block:
    """What layers and the ends of the model are made of, for one structure and phase.

    Args:
        structure: what gives them their form.
        phase: "prefill" or "decode": the first part of every path.
        tokens: new tokens of a micro-batch, on one replica.
    """

    def __init__(self, structure: InferenceStructure, phase: str, tokens: Any) -> None:
        self.structure, self.architecture, self.fusion = structure, structure.architecture, structure.fusion
        self.phase, self.tokens = phase, tokens
        self.kernels = InferenceKernels(structure)
        self.group = tensor_group()
        self.stream_message = tokens * hidden_size * activation_bytes
        self.stage_message = self.stream_message * (num_streams if self.architecture.hyper_connections else 1)

    @property
    def mean_tokens(self) -> Any:
        """New tokens of the mean replica, of those that pass one layer's experts together."""
        return self.tokens

    @property
    def copied_tokens(self) -> Any:
        """Of the new tokens those that all devices have which share a cache: of decode steps all, else none."""
        return self.tokens if self.structure.context != "none" and self.phase == "decode" else 0

    def own_tokens(self, tokens: Any) -> Any:
        """Of a device's new tokens those that it sends to experts, where others have some of them too."""
        return tokens / cp if self.copied_tokens else tokens

    def path(self, name: str) -> str:
        """The path of an operation in this phase."""
        return f"{self.phase}/{name}"

    def linear(self, name: str, in_features: Any, out_features: Any) -> Op:
        """A linear layer over all new tokens; its bias is fused."""
        return self.kernels.matmul(self.path(name), self.tokens, out_features, in_features)

    def norm(self, name: str, *, after_residual: bool = False) -> Op:
        """A norm over the residual stream, with the addition before it where the two are fused."""
        n = self.tokens * hidden_size
        traffic, work = ew.norm_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["norm"]
        if after_residual and self.fusion.residual_norm and not self.architecture.hyper_connections:
            traffic = ew.residual_norm_bytes(n, activation_bytes)
            work += FLOPS_PER_ELEMENT["residual"]
            if self.fusion.reduce_norm and self.phase == "decode":
                return self.kernels.continued(self.path(name), traffic, n * work)
        return self.kernels.stream(self.path(name), traffic, n, work)

    def residual(self, name: str) -> Op | None:
        """A residual addition; part of the norm after it where the two are fused, or of mixing several streams."""
        if self.architecture.hyper_connections:
            return streams.leave(self, name)
        return None if self.fusion.residual_norm else self.added(name)

    def added(self, name: str) -> Op:
        """An addition of two tensors as wide as the stream."""
        n = self.tokens * hidden_size
        traffic = ew.residual_bytes(n, activation_bytes)
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["residual"])

    def activation_of(self, name: str, width: Any) -> Op:
        """An activation function over all new tokens, gated or plain as the model's."""
        n = self.tokens * width
        traffic = (ew.gated_activation_bytes if self.architecture.gated_mlp else ew.activation_function_bytes)(
            n, activation_bytes
        )
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["activation"])

    def shift(self, name: str, mixtures: int) -> Op:
        """Mixtures of every token and the one before (RWKV)."""
        n = mixtures * self.tokens * hidden_size
        traffic = wkv.token_shift_bytes(self.tokens, hidden_size, mixtures * hidden_size, activation_bytes)
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["shift"])

    def mixture(self, name: str) -> Op | None:
        """What attention residuals make of the sums of earlier layers, where the model has them."""
        if not self.architecture.attention_residuals:
            return None
        sources = residuals.residual_sources(num_layers, residual_block)
        traffic = residuals.attention_residual_bytes(self.tokens, hidden_size, sources, activation_bytes)
        n = self.tokens * hidden_size * sources
        return self.kernels.stream(self.path(name), traffic, n, FLOPS_PER_ELEMENT["mixture"])

    def reduce(self, name: str) -> Op | None:
        """The sum of the shares of a row-split product."""
        return self.kernels.all_reduce(self.path(name), self.stream_message, self.group)


class Layer(Block):
    """The operations of one kind of layer, in one phase.

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
        super().__init__(structure, phase, tokens)
        self.kind, self.root = kind, root
        self.inner = intermediate_size / tp

    @cached_property
    def mixers(self) -> tuple[Mixer, ...]:
        """What moves information between tokens: nothing in a layer of a feed-forward block alone."""
        if self.kind.mixer == "none":
            return ()
        recurrent = MIXERS.get(self.kind.mixer)
        own = self.attention() if recurrent is None else recurrent(self, self.kind.mixer)
        return (own, *(MIXERS[name](self, name) for name in self.kind.beside))

    def attention(self) -> SoftmaxAttention | LatentAttention | CompressedAttention:
        """The attention of a layer that has no recurrent mixer, by its kind and what it selects."""
        if self.kind.mixer == "latent_attention":
            return (SelectedLatents if {"indexer", "reused_index"} & set(self.kind.traits) else LatentAttention)(self)
        if self.kind.mixer == "compressed_attention":
            return CompressedAttention(self)
        return (SelectedBlocks if "block_index" in self.kind.traits else SoftmaxAttention)(self)

    @property
    def mixer(self) -> Mixer:
        """The layer's mixer, the first of several."""
        return self.mixers[0]

    def layer(self, core: Callable[[Mixer], list[Op | None]], cross: list[Op | None] | tuple[()] = ()) -> Sequence:
        """One layer around the operations of its mixers' cores, and with those of its attention to an encoder."""
        before, beside, behind = (
            operations(self, self.root, steps(self.architecture)) for steps in (side.before, side.beside, side.behind)
        )
        behind += operations(self, self.root, side.convolutions(self.kind, self.convolution_window))
        steps = [*before, *self.mixing(core), *beside, *cross, *self.feed_forward(), *behind]
        return of_kind(sequence(*(with_adapters(self, steps) if self.structure.adapted else steps)), self.kind)

    @property
    def experts_adapters(self) -> Any:
        """Bytes of the slots of adapters of the layer's routed experts on one device."""
        return Experts(self).adapter_bytes if self.kind.ffn == "experts" else 0

    @property
    def sequences(self) -> Any:
        """Sequences whose tokens a pass processes."""
        return micro_batch

    @property
    def convolution_window(self) -> Any:
        """Elements that a step reads and writes of a convolution's window, for each channel; a pass keeps its own."""
        return conv_kernel * state_bytes / activation_bytes if self.phase == "decode" else 0

    @cached_property
    def cross(self) -> CrossAttention:
        """The attention to an encoder's output."""
        return CrossAttention(self)

    # --- the mixer's block

    def mixing(self, core: Callable[[Mixer], list[Op | None]]) -> list[Op | None]:
        """The mixers' block around their cores."""
        if not self.mixers:
            return []
        if self.kind.shared:
            return shared_block.mixing(self, core)
        block, both = f"{self.root}/{self.mixer.folder}", self.architecture.parallel_block and self.kind.ffn != "none"
        normalised = "normalised_input" in self.kind.traits
        norm = None if normalised else self.norm(f"{block}/norm", after_residual=True)
        found = [*self.enter(block), norm]
        for mixer in self.mixers:
            found += [*mixer.projections(), *core(mixer), *mixer.output()]
            found.append(None if both else self.reduce(f"{self.root}/{mixer.folder}/reduce"))
        found += [self.added(f"{self.root}/{mixer.folder}/sum") for mixer in self.mixers[1:]]
        return [*found, self.post_norm(block), None if both else self.residual(f"{block}/residual")]

    def enter(self, block: str) -> list[Op | None]:
        """What a part reads of several streams, or of sums of earlier layers, where there are any."""
        return streams.enter(self, block) if self.architecture.hyper_connections else [self.mixture(f"{block}/mixture")]

    def post_norm(self, block: str) -> Op | None:
        """The norm after a block, where there are four in a layer."""
        return self.norm(f"{block}/post_norm") if self.architecture.block_norms == 4 else None

    # --- the feed-forward block

    def feed_forward(self) -> list[Node | None]:
        """MLP, experts, or both."""
        if self.kind.ffn == "none":
            return []
        if self.kind.shared:
            return [*shared_block.feed_forward(self)]
        block, alone = f"{self.root}/mlp", self.kind.mixer == "none"
        both = self.architecture.parallel_block and not alone
        return [
            *self.enter(block),
            self.norm(f"{block}/norm", after_residual=not both) if self.architecture.block_norms > 1 or alone else None,
            *self.mlp(),
            *(Experts(self).operations() if self.kind.ffn in ("experts", "dense_experts") else ()),
            self.post_norm(block),
            self.residual(f"{block}/residual"),
        ]

    def mlp(self) -> list[Op | None]:
        """The dense MLP, if the layer has one."""
        if self.kind.ffn == "experts":
            return []
        return [
            self.shift(f"{self.root}/mlp/shift", 1) if self.kind.mixer == "wkv" else None,
            *self.up(),
            self.activation_of(f"{self.root}/mlp/activation", self.inner),
            self.linear(f"{self.root}/mlp/down", self.inner, hidden_size),
            self.reduce(f"{self.root}/mlp/reduce"),
        ]

    def up(self) -> list[Op]:
        """The first product of the MLP: gate and up as one or as two."""
        if not self.architecture.gated_mlp:
            return [self.linear(f"{self.root}/mlp/up", hidden_size, self.inner)]
        if self.fusion.gate_up:
            return [self.linear(f"{self.root}/mlp/gate_up", hidden_size, 2 * self.inner)]
        return [
            self.linear(f"{self.root}/mlp/gate", hidden_size, self.inner),
            self.linear(f"{self.root}/mlp/up", hidden_size, self.inner),
        ]


MIXERS: dict[str, Callable[[Layer, str], Recurrent]] = {
    "ssm": Mamba2,
    "ssm1": Mamba1,
    "linear_attention": delta_rule,
    "short_convolution": ShortConvolution,
    "gated_lru": GatedLru,
    "lightning_attention": LightningAttention,
    "matrix_memory": MatrixMemory,
    "wkv": TimeMixing,
}
"""What builds the operations of a recurrent mixer."""
