"""Recurrent mixers of a layer as operations: what they share, and Mamba-2 and Mamba-1.

Tensor parallelism is that of Megatron-LM's Mamba mixer: heads (channels of Mamba-1) and groups are dealt to the
devices, the projection in is split by columns and the one out by rows; convolution, scan and gated norm stay on the
device (Dao and Gu 2024 section 8.1). Mamba-1's time steps, B and C come from all channels: they are summed over the
group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import convolution as conv
from ...formulas.kernels import scan, ssm
from ...formulas.language.symbols import (
    activation_bytes,
    conv_kernel,
    gradient_bytes,
    hidden_size,
    micro_batch,
    ssd_passes,
    ssm_chunk_size,
    ssm_groups,
    ssm_head_dim,
    ssm_inner_size,
    ssm_num_heads,
    ssm_state_size,
    ssm_time_step_rank,
    state_bytes,
    tp,
    weight_bytes,
)
from ...operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .attention_core import Operations
    from .transformer import Decoder


class Recurrent:
    """A mixer with a state: projection in, convolution, scan, and (but for Mamba-1) a gated norm.

    Args:
        layer: that it belongs to.
    """

    name = "ssm"
    output_width: Any
    projected: Any
    channels: Any
    launches: tuple[int, int]
    passes: Any = 1
    """Bytes that the scan's kernels take the time of, over those that they move.

    Measured of forward passes; assumed alike of backward ones, whose kernels are as fused.
    """

    def __init__(self, layer: Decoder) -> None:
        self.layer, self.kernels, self.tokens = layer, layer.kernels, layer.shapes.tokens
        self.length = layer.shapes.length

    def path(self, name: str) -> str:
        """The path of an operation of the block."""
        return f"{self.layer.root}/{self.name}/{name}"

    def forward(self, phase: str) -> Operations:
        """From the normalised stream to what the projection out reads."""
        return [
            self.layer.linear(self.path("in"), phase, hidden_size, self.projected),
            self.convolution(phase),
            self.scan(phase),
            self.layer.gated(self.path(f"norm_gate/{phase}"), self.tokens * self.output_width, "gated norm"),
        ]

    def backward(self) -> Operations:
        """Its gradients; the scan's kernel computes again the states that it needs."""
        elements = self.tokens * self.output_width
        return [
            self.layer.gated_backward(self.path("norm_gate/backward"), elements, "gated norm"),
            self.scan_backward(),
            self.convolution_backward(),
            self.layer.column_backward(self.path("in"), hidden_size, self.projected),
        ]

    def scan(self, phase: str) -> Op:
        """The scan over the sequence."""
        raise NotImplementedError

    def scan_backward(self) -> Op:
        """Gradients of the scan, from its states again."""
        raise NotImplementedError

    def chunked(self, path: str, work: Any, traffic: Any, *, backward: bool = False) -> Op:
        """A scan in chunks, whose products run on the matrix units."""
        time = scan.chunked_scan_backward_time if backward else scan.chunked_scan_time
        spent = time(work, self.passes * traffic, self.launches[backward])
        return self.kernels.fused(self.path(path), spent, work, traffic)

    def convolution(self, phase: str) -> Op:
        """The causal convolution, with its activation."""
        traffic = conv.convolution_bytes(self.tokens, self.channels, conv_kernel, activation_bytes, weight_bytes)
        elements = self.tokens * self.channels
        return self.kernels.stream(self.path(f"convolution/{phase}"), traffic, elements, 2 * conv_kernel)

    def convolution_backward(self) -> Op:
        """Its gradients: of the input and of the taps."""
        traffic = scan.convolution_backward_bytes(
            self.tokens, self.channels, conv_kernel, activation_bytes, gradient_bytes
        )
        elements = self.tokens * self.channels
        return self.kernels.stream(self.path("convolution/backward"), traffic, elements, 4 * conv_kernel)


