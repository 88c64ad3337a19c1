"""Lightning attention in an inference (MiniMax-01): a chunked scan with fixed decays, between a projection and a gate.

As vLLM runs it (vllm/model_executor/layers/mamba/linear_attn.py): queries, keys and values from one product with an
activation, the gate from another; heads are dealt to the devices, and the norm over all of them needs its sums of
squares from the whole group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formulas.generation import recurrent_decode as step
from ..formulas.kernels import elementwise as ew
from ..formulas.kernels import lightning_attention as lightning
from ..formulas.language import symbols as sym
from ..formulas.language.symbols import activation_bytes, hidden_size, state_bytes, tp
from ..operations.shapes import FLOPS_PER_ELEMENT
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ..operations.schedule import Op
    from .layer import Layer

LIGHTNING_KERNELS = 4
"""Scores inside chunks, states of the chunks, their passing on, results of states: vLLM, lightning_attn.py."""


class LightningAttention(Recurrent):
    """Linear attention with a fixed decay for each head."""

    chunked = True

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.shape = sym.linear_num_value_heads / tp, sym.linear_value_head_dim
        self.inner = self.shape[0] * self.shape[1]
        self.channels = 0 * self.inner
        self.state = self.inner * sym.linear_value_head_dim
        self.scratch = 5 * self.inner

    def projections(self) -> list[Op | None]:
        """Queries, keys and values with their activation; and the gate."""
        n = self.layer.tokens * 3 * self.inner
        traffic, work = ew.activation_function_bytes(n, activation_bytes), FLOPS_PER_ELEMENT["activation"]
        return [
            self.layer.linear(self.name("in"), hidden_size, 3 * self.inner),
            self.kernels.stream(self.path("activation"), traffic, n, work),
            self.layer.linear(self.name("gate_in"), hidden_size, self.inner),
        ]

    def output(self) -> list[Op | None]:
        """The norm over all heads, whose sums of squares are added over the group; the gate; and the projection."""
        tokens, n = self.layer.tokens, self.layer.tokens * self.inner
        gate = ew.gated_activation_bytes(n, activation_bytes)
        return [
            self.kernels.all_reduce(self.path("inner_norm/reduce"), tokens * sym.statistic_bytes, self.layer.group),
            self.kernels.stream(
                self.path("inner_norm"), ew.norm_bytes(n, activation_bytes), n, FLOPS_PER_ELEMENT["norm"]
            ),
            self.kernels.stream(self.path("gate"), gate, n, FLOPS_PER_ELEMENT["activation"]),
            self.layer.linear(self.name("out"), self.inner, hidden_size),
        ]

    def scan_flops(self, sequences: Any, length: Any) -> Any:
        """Products inside the chunks and with their states."""
        return lightning.lightning_flops(sequences, length, sym.ssm_chunk_size, *self.shape)

    def scan(self, sequences: Any, length: Any) -> list[Op | None]:
        """The kernels of the chunked scan."""
        formats = activation_bytes, state_bytes
        traffic = lightning.lightning_bytes(sequences, length, sym.ssm_chunk_size, *self.shape, *formats)
        work, moved = self.scan_flops(sequences, length), traffic + self.kept(sequences)
        return [self.kernels.scan(self.path("scan"), work, moved, LIGHTNING_KERNELS, length)]

    def step(self, sequences: Any, new_tokens: Any) -> list[Op | None]:
        """The kernel that moves the state on."""
        traffic = step.lightning_step_bytes(sequences, new_tokens, *self.shape, activation_bytes, state_bytes)
        return [self.update(traffic, step.lightning_step_flops(sequences * new_tokens, *self.shape))]
