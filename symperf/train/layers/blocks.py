"""What layers and the ends of a model are built from: norms, collectives of the residual stream, overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import attention_residuals as residuals
from ...formulas.kernels import eager, wkv
from ...formulas.kernels import elementwise as ew
from ...formulas.kernels import wide_stream as wide
from ...formulas.language.symbols import (
    activation_bytes,
    gated_backward_passes,
    gated_passes,
    hidden_size,
    mask_bytes,
    num_layers,
    num_streams,
    overlap_tp,
    residual_block,
    statistic_bytes,
)
from ...models.sparse_counts import handed_selection
from ...operations.groups import Group, tensor_group
from ...operations.kernels import Kernels
from ...operations.schedule import Node, Op, Overlap, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT, Shapes

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure


class Blocks:
    """Building blocks of one structure, for one micro-batch on one device.

    A residual stream in FP32 is wider in its additions, in what norms read of it, and between stages.

    Args:
        structure: what gives them their form.
        kind: of the layers, for their sizes; by default those of the decoder at large.
    """

    def __init__(self, structure: Structure, kind: LayerKind | None = None) -> None:
        self.structure = structure
        self.architecture = structure.architecture
        self.kernels = Kernels(structure)
        self.shapes = Shapes.of(structure, kind)
        self.group: Group = tensor_group()
        self.stream_message = self.shapes.tokens * hidden_size * activation_bytes

    @property
    def stage_message(self) -> Any:
        """Bytes of the residual stream, of all of several, or its gradient, to the next stage; and of a selection."""
        width = statistic_bytes if self.structure.wide_stream else activation_bytes
        streams = num_streams if self.architecture.hyper_connections else 1
        selection = handed_selection(self.architecture) * statistic_bytes
        return self.shapes.tokens * (streams * hidden_size * width + selection)

    # --- tensor-parallel collectives

    def gather(self, path: str, message: Any = None) -> Op | None:
        """With sequence parallelism, a stream gathered along the sequence: the residual one unless told its bytes."""
        if not self.structure.sequence_parallel:
            return None
        return self.kernels.all_gather(path, self.stream_message if message is None else message, self.group)

    def reduce(self, path: str, message: Any = None) -> Op | None:
        """The sum of the shares of a row-split product, or of a column-split layer's input gradient."""
        message = self.stream_message if message is None else message
        if self.structure.sequence_parallel:
            return self.kernels.reduce_scatter(path, message, self.group)
        return self.kernels.all_reduce(path, message, self.group)

    def beside(self, work: Node, transfer: Op | None) -> Node:
        """Work with a transfer that may hide behind it."""
        return work if transfer is None else Overlap(work, transfer, overlap_tp)

    # --- element-wise kernels

    @property
    def stream_elements(self) -> Any:
        """Elements of the residual stream on the device."""
        return self.shapes.stream_tokens * hidden_size

    def norm(self, path: str, phase: str) -> Op:
        """A norm over the residual stream."""
        n = self.stream_elements
        if not self.structure.wide_stream and not self.copied_norms:
            return self.norm_of(f"{path}/{phase}", n)
        count = wide.wide_norm_bytes if self.structure.wide_stream else eager.copied_norm_bytes
        traffic = count(n, activation_bytes, statistic_bytes)
        return self.kernels.stream(f"{path}/{phase}", traffic, n, FLOPS_PER_ELEMENT["norm"])

    def norm_backward(self, path: str) -> Op:
        """Gradients of a norm's input, gain and bias."""
        n = self.stream_elements
        if not self.structure.wide_stream and not self.copied_norms:
            return self.norm_gradient_of(f"{path}/backward", n)
        count = wide.wide_norm_backward_bytes if self.structure.wide_stream else eager.copied_norm_backward_bytes
        traffic = count(n, activation_bytes, statistic_bytes)
        return self.kernels.stream(f"{path}/backward", traffic, n, FLOPS_PER_ELEMENT["norm backward"])

    def mixture(self, path: str, phase: str) -> Op | None:
        """What attention residuals make of the sums of earlier layers, where the model has them; or its gradients."""
        if not self.architecture.attention_residuals:
            return None
        tokens, sources = self.shapes.stream_tokens, residuals.residual_sources(num_layers, residual_block)
        backward = phase == "backward"
        of = residuals.attention_residual_backward_bytes if backward else residuals.attention_residual_bytes
        work = FLOPS_PER_ELEMENT["mixture backward" if backward else "mixture"]
        traffic = of(tokens, hidden_size, sources, activation_bytes)
        return self.kernels.stream(f"{path}/{phase}", traffic, tokens * hidden_size * sources, work)

    def shift(self, path: str, phase: str, mixtures: int) -> Op:
        """Mixtures of every token and the one before, or their gradients (RWKV)."""
        backward = phase == "backward"
        of = wkv.token_shift_backward_bytes if backward else wkv.token_shift_bytes
        n = mixtures * self.shapes.tokens * hidden_size
        traffic = of(self.shapes.tokens, hidden_size, mixtures * hidden_size, activation_bytes)
        return self.kernels.stream(f"{path}/{phase}", traffic, n, FLOPS_PER_ELEMENT["shift"])

    @property
    def eager_norms(self) -> bool:
        """Whether norms run operation by operation: PyTorch has one kernel for a layer norm."""
        return "norms" in self.structure.eager and self.architecture.norm == "rms_norm"

    @property
    def copied_norms(self) -> bool:
        """Whether norms of the stream read a copy of it in 32 bits."""
        return "copies" in self.structure.eager and not self.eager_norms

    def norm_of(self, path: str, elements: Any) -> Op:
        """A norm over some elements."""
        traffic = ew.norm_bytes(elements, activation_bytes)
        if self.eager_norms:
            traffic = eager.eager_norm_bytes(elements, activation_bytes, statistic_bytes)
        return self.kernels.stream(path, traffic, elements, FLOPS_PER_ELEMENT["norm"])

    def norm_gradient_of(self, path: str, elements: Any) -> Op:
        """The gradients of `norm_of`."""
        traffic, work = ew.norm_backward_bytes(elements, activation_bytes), FLOPS_PER_ELEMENT["norm backward"]
        if self.eager_norms:
            traffic = eager.eager_norm_backward_bytes(elements, activation_bytes, statistic_bytes)
        return self.kernels.stream(path, traffic, elements, work)

    def gated(self, path: str, elements: Any, work: str = "activation") -> Op:
        """A product with an activated gate, in one kernel; with a norm too where `work` is "gated norm"."""
        traffic = ew.gated_activation_bytes(elements, activation_bytes)
        return self.kernels.stream(path, traffic, elements, FLOPS_PER_ELEMENT[work])

    def gated_backward(self, path: str, elements: Any, work: str = "activation") -> Op:
        """Gradients of what the gated activation multiplies."""
        traffic = ew.gated_activation_backward_bytes(elements, activation_bytes)
        return self.kernels.stream(path, traffic, elements, FLOPS_PER_ELEMENT[f"{work} backward"])

    def residual(self, path: str, phase: str) -> Op:
        """Dropout and residual addition, fused."""
        n = self.stream_elements
        if self.structure.dropout:
            traffic = ew.dropout_residual_bytes(n, activation_bytes, mask_bytes)
            if self.structure.wide_stream:
                traffic = self.added(n) + n * mask_bytes
            work = FLOPS_PER_ELEMENT["dropout"] + FLOPS_PER_ELEMENT["residual"]
            return self.kernels.stream(f"{path}/{phase}", traffic, n, work)
        return self.kernels.stream(f"{path}/{phase}", self.added(n), n, FLOPS_PER_ELEMENT["residual"])

    def residual_norm(self, path: str, phase: str) -> Op:
        """Dropout, the addition to the stream, and the norm behind it, in one kernel."""
        n, work = self.stream_elements, FLOPS_PER_ELEMENT["residual"] + FLOPS_PER_ELEMENT["norm"]
        traffic = ew.residual_norm_bytes(n, activation_bytes)
        if self.structure.wide_stream:
            traffic = wide.wide_residual_norm_bytes(n, activation_bytes, statistic_bytes)
        if self.structure.dropout:
            traffic, work = traffic + n * mask_bytes, work + FLOPS_PER_ELEMENT["dropout"]
        return self.kernels.stream(f"{path}/{phase}", traffic, n, work)

    def residual_norm_backward(self, path: str) -> Op:
        """Their gradients; with dropout, or a wide stream, that of the branch is another than that of the stream."""
        n, work = self.stream_elements, FLOPS_PER_ELEMENT["residual"] + FLOPS_PER_ELEMENT["norm backward"]
        traffic, dropped = ew.residual_norm_backward_bytes(n, activation_bytes), activation_bytes + mask_bytes
        if self.structure.wide_stream:
            traffic = wide.wide_residual_norm_backward_bytes(n, activation_bytes, statistic_bytes)
            dropped = mask_bytes
        if self.structure.dropout:
            traffic, work = traffic + n * dropped, work + FLOPS_PER_ELEMENT["dropout"]
        return self.kernels.stream(f"{path}/backward", traffic, n, work)

    def addition(self, path: str) -> Op:
        """An addition of two tensors as long and wide as the stream, in the format of activations."""
        n = self.stream_elements
        return self.kernels.stream(path, ew.residual_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["residual"])

    def added(self, elements: Any) -> Any:
        """Bytes of an addition to the stream, or to its gradient."""
        if self.structure.wide_stream:
            return wide.wide_residual_bytes(elements, activation_bytes, statistic_bytes)
        return ew.residual_bytes(elements, activation_bytes)

    def residual_backward(self, path: str) -> Sequence:
        """The dropout's gradient, and the sum of the gradients of the two branches."""
        n = self.stream_elements
        dropped = ew.dropout_bytes(n, activation_bytes, mask_bytes)
        summed = self.added(n)
        return sequence(
            self.kernels.stream(f"{path}/backward_dropout", dropped, n, FLOPS_PER_ELEMENT["dropout"])
            if self.structure.dropout
            else None,
            self.kernels.stream(f"{path}/backward", summed, n, FLOPS_PER_ELEMENT["residual"]),
        )

    @property
    def gated_bytes(self) -> Any:
        """What counts the bytes of a gated activation."""
        if "gated" in self.structure.eager:
            return eager.eager_gated_bytes
        passes = gated_passes if self.structure.slow_gates else 1
        return lambda elements, width: passes * ew.gated_activation_bytes(elements, width)

    @property
    def gated_backward_bytes(self) -> Any:
        """What counts the bytes of its gradients."""
        if "gated" in self.structure.eager:
            return eager.eager_gated_backward_bytes
        passes = gated_backward_passes if self.structure.slow_gates else 1
        return lambda elements, width: passes * ew.gated_activation_backward_bytes(elements, width)

    def rotary_of(self, path: str, elements: Any) -> Op:
        """Rotary positions of some elements of queries and keys, forward or backward."""
        traffic = ew.rotary_bytes(elements, activation_bytes)
        if "rotary" in self.structure.eager:
            traffic = eager.eager_rotary_bytes(elements, activation_bytes, statistic_bytes)
        return self.kernels.stream(path, traffic, elements, FLOPS_PER_ELEMENT["rotary"])

    def activation_of(self, path: str, width: Any) -> Op:
        """An activation function over all tokens, gated where the MLP is."""
        n = self.shapes.tokens * width
        count = self.gated_bytes if self.architecture.gated_mlp else ew.activation_function_bytes
        return self.kernels.stream(path, count(n, activation_bytes), n, FLOPS_PER_ELEMENT["activation"])

    def activation_gradient_of(self, path: str, width: Any) -> Op:
        """The gradient of `activation_of`."""
        n = self.shapes.tokens * width
        gated = self.architecture.gated_mlp
        count = self.gated_backward_bytes if gated else ew.activation_function_backward_bytes
        return self.kernels.stream(path, count(n, activation_bytes), n, FLOPS_PER_ELEMENT["activation backward"])