class Mamba2(Recurrent):
    """Mamba-2: a scan in chunks (SSD).

    Forward five kernels: decays, states of chunks, their passing on, scores, results. Backward fourteen: four of these
    again, gradients of states, of their passing, of channels, B, C, scores, B and C through them, decays, time steps;
    and seventeen operations of PyTorch between them: a copy, fills, sums over splits, reversed and running sums
    (mamba_ssm, ssd_combined.py).
    """

    launches = 5, 31

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.heads, self.groups = ssm_num_heads / tp, ssm_groups / tp
        self.output_width = self.heads * ssm_head_dim
        self.channels = self.output_width + 2 * self.groups * ssm_state_size
        self.projected = self.output_width + self.channels + self.heads
        self.size = micro_batch, self.length, ssm_chunk_size
        self.shape = self.groups, self.heads, ssm_head_dim, ssm_state_size
        if "ssd" in layer.structure.families:
            self.passes = ssd_passes

    def backward(self) -> Operations:
        """As of any mixer, after the convolution once more: mamba_ssm recomputes x, B and C instead of keeping them."""
        return [self.convolution("again"), *super().backward()]

    def scan(self, phase: str) -> Op:
        """Four products in every chunk, and the passing of states."""
        work = ssm.ssd_flops(*self.size, *self.shape)
        traffic = ssm.ssd_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", work, traffic)

    def scan_backward(self) -> Op:
        """Eight products, and two again."""
        work = scan.ssd_backward_flops(*self.size, *self.shape)
        traffic = scan.ssd_backward_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)


class Mamba1(Recurrent):
    """Mamba-1: time steps, B and C from a narrow projection, and a fused scan with its gate on the vector units."""

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.output_width = self.channels = ssm_inner_size / tp
        self.projected = 2 * self.output_width
        self.narrow = ssm_time_step_rank + 2 * ssm_state_size

    def forward(self, phase: str) -> Operations:
        """Projection, convolution, the narrow projections, and the scan."""
        layer = self.layer
        return [
            layer.linear(self.path("in"), phase, hidden_size, self.projected),
            self.convolution(phase),
            layer.linear(self.path("narrow"), phase, self.channels, self.narrow),
            self.sum_over_channels(f"narrow/reduce/{phase}"),
            self.norms(phase),
            layer.linear(self.path("time_step"), phase, ssm_time_step_rank, self.channels),
            self.scan(phase),
        ]

    def backward(self) -> Operations:
        """Their gradients; convolution and time steps are computed again, as the fused kernel does."""
        layer, channels, rank = self.layer, self.channels, ssm_time_step_rank
        return [
            self.convolution("again"),
            layer.linear(self.path("time_step"), "again", rank, channels),
            self.scan_backward(),
            layer.column_backward(self.path("time_step"), rank, channels, shared=True),
            self.norms("backward"),
            self.sum_over_channels("narrow/reduce/backward"),
            layer.column_backward(self.path("narrow"), channels, self.narrow, shared=True),
            self.convolution_backward(),
            layer.column_backward(self.path("in"), hidden_size, self.projected),
        ]

    def sum_over_channels(self, name: str) -> Op | None:
        """The sum of time steps, B and C (or of their gradients) over the devices' channels."""
        message = self.tokens * self.narrow * activation_bytes
        return self.kernels.all_reduce(self.path(name), message, self.layer.group)

    def norms(self, phase: str) -> Op | None:
        """Norms of time step, B and C (Jamba)."""
        if not self.layer.architecture.ssm_norms:
            return None
        of = self.layer.norm_gradient_of if phase == "backward" else self.layer.norm_of
        return of(self.path(f"narrow_norm/{phase}"), self.tokens * self.narrow)

    def scan(self, phase: str) -> Op:
        """The fused selective scan."""
        traffic = ssm.selective_scan_bytes(self.tokens, self.channels, ssm_state_size, activation_bytes)
        states = self.tokens * self.channels * ssm_state_size
        return self.kernels.stream(self.path(f"scan/{phase}"), traffic, states, FLOPS_PER_ELEMENT["scan"])

    def scan_backward(self) -> Op:
        """Its gradients, with the states once more."""
        traffic = scan.selective_scan_backward_bytes(self.tokens, self.channels, ssm_state_size, activation_bytes)
        states = self.tokens * self.channels * ssm_state_size
        return self.kernels.stream(self.path("scan/backward"), traffic, states, FLOPS_PER_ELEMENT["scan backward"])
