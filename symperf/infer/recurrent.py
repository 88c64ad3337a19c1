"""Recurrent layers of an inference: a chunked scan over a prompt, and one update of the state for each new token.

In place of a cache that grows, a sequence keeps a state and the last inputs of a convolution. Tensor parallelism splits
heads (channels in Mamba-1) and what belongs to them; groups of B and C are copied where it exceeds their number (vLLM,
vllm/model_executor/layers/mamba).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.generation import recurrent_decode as step
from ..formulas.kernels import convolution as conv
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import measured_scan as measured
from ..formulas.kernels import ssm
from ..formulas.language import symbols as sym
from ..formulas.language.atoms import ceil_div
from ..formulas.language.symbols import activation_bytes, hidden_size, micro_batch, state_bytes, table_bytes, tp
from ..operations.shapes import FLOPS_PER_ELEMENT

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer

GATED_NORM = FLOPS_PER_ELEMENT["norm"] + FLOPS_PER_ELEMENT["activation"]
SSD_KERNELS = 5
"""Decays, states of the chunks, their passing on, scores, results: mamba_ssm, ssd_combined.py."""


class Recurrent:
    """A mixer with a state, in one phase.

    Attributes:
        layer: whose mixer it is.
        folder: the part of its paths that names it: the layer's mixer, or the one beside it that is told.
        channels: that the convolution runs over, on one device.
        inner: channels of its result.
        state: elements of the state of one sequence.
        scratch: features of a token that are alive at once inside of it.
        chunked: its scan runs in chunks, whose states are alive between its kernels.
        channelwise: its kernels are those of Kimi Delta Attention.
    """

    chunked = False

    channels: Any
    inner: Any
    state: Any
    scratch: Any
    channelwise = False

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        self.layer, self.kernels = layer, layer.kernels
        self.folder = name or layer.kind.mixer

    def path(self, name: str) -> str:
        """The path of an operation of the mixer."""
        return self.layer.path(self.name(name))

    def name(self, name: str) -> str:
        """The same without its phase."""
        return f"{self.layer.root}/{self.folder}/{name}"

    # --- the parts that differ

    def projections(self) -> list[Op | None]:
        """The products of the new tokens before the convolution."""
        raise NotImplementedError

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Whole sequences, or parts of them; the state is written at the end."""
        raise NotImplementedError

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """A few new tokens of every sequence, one after the other."""
        raise NotImplementedError

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """FLOPs of the scan itself."""
        raise NotImplementedError

    # --- what they share

    def prefill(self, length: Any) -> list[Op | None]:
        """Whole prompts, scanned in chunks."""
        return self.scan(micro_batch, length)

    def decode(self, _: tuple[Any, Any]) -> list[Op | None]:
        """A step of a generation: the same at every context."""
        return self.step(micro_batch, 1)

    def output(self) -> list[Op | None]:
        """The gated norm of the results, and their projection."""
        n = self.layer.tokens * self.inner
        traffic = ew.gated_activation_bytes(n, activation_bytes)
        return [
            self.kernels.stream(self.path("gated_norm"), traffic, n, GATED_NORM),
            self.layer.linear(self.name("out"), self.inner, hidden_size),
        ]

    def convolve(self, sequences: Any, length: Any) -> Op:
        """The causal convolution over whole sequences, with its activation."""
        tokens = sequences * length
        traffic = conv.convolution_bytes(tokens, self.channels, sym.conv_kernel, activation_bytes, table_bytes)
        op = self._convolution("convolution", traffic, tokens)
        time = measured.measured_convolution_time(op.demand.flops, traffic, sequences, self.channels)
        return self.kernels.measured("convolutions", op, time, channelwise=self.channelwise)

    def convolve_step(self, sequences: Any, new_tokens: Any) -> Op:
        """The causal convolution of a few new tokens, whose window is kept."""
        shape = self.channels, sym.conv_kernel
        traffic = step.convolution_step_bytes(sequences, new_tokens, *shape, activation_bytes, table_bytes)
        op = self._convolution("convolution_update", traffic, sequences * new_tokens)
        time = measured.measured_window_time(op.demand.flops, traffic)
        return self.kernels.measured("windows", op, time, channelwise=self.channelwise)

    def _convolution(self, name: str, traffic: Any, tokens: Any) -> Op:
        each = 2 * sym.conv_kernel + FLOPS_PER_ELEMENT["activation"]
        return self.kernels.stream(self.path(name), traffic, tokens * self.channels, each)

    def kept(self, sequences: Any) -> Any:
        """Bytes of the states of sequences, which a scan reads or writes once."""
        return sequences * self.state * state_bytes

    def sequence_bytes(self) -> Any:
        """Bytes that a sequence keeps, however long it is: the state, and the last inputs of the convolution."""
        return self.kept(1) + conv.convolution_state_bytes(1, self.channels, sym.conv_kernel, activation_bytes)

    def update(self, traffic: Any, work: Any) -> Op:
        """The fused kernel that moves the state on and reads it; it runs on the vector units."""
        return self.kernels.stream(self.path("state_update"), traffic, work / sym.flop, 1)


