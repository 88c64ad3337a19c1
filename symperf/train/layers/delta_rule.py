"""The gated delta rule of a layer as operations: linear attention with a state for each value head, in chunks.

Tensor parallelism deals key and value heads to the devices, as Megatron-LM's gated delta net does. Queries and keys are
repeated for every value head before the scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulas.kernels import linear_attention as lin
from ...formulas.kernels import scan
from ...formulas.language.symbols import (
    activation_bytes,
    linear_key_head_dim,
    linear_num_key_heads,
    linear_num_value_heads,
    linear_value_head_dim,
    micro_batch,
    ssm_chunk_size,
    state_bytes,
    tp,
)
from .recurrent import Recurrent

if TYPE_CHECKING:
    from ...operations.schedule import Op
    from .transformer import Decoder


class DeltaRule(Recurrent):
    """A gated delta rule: products and a triangular solve in every chunk, and three products with the state.

    Forward six kernels: decays, key scores, inverse, solved keys and values, states, results. Backward seven: solved
    keys and values and states again, values inside chunks, passing back, queries and keys, the solved form, decays; and
    three sums of PyTorch (flash-linear-attention, gated_delta_rule/chunk.py).
    """

    launches = 6, 10
    name = "linear_attention"

    def __init__(self, layer: Decoder) -> None:
        super().__init__(layer)
        self.heads = linear_num_value_heads / tp
        self.output_width = self.heads * linear_value_head_dim
        self.channels = 2 * linear_num_key_heads / tp * linear_key_head_dim + self.output_width
        self.projected = self.channels + self.output_width + 2 * self.heads
        self.size = micro_batch, self.length, ssm_chunk_size
        self.shape = self.heads, linear_key_head_dim, linear_value_head_dim

    def scan(self, phase: str) -> Op:
        """The chunked rule, with its solves."""
        work = lin.delta_rule_flops(*self.size, *self.shape) + lin.delta_solve_flops(*self.size, *self.shape)
        traffic = lin.delta_rule_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked(f"scan/{phase}", work, traffic)

    def scan_backward(self) -> Op:
        """Its gradients, with solves and states once more."""
        work = scan.delta_rule_backward_flops(*self.size, *self.shape)
        traffic = scan.delta_rule_backward_bytes(*self.size, *self.shape, activation_bytes, state_bytes)
        return self.chunked("scan/backward", work, traffic, backward=True)