class Mamba2(Recurrent):
    """Mamba-2: heads with a scalar decay, scanned in chunks by products (SSD)."""

    chunked = True

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.heads, self.groups = sym.ssm_num_heads / tp, ceil_div(sym.ssm_groups, tp)
        self.inner = self.heads * sym.ssm_head_dim
        self.channels = self.inner + 2 * self.groups * sym.ssm_state_size
        self.state = self.inner * sym.ssm_state_size
        self.columns = self.inner + self.channels + self.heads
        self.scratch = self.columns + self.channels + self.inner
        self.shape = self.heads, sym.ssm_head_dim, sym.ssm_state_size

    def projections(self) -> list[Op | None]:
        """Gate, channels, B, C and time steps in one product."""
        return [self.layer.linear(self.name("in"), hidden_size, self.columns)]

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Products inside the chunks; scores once for each group."""
        return ssm.ssd_flops(sequences, length, sym.ssm_chunk_size, self.groups, *self.shape)

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Convolution and the kernels of the chunked scan."""
        traffic = ssm.ssd_bytes(
            sequences, length, sym.ssm_chunk_size, self.groups, *self.shape, activation_bytes, state_bytes
        )
        work = self.scan_flops(sequences, length)
        return [
            self.convolve(sequences, length),
            self.kernels.scan(self.path("scan"), work, traffic + self.kept(sequences), SSD_KERNELS, length),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Convolution and update of the state."""
        traffic = step.mamba2_step_bytes(sequences, new_tokens, self.groups, *self.shape, activation_bytes, state_bytes)
        work = step.selective_step_flops(sequences * new_tokens, self.inner, sym.ssm_state_size)
        return [self.convolve_step(sequences, new_tokens), self.update(traffic, work)]


class Mamba1(Recurrent):
    """Mamba-1: channels with decays of their own, scanned by one fused kernel that also applies the gate."""

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.inner = self.channels = sym.ssm_inner_size / tp
        self.state = self.inner * sym.ssm_state_size
        self.narrow = sym.ssm_time_step_rank + 2 * sym.ssm_state_size
        self.scratch = 5 * self.inner + self.narrow

    def projections(self) -> list[Op | None]:
        """Channels and gate in one product."""
        return [self.layer.linear(self.name("in"), hidden_size, 2 * self.inner)]

    def output(self) -> list[Op | None]:
        """The projection of the results."""
        return [self.layer.linear(self.name("out"), self.inner, hidden_size)]

    def parameters(self, tokens: Any, end: str) -> list[Op | None]:
        """Time steps, B and C of tokens: a narrow product whose shares are summed, norms, and the time steps' own."""
        product, narrow = self.kernels.matmul, self.narrow
        message = tokens * narrow * activation_bytes
        return [
            product(self.path(f"parameters{end}"), tokens, narrow, self.inner),
            self.kernels.all_reduce(self.path(f"parameters{end}/reduce"), message, self.layer.group),
            *(self.norm(f"{name}_norm{end}", tokens * width) for name, width in self.normed()),
            product(self.path(f"time_step{end}"), tokens, self.inner, sym.ssm_time_step_rank),
        ]

    def normed(self) -> list[tuple[str, Any]]:
        """What has a norm of its own, and its width."""
        if not self.layer.architecture.ssm_norms:
            return []
        return [("time_step", sym.ssm_time_step_rank), ("b", sym.ssm_state_size), ("c", sym.ssm_state_size)]

    def norm(self, name: str, elements: Any) -> Op:
        """The norm of a narrow projection."""
        traffic = ew.norm_bytes(elements, activation_bytes)
        return self.kernels.stream(self.path(name), traffic, elements, FLOPS_PER_ELEMENT["norm"])

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Update and result of every token."""
        return step.selective_step_flops(sequences * length, self.inner, sym.ssm_state_size)

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """Convolution, what the scan depends on, and the scan, which runs on the vector units."""
        tokens = sequences * length
        traffic = ssm.selective_scan_bytes(tokens, self.inner, sym.ssm_state_size, activation_bytes)
        work = self.scan_flops(sequences, length) / sym.flop
        return [
            self.convolve(sequences, length),
            *self.parameters(tokens, ""),
            self.kernels.stream(self.path("scan"), traffic + self.kept(sequences), work, 1),
        ]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """Convolution, what the update depends on, and the update of the state."""
        tokens = sequences * new_tokens
        traffic = step.mamba1_step_bytes(
            sequences, new_tokens, self.inner, sym.ssm_state_size, activation_bytes, state_bytes, sym.statistic_bytes
        )
        work = step.selective_step_flops(tokens, self.inner, sym.ssm_state_size)
        return [
            self.convolve_step(sequences, new_tokens),
            *self.parameters(tokens, "_update"),
            self.update(traffic, work),
        ]


class ShortConvolution(Recurrent):
    """A convolution over a few tokens between two gates (LFM2): all that it keeps is its last inputs."""

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.inner = self.channels = hidden_size / tp
        self.state = 0
        self.scratch = 6 * self.channels

    def projections(self) -> list[Op | None]:
        """Two gates and a value in one product."""
        return [self.layer.linear(self.name("in"), hidden_size, 3 * self.channels)]

    def output(self) -> list[Op | None]:
        """The projection of the results."""
        return [self.layer.linear(self.name("out"), self.inner, hidden_size)]

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """No products: convolution and gates run on the vector units."""
        return 0 * sequences * length

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """The gated convolution over whole sequences."""
        return self.gated(sequences * length, self.convolve(sequences, length), "")

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """The same of a few new tokens."""
        return self.gated(sequences * new_tokens, self.convolve_step(sequences, new_tokens), "_update")

    def gated(self, tokens: Any, convolution: Op, end: str) -> list[Op | None]:
        """The convolution between the products with its gates."""
        n = tokens * self.channels
        traffic = ew.gated_activation_bytes(n, activation_bytes)
        before, after = (
            self.kernels.stream(self.path(f"{name}{end}"), traffic, n, 1) for name in ("gate_in", "gate_out")
        )
        return [before, convolution, after]
